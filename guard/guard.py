"""Entry of the guard, started by file path: options, and the way to its own package. Short on purpose: Python
compiles this file at every start (8 ms for all of the guard), the modules behind it once.
Serves spec:cc-agents.work-containment.

    guard.py --lifeline FD --report FD --record FILE --turn ID --grace S [--orphan-grace S] [--slot FD] [--thread FD]
             [--mark N] [--poll S] [--way linux|polling] -- ARGV...

Lifeline: its end of file ends the turn. Slot, thread: only kept open. Mark: a number for a limit that nothing uses, by
which the turn's processes are known (sidecar/leftovers/marks.py). Report: one JSON object a line, `event` is one of
started, failed, exited, ended; or record_failed, stuck, broken.
"""

import os
import sys

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from guard.supervisor import Guard


def main(words: list[str]) -> int:
    options = dict[str, str]()
    while (word := words.pop(0)) != "--":
        options[word[2:]] = words.pop(0)
    guard = Guard(options, words)
    try:
        return guard.run()
    except Exception as e:
        guard.report(event="broken", message=repr(e))  # its stderr leads nowhere by now
        raise


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))  # nobody waits for the modules to be taken apart
