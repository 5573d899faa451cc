"""Runs a command and holds its output back from the moment its input has held a word: `hold.py WORD -- ARGV`.

For the moment between turn/start and turn/started, which a real codex leaves open for a few milliseconds only.
Standard library only.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading

READ_BYTES = 1 << 16


def main(argv: list[str]) -> int:
    word, command = argv[0].encode(), argv[2:]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None
    assert child.stdout is not None
    held, source, target = threading.Event(), child.stdout.fileno(), child.stdin.fileno()

    def back() -> None:
        while (data := os.read(source, READ_BYTES)) and not held.is_set():
            os.write(1, data)

    threading.Thread(target=back, daemon=True).start()
    seen = b""
    while data := os.read(0, READ_BYTES):
        seen += data
        if word in seen:
            held.set()
        os.write(target, data)
    child.stdin.close()
    return child.wait()


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))  # the other thread may be in a read that never ends
