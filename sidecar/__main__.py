"""`python -m sidecar` is the command line."""

import sys

from sidecar.cli import main

sys.exit(main())
