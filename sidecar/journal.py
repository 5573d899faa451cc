"""The events of one job, one JSON object a line, only ever appended.

Owns: events.ndjson while a turn writes it, and the reading of it. Does not own: what the events are (turn), or showing
them (render). A full disk costs the journal, never the turn. Serves design section 8.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sidecar import files

FLUSH_BYTES = 32 * 1024  # 20,000 deltas become some 100 writes
FLUSH_AFTER_S = 0.25  # what a person who follows the events may wait for a line while more are coming


class Journal:
    """Appends events. Flush when the turn falls silent; `FLUSH_AFTER_S` is looked at only on the next write.

    The first OSError ends the journal and is told to `warn`, once, as one line. Raises it only from the constructor.
    """

    def __init__(self, path: str, *, warn: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._warn = warn
        self._clock = clock
        self._lines: list[bytes] = []
        self._size = 0
        self._since = 0.0
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def write(self, event: Mapping[str, Any]) -> None:
        """Add one event. It is on disk after `flush`, or sooner."""
        if self._fd < 0:
            return
        line = files.json_line(event)
        if not self._lines:
            self._since = self._clock()
        self._lines.append(line)
        self._size += len(line)
        if self._size >= FLUSH_BYTES or self._clock() - self._since >= FLUSH_AFTER_S:
            self.flush()

    def flush(self) -> None:
        """Hand everything to the kernel: then it survives a kill -9 of this process."""
        data, self._lines, self._size = b"".join(self._lines), [], 0
        try:
            while data and self._fd >= 0:
                data = data[os.write(self._fd, data) :]
        except OSError as e:
            self._shut()
            self._warn(f"the events are no longer recorded: {e.strerror}")

    def close(self) -> None:
        """Flush and close; more than once is fine, and so is a write after it, which does nothing."""
        self.flush()
        self._shut()

    def _shut(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


def read_events(path: str, offset: int = 0) -> Iterator[tuple[dict[str, Any], int]]:
    """The events from byte `offset` on, each with the offset after it. A line without its end is left for later.

    A whole line that is no JSON object (its writer died, or the disk was full) is passed by. No file, no events.
    """
    try:
        f = open(path, "rb")
    except FileNotFoundError:
        return
    with f:
        f.seek(offset)
        for line in f:
            if not line.endswith(b"\n"):
                return
            offset += len(line)
            event = _object(line)
            if event is not None:
                yield event, offset


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) else None
