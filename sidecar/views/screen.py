"""Writes to stdout and stderr from a thread of its own.

Owns: the order of what is written, and that a reader who is slow or gone holds nobody up: the turn goes on, Ctrl-C
works, and what can't be shown is told once. Does not own what is written (render.py).
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

TICK_S = 1.0  # how often the line with the elapsed time is drawn again on a terminal


class Screen:
    def __init__(self, *, on_tick: Callable[[], None] | None = None) -> None:
        self._queue: SimpleQueue[tuple[int, bytes] | None] = SimpleQueue()
        self._on_tick = on_tick
        self._thread: threading.Thread | None = None
        self.broken: OSError | None = None  # stdout can't be written any more

    def write(self, fd: int, data: bytes) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="screen", daemon=True)
            self._thread.start()
        self._queue.put((fd, data))

    def finish(self, within_s: float | None) -> bool:
        """Writes what is left; False when that takes longer than `within_s` (the reader is stuck). None: no bound."""
        if self._thread is None:
            return True
        self._queue.put(None)
        self._thread.join(within_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            try:
                job = self._queue.get(timeout=TICK_S if self._on_tick else None)
            except Empty:
                if self._on_tick is not None:
                    self._on_tick()
                continue
            if job is None:
                return
            try:
                write_all(*job)
            except OSError as error:
                if job[0] == 1:
                    self.broken = error


def write_all(fd: int, data: bytes) -> None:
    """Raises OSError (BrokenPipeError when the reader has gone)."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(fd, rest) :]
        except BlockingIOError:  # whoever gave us this end made it so, as Node does; a write waits all the same
            select.select([], [fd], [])
