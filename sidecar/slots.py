"""The slots of a harness: how many turns may run at once on this machine, for this user, in the order of asking.

Owns: the lock files below `<runtime>/slots`, the queue. Does not own: the sleep between two polls, or
what runs in a slot. A slot is an flock, so the kernel frees it when the last process that has its descriptor is gone.
Serves spec:cc-agents.codex-adapter (rule.defaultCap, rule.slotsInOrder, rule.slotFreed) and design section 7.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, NamedTuple

from sidecar import files, flocks, paths
from sidecar.capacity import default_cap as default_cap
from sidecar.errors import UserError

POLL_S = 0.1  # between two polls of a waiter: short next to any turn, and a poll costs some 10 us
LOCK_WAIT_S = 0.5  # for the bucket's lock, which is held for under 1 ms unless its holder was stopped
LOCK_RETRY_S = 0.001

_KEY = r"[a-z0-9][a-z0-9_-]*"
_HOLDER: dict[str, type] = {
    "job": str,
    "pid": int,
    "started_at": float,
    "cwd": str,
    "label": str,
}  # the fields of Holder
_NOBODY = "~"  # sorts after every ticket
_serial = itertools.count()


class Holder(NamedTuple):
    """Who has a slot; None where its file says nothing (the holder died while it wrote)."""

    slot: int
    job: str | None = None
    pid: int | None = None
    started_at: float | None = None  # Unix time
    cwd: str | None = None
    label: str | None = None


class Slot:
    """One slot that is ours. `fd` carries the lock: whoever inherits it (the guard) keeps the slot taken."""

    __slots__ = ("fd", "key", "number")

    def __init__(self, key: str, number: int, fd: int) -> None:
        self.key = key
        self.number = number
        self.fd = fd

    def release(self) -> None:
        """Close our descriptor, and no more: an unlock would take the slot from under the guard."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)


def try_take(runtime: str, key: str, cap: int, holder: Mapping[str, Any]) -> Slot | None:
    """A slot at once, or None when all are taken or anybody is waiting. `holder`: job, cwd, label as text."""
    bucket = _Bucket(runtime, key)
    with bucket.lock(LOCK_WAIT_S) as ours:
        if not ours or bucket.waiter_before(_NOBODY):
            return None
        return bucket.take(cap, holder)


def keys(runtime: str) -> list[str]:
    """The keys that anybody has asked a slot of since the machine started."""
    return sorted(n.removesuffix(".queue") for n in _listdir(os.path.join(runtime, "slots")) if n.endswith(".queue"))


def holders(runtime: str, key: str) -> list[Holder]:
    """Who has the slots of `key` now. Raises `UserError` when a stopped process keeps the bucket's lock."""
    bucket = _Bucket(runtime, key)
    with bucket.lock(LOCK_WAIT_S) as ours:
        if not ours:
            raise UserError("slots_busy", f"{bucket.mutex} stays locked: a process that uses it is stopped")
        return bucket.holders()


class Waiter:
    """A place in the queue, from `with` to the slot or the end of the block.

    The place is an flocked file, so a waiter that dies loses it. Poll every `POLL_S`; a poll never blocks.
    """

    def __init__(self, runtime: str, key: str, cap: int, holder: Mapping[str, Any]) -> None:
        self._bucket = _Bucket(runtime, key)
        self._cap = cap
        self._holder = holder
        self._ticket = ""
        self._fd = -1
        self._before: str | None = None
        self._holders: list[Holder] = []

    def __enter__(self) -> Waiter:
        with self._bucket.lock(LOCK_WAIT_S) as ours:
            if ours:
                self._join()
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None) -> None:
        self._leave()

    def poll(self) -> Slot | None:
        """The slot, once every earlier waiter has left and one is free; then the place in the queue is given up."""
        # The usual answer, without the bucket's lock: the one just ahead is still there. Its ticket was locked
        # when we saw it, so this look can't catch it between its making and its locking.
        if self._before and flocks.is_locked(self._bucket.ticket(self._before)):
            return None
        self._bucket.make()
        with self._bucket.lock(0) as ours:
            if not ours:
                return None
            if not self._ticket or not os.path.exists(self._bucket.ticket(self._ticket)):
                self._join()  # not yet in the queue, or a cleaner of temporary files removed our ticket
            self._before = self._bucket.waiter_before(self._ticket)
            slot = None if self._before else self._bucket.take(self._cap, self._holder)
        if slot:
            self._leave()
        return slot

    @property
    def ahead(self) -> int:
        """How many tickets are before ours, for a person: one of a waiter that just died may be among them."""
        return sum(name < (self._ticket or _NOBODY) for name in self._bucket.tickets())

    @property
    def holders(self) -> list[Holder]:
        """Who has the slots, as of the last time it could be seen without blocking."""
        with self._bucket.lock(0) as ours:
            if ours:
                self._holders = self._bucket.holders()
        return self._holders

    def _join(self) -> None:
        self._ticket = self._ticket or f"{time.monotonic_ns():020d}-{os.getpid()}-{next(_serial)}"
        flocks.leave(self._fd)
        self._fd = flocks.take(self._bucket.ticket(self._ticket))

    def _leave(self) -> None:
        if self._fd >= 0:
            _unlink(self._bucket.ticket(self._ticket))
            flocks.leave(self._fd)
            self._fd = -1


