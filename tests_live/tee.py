"""Runs a command and writes both directions of its standard streams to a file: `tee.py FOLDER -- ARGV`.

Owns: the copying, and the end (the command's exit code; its stdin ends when ours does). Each run has a file of
its own in the folder, a line is {"dir": "in" | "out", "line": text}: "in" went to the command.
Run as a script; standard library only.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

READ_BYTES = 1 << 16


def write_tee(path: Path, folder: Path, argv: Sequence[str]) -> Path:
    """An executable at `path` that stands for `argv`, further arguments passed on, and logs into `folder`."""
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-I", os.path.abspath(__file__), str(folder), "--", *argv]
    path.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
    path.chmod(0o700)
    return path


def read_logs(folder: Path) -> list[tuple[list[bytes], list[bytes]]]:
    """For each run, oldest first: the lines that went to the command, and those that came from it."""
    found = []
    for log in sorted(folder.iterdir()):
        entries = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
        to, back = (
            [entry["line"].encode("utf-8", "surrogateescape") for entry in entries if entry["dir"] == direction]
            for direction in ("in", "out")
        )
        found.append((to, back))
    return found


def copy(source: int, target: int, direction: str, log: int, lock: threading.Lock) -> None:
    """Bytes as they come to `target`; whole lines to the log. `target` is closed at the end of `source`."""
    pending = b""
    while chunk := os.read(source, READ_BYTES):
        *lines, pending = (pending + chunk).split(b"\n") if b"\n" in chunk else [pending + chunk]
        for line in lines:
            text = line.decode("utf-8", "surrogateescape")
            with lock:
                os.write(log, json.dumps({"dir": direction, "line": text}).encode() + b"\n")
        try:
            write_all(target, chunk)
        except BrokenPipeError:
            break
    os.close(target)


def write_all(target: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(target, view) :]


def main(argv: list[str]) -> int:
    name = os.path.join(argv[0], f"{time.time_ns()}-{os.getpid()}")
    log = os.open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    child = subprocess.Popen(argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None
    assert child.stdout is not None
    lock = threading.Lock()
    to = (0, os.dup(child.stdin.fileno()), "in", log, lock)
    back = (child.stdout.fileno(), os.dup(1), "out", log, lock)
    child.stdin.close()
    os.close(1)
    threading.Thread(target=copy, args=to, daemon=True).start()
    copy(*back)
    return child.wait()


if __name__ == "__main__":
    code = main(sys.argv[1:])
    os._exit(code if code >= 0 else 128 - code)  # the other thread may be in a read that never ends
