"""What the system says of its processes: /proc on Linux, psutil elsewhere.

Owns: one process as it is read, and the four readings. Does not own: whose it is (orphans.py).
Serves spec:cc-agents.work-containment.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from adapters.values import Value


class Proc(Value):
    """A living process. `start_time` as in the record: clock ticks since boot, elsewhere seconds since 1970."""

    pid: int
    start_time: int
    ppid: int
    pgid: int

    @property
    def key(self) -> tuple[int, int]:
        return self.pid, self.start_time


def same_start(one: int, other: int) -> bool:
    """Exact in clock ticks; in seconds the two who tell may have rounded differently."""
    return abs(one - other) <= (0 if sys.platform == "linux" else 1)


# --- Linux ----------------------------------------------------------------------------------------------------


def linux_pids() -> set[int]:
    return {int(name) for name in os.listdir("/proc") if name.isdigit()}


def linux_proc(pid: int) -> Proc | None:
    fields = stat_of(pid)
    if not fields or (fields[0] in (b"Z", b"X") and fields[17] in (b"0", b"1")):  # gone, or ended and not reaped
        return None
    return Proc(pid=pid, start_time=int(fields[19]), ppid=int(fields[1]), pgid=int(fields[2]))


def linux_environment(pid: int) -> set[str]:
    return set(_read(f"/proc/{pid}/environ").decode("utf-8", "surrogateescape").split("\0"))


def linux_limit(pid: int) -> int | None:
    """The soft limit on file locks; None where there is none."""
    _, _, after = _read(f"/proc/{pid}/limits").partition(b"Max file locks")
    word = after.split(None, 1)[0] if after else b""
    return int(word) if word.isdigit() else None


def linux_boot_id() -> str | None:
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


def linux_ended_children() -> list[int]:
    """Our own children that wait to be reaped."""
    me = b"%d" % os.getpid()
    return [pid for pid in linux_pids() if (f := stat_of(pid)) and f[0] == b"Z" and f[1] == me]


def stat_of(pid: int) -> list[bytes]:
    """The fields from the state on; none when it is gone. The name before them may hold anything, ")" too."""
    return _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:  # gone, or not ours to read
        return b""


# --- elsewhere ------------------------------------------------------------------------------------------------


def other_pids() -> set[int]:
    import psutil

    return set(psutil.pids())


def other_proc(pid: int) -> Proc | None:
    import psutil

    try:
        p = psutil.Process(pid)
        if p.status() == psutil.STATUS_ZOMBIE:
            return None
        return Proc(pid=pid, start_time=int(p.create_time()), ppid=p.ppid(), pgid=os.getpgid(pid))
    except (psutil.Error, ProcessLookupError, PermissionError):
        return None


def other_environment(pid: int) -> set[str]:
    import psutil

    try:
        return {f"{k}={v}" for k, v in psutil.Process(pid).environ().items()}
    except (psutil.Error, OSError):
        return set()


def no_limit(_: int) -> int | None:
    return None


def no_boot_id() -> str | None:
    return None


pids: Callable[[], set[int]]
read_proc: Callable[[int], Proc | None]
environment: Callable[[int], set[str]]
limit: Callable[[int], int | None]
boot_id: Callable[[], str | None]
if sys.platform == "linux":
    pids, read_proc, environment, limit, boot_id = (
        linux_pids,
        linux_proc,
        linux_environment,
        linux_limit,
        linux_boot_id,
    )
else:
    pids, read_proc, environment, limit, boot_id = other_pids, other_proc, other_environment, no_limit, no_boot_id
