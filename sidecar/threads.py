"""Which turn has which thread: one lock file a thread, held by the sidecar and by the guard, like a slot.

Owns: the lock files below `<runtime>/threads`, and the refusal that names the holder. Does not own: the harness' own
idea of a thread. So a new turn starts only after the old one's last process is gone. Serves rule.followUp.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from adapters.contract import Problem, Refused
from sidecar import files, flocks, owner, paths

DYING_S = 15.0  # the guard of a dead sidecar needs 250 ms; a broken one is ended by record within ten seconds
POLL_S = 0.02  # while a dying turn is waited for
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,63}")
_serial = itertools.count()


class ThreadLock:
    """The lock of the thread of one turn. `fd` carries it: whoever inherits it (the guard) keeps the thread taken."""

    def __init__(self, folder: str, path: str, fd: int) -> None:
        self._folder = folder
        self._path = path
        self.fd = fd

    def tell(self, **holder: Any) -> None:
        """What others read of the holder: job, cwd. Raises OSError."""
        data = json.dumps({**owner.this_process(), "since": time.time(), **holder}).encode("ascii")
        os.ftruncate(self.fd, 0)
        os.pwrite(self.fd, data, 0)

    def name(self, thread: str) -> None:
        """A new thread has got its id: from now on the lock is found under it. The lock itself is never let go."""
        path = _path(self._folder, thread)
        if path != self._path and not os.path.exists(path):
            os.rename(self._path, path)
            self._path = path

    def release(self) -> None:
        """Let go. The file is removed when nobody else has the lock: the guard may live on, and then it stays."""
        fd, self.fd = self.fd, -1
        if fd < 0:
            return
        os.close(fd)
        if (again := flocks.take(self._path)) >= 0:
            with suppress(FileNotFoundError):
                os.unlink(self._path)
            flocks.leave(again)


def take(runtime: str, thread: str | None, stopped: Callable[[], bool] = lambda: False) -> ThreadLock:
    """The lock of a thread, or of one that will get its id later. Raises Refused (`thread_busy`) with the holder.

    A holder that is dead while its processes are still being ended is waited for, blocking, at most `DYING_S`; raises
    KeyboardInterrupt once `stopped` says that nobody wants to wait any more.
    """
    folder = paths.make_private(os.path.join(runtime, "threads"), reason="runtime_dir")
    if thread is None:
        path = os.path.join(folder, f".new-{os.getpid()}-{next(_serial)}.lock")
        return ThreadLock(folder, path, flocks.take(path))
    path = _path(folder, thread)
    end = time.monotonic() + DYING_S
    while (fd := flocks.take(path)) < 0:
        holder, _ = files.load_json(path)
        if (holder is not None and owner.owner_alive(holder)) or time.monotonic() > end:
            raise Refused(Problem(reason="thread_busy", message=_busy(thread, holder or {})))
        if stopped():
            raise KeyboardInterrupt
        time.sleep(POLL_S)
    return ThreadLock(folder, path, fd)


def _busy(thread: str, holder: Mapping[str, Any]) -> str:
    who = f"job {holder['job']}" if holder.get("job") else f"process {holder.get('pid', 'unknown')}"
    return f"thread {thread} is in use by {who}: wait for it, steer it or interrupt it"


def _path(folder: str, thread: str) -> str:
    if _PLAIN.fullmatch(thread):
        return os.path.join(folder, f"{thread}.lock")
    import hashlib  # for an id that Codex wouldn't make

    return os.path.join(folder, f"={hashlib.sha256(os.fsencode(thread)).hexdigest()}.lock")
