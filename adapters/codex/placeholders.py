"""What Codex's sandbox leaves behind in writable folders: empty mount points of what was not there.

Owns: knowing them before the turn and removing those that are still empty after it. Codex 0.171 removes its own, but
for a race that leaves some of every other write turn. Never removes what is not empty, or what another Codex uses now.
Serves rule.leavesNothing.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress

# Codex mounts an empty folder over each of these in each writable folder.
IN_EACH_FOLDER = (".git", ".codex", ".agents", ".aws")


def missing(writable: Iterable[str], kept: Iterable[str]) -> tuple[str, ...]:
    """The paths that are not there now, and that may be there as mount points after a turn."""
    candidates = [os.path.join(folder, name) for folder in writable for name in IN_EACH_FOLDER]
    return tuple(path for path in dict.fromkeys((*candidates, *kept)) if not os.path.lexists(path))


def remove(paths: Iterable[str], environ: Mapping[str, str]) -> None:
    """Those that are an empty folder, or an empty file that nobody may write, as Codex makes them."""
    with _no_other_sandbox(environ) as alone:
        for path in paths if alone else ():
            with suppress(OSError):  # not there, or not empty: then it is somebody's
                found = os.lstat(path)
                if stat.S_ISDIR(found.st_mode):
                    os.rmdir(path)
                elif stat.S_ISREG(found.st_mode) and found.st_size == 0 and stat.S_IMODE(found.st_mode) == 0o444:
                    os.unlink(path)


@contextmanager
def _no_other_sandbox(environ: Mapping[str, str]) -> Iterator[bool]:
    """Whether no Codex has a sandbox up, by its own register; none comes up within this block."""
    register = os.path.join(environ.get("TMPDIR") or "/tmp", f"codex-bwrap-synthetic-mount-targets-{os.geteuid()}")
    try:
        lock = os.open(os.path.join(register, "lock"), os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        yield True  # no sandbox ever was
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield not any(_lives(name) for _, _, names in os.walk(register) for name in names)
    except BlockingIOError:
        yield False
    finally:
        os.close(lock)


def _lives(name: str) -> bool:
    """A marker's name is the pid of who has the mount."""
    if not name.isdigit():
        return False
    try:
        os.kill(int(name), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