class _Bucket:
    """The files of one key. What changes or probes slots and tickets happens under `lock`, one process at a time.

    So nobody who probes a slot (by locking it for a moment) can make a starter believe that it is taken, no ticket is
    seen between its making and its locking, and the order of tickets is the order of the lock.
    """

    def __init__(self, runtime: str, key: str) -> None:
        if not re.fullmatch(_KEY, key):
            raise ValueError(f"not a slot key: {key!r}")
        self.key = key
        self._dir = os.path.join(runtime, "slots")
        self._queue = os.path.join(self._dir, f"{key}.queue")
        self._file = re.compile(rf"{key}\.(\d+)\.lock", re.ASCII)
        self.mutex = os.path.join(self._dir, f"{key}.mutex")
        self.make()

    def make(self) -> None:
        for path in (self._dir, self._queue):
            paths.make_private(path, reason="runtime_dir")

    @contextmanager
    def lock(self, wait_s: float) -> Iterator[bool]:
        """The bucket's lock for the block; False when another process still has it after `wait_s`."""
        end = time.monotonic() + wait_s
        while (fd := flocks.take(self.mutex)) < 0 and time.monotonic() < end:
            time.sleep(LOCK_RETRY_S)
        try:
            yield fd >= 0
        finally:
            flocks.leave(fd)

    def take(self, cap: int, holder: Mapping[str, Any]) -> Slot | None:
        # Counted over every file, not the first `cap`: who started under a higher cap may hold a high number.
        taken = set(self._taken())
        if len(taken) >= cap:
            return None
        number = next(n for n in itertools.count(1) if n not in taken)
        fd = flocks.take(self._slot(number))
        if fd < 0:
            return None
        data = {"pid": os.getpid(), "started_at": time.time(), **holder}
        try:
            os.ftruncate(fd, 0)
            os.pwrite(fd, json.dumps(data).encode("ascii"), 0)
        except OSError as e:
            os.close(fd)
            raise UserError("runtime_dir", f"cannot write {self._slot(number)}: {e.strerror}") from e
        return Slot(self.key, number, fd)

    def holders(self) -> list[Holder]:
        return [_read_holder(self._slot(n), n) for n in self._taken()]

    def _taken(self) -> list[int]:
        found = (self._file.fullmatch(name) for name in _listdir(self._dir))
        return sorted(n for m in found if m and flocks.is_locked(self._slot(n := int(m[1]))))

    def _slot(self, number: int) -> str:
        return os.path.join(self._dir, f"{self.key}.{number}.lock")

    def ticket(self, name: str) -> str:
        return os.path.join(self._queue, name)

    def tickets(self) -> list[str]:
        return sorted(_listdir(self._queue))

    def waiter_before(self, ticket: str) -> str | None:
        """The ticket just before `ticket` whose owner lives; dead ones on the way are removed."""
        for name in reversed([t for t in self.tickets() if t < ticket]):
            if flocks.is_locked(self.ticket(name)):
                return name
            _unlink(self.ticket(name))
        return None


# --- files ----------------------------------------------------------------------------------------------------


def _unlink(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)


def _listdir(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except FileNotFoundError:
        return []


def _read_holder(path: str, number: int) -> Holder:
    data, _ = files.load_json(path)
    known: dict[str, Any] = {k: v for k, t in _HOLDER.items() if isinstance(v := (data or {}).get(k), t)}
    return Holder(number)._replace(**known)
