"""Entry of the guard; started by file path, so it finds its own package first.

Short on purpose: Python compiles the file it is started with every time (8 ms for all of the guard), the modules
behind it once. Serves spec:cc-agents.work-containment.
"""

import os
import sys

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from guard.supervisor import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
