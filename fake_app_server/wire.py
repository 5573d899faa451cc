"""Bytes of the fake: the output line writer, the event log, and ids that look like Codex' own.

Owns: standard output, the log file. Does not own: what is said (answers, steps). Serves spec:cc-agents.fakes.
"""

from __future__ import annotations

import json
import os
import threading
import time
from typing import Any

Message = dict[str, Any]

# One write may be larger than a pipe takes at once; a flood is handed over in pieces of this many bytes.
FLOOD_CHUNK = 65536


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def new_id() -> str:
    """A UUID of version 7, as threads, turns and user messages have."""
    head = now_ms().to_bytes(6, "big").hex()
    tail = os.urandom(10).hex()
    return f"{head[:8]}-{head[8:]}-7{tail[1:4]}-8{tail[5:8]}-{tail[8:20]}"


def encode(message: Message) -> bytes:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


class Log:
    """Newline-delimited JSON, one O_APPEND write a line, so that a test can read it while the fake runs."""

    def __init__(self, path: str | None) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
        self._fd = os.open(path, flags, 0o600) if path else None

    def write(self, **entry: Any) -> None:
        if self._fd is not None:
            os.write(self._fd, json.dumps(entry).encode() + b"\n")


class Output:
    """Standard output: whole lines from several threads, and raw bytes where a scenario asks for them."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._lock = threading.RLock()
        self._open = True
        self.opted_out: frozenset[str] = frozenset()

    def send(self, message: Message, drip: int = 0) -> None:
        self.raw(encode(message) + b"\n", drip)

    def notify(self, method: str, params: Message, drip: int = 0) -> None:
        if method not in self.opted_out:
            self.send({"method": method, "params": params, "emittedAtMs": now_ms()}, drip)

    def raw(self, data: bytes, drip: int = 0, pause_s: float = 0.0) -> None:
        """Writes `data` as it is; `drip` is the number of bytes of each write, 0 for as many as go."""
        with self._lock:
            view = memoryview(data)
            while view and self._open:
                try:
                    view = view[os.write(1, view[:drip] if drip else view) :]
                except BrokenPipeError:
                    self._open = False
                    self._log.write(stdout="broken")
                if pause_s and view:
                    time.sleep(pause_s)

    def finish_line(self, patience_s: float) -> None:
        """Waits until nobody is in the middle of a line, and lets nobody begin another."""
        self._lock.acquire(timeout=patience_s)
        self._open = False

    def close(self) -> None:
        """The reader sees end of file; descriptor 1 stays taken, so that nothing else can land on it."""
        with self._lock:
            self._open = False
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.close(null)
