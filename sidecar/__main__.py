"""`python -m sidecar` is the command line."""

import sys

try:
    from sidecar.cli import main

    code = main()
except KeyboardInterrupt:  # while it was being loaded: nothing has happened yet
    code = 130
sys.exit(code)
