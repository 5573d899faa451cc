"""Lock files: a lock is an flock, so the kernel frees it when the last process that has its descriptor is gone.

Owns: taking, probing and leaving one. Does not own: what a lock stands for (slots, threads).
Serves rule.slotFreed.
"""

from __future__ import annotations

import fcntl
import os

from sidecar.errors import UserError


def take(path: str) -> int:
    """A descriptor that has the lock of the file at `path`, which is made if need be; -1 when another has it."""
    while True:
        fd = _open(path, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # A cleaner of temporary files may have unlinked it between open and flock: a lock on nothing.
            if os.path.exists(path) and os.path.samestat(os.fstat(fd), os.stat(path)):
                return fd
        except BlockingIOError:
            os.close(fd)
            return -1
        except OSError as e:
            os.close(fd)
            raise UserError("runtime_dir", f"cannot lock {path}: {e.strerror}") from e
        os.close(fd)


def is_locked(path: str) -> bool:
    try:
        fd = _open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: two who look don't take each other for an owner
    except BlockingIOError:
        os.close(fd)
        return True
    leave(fd)
    return False


def leave(fd: int) -> None:
    """Unlock and close. A fork elsewhere in this process may share `fd` until its exec: closing isn't enough."""
    if fd >= 0:
        fcntl.flock(fd, fcntl.LOCK_UN)
        os.close(fd)


def _open(path: str, flags: int) -> int:
    try:
        return os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except FileNotFoundError:
        raise
    except OSError as e:
        raise UserError("runtime_dir", f"cannot open {path}: {e.strerror}") from e
