"""The guard as macOS has it, on Linux: no subreaper, no /proc, the process table from `ps`.

Owns taking away what macOS lacks. Run by file path in the place of guard/guard.py.
"""

import os
import sys

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from guard import record, supervisor
from guard.guard import main
from guard.ways import PollingWay


class PsWay(PollingWay):
    def __init__(self) -> None:
        super().__init__()
        self.has_proc, self.poll_s = False, 0.05


record.boot_id = lambda: None
supervisor.WAYS["linux"] = PsWay

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
