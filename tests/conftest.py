"""What holds after every test: no process of it is left, and no descriptor.

Owns that check and the place of the two users. Serves design section 6: a test that leaks shows a product that does.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import time
from collections.abc import Iterator

import pytest
from turns import living, user
from whole import whole_user

__all__ = ["user", "whole_user"]

LEFT_S = 10.0  # what was killed in a test's last line is gone after milliseconds, on a loaded machine after more
POLL_S = 0.01
PR_SET_CHILD_SUBREAPER = 36


def children() -> set[int]:
    """Our own child processes, zombies too: whoever started one has to wait for it."""
    found: set[int] = set()
    for task in os.listdir("/proc/self/task") if os.path.isdir("/proc/self/task") else ():
        try:
            with open(f"/proc/self/task/{task}/children", encoding="ascii") as file:
                found.update(map(int, file.read().split()))
        except OSError:  # the thread is gone, or the kernel doesn't tell
            continue
    return found


def descriptors() -> dict[int, str]:
    folder = "/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"
    found = {}
    for name in os.listdir(folder):
        try:
            found[int(name)] = os.readlink(f"{folder}/{name}")
        except OSError:  # the one that listed the folder, or no link
            continue
    return found


def adopt_no_more() -> None:
    """A turn that ran in this process made it a subreaper: what the next test kills would become ours to reap."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


@pytest.fixture(autouse=True)
def nothing_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """Set up before every other fixture of a test, so that it looks when all of them are done."""
    adopt_no_more()
    before, open_before = children(), descriptors()
    mark = str(request.getfixturevalue("tmp_path")) if "tmp_path" in request.fixturenames else None
    yield
    until = time.monotonic() + LEFT_S
    while left := _left(before, open_before, mark):
        if time.monotonic() > until:
            pytest.fail(f"left behind: {left}")
        gc.collect()
        time.sleep(POLL_S)


def _left(before: set[int], open_before: dict[int, str], mark: str | None) -> list[str]:
    left = [f"child {pid}" for pid in children() - before]
    left += [f"descriptor {fd} -> {what}" for fd, what in descriptors().items() if fd not in open_before]
    return left + (living(f"{mark}/") if mark else [])
