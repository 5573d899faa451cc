"""The guard that leaves a file beside its record when it puts itself ahead of everybody. Run by file path."""

import os
import sys

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from guard import supervisor
from guard.guard import main

hurry = supervisor.hurry


def noted() -> None:
    with open(os.path.join(os.path.dirname(sys.argv[sys.argv.index("--record") + 1]), "hurried"), "wb"):
        hurry()


supervisor.hurry = noted

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
