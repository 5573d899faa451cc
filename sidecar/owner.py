"""Who owns a job, and whether that process still lives: by pid, start time and boot, never by pid alone.

Owns: the identity of a process. Does not own: jobs (store) or ending anything (launch).
Serves spec:cc-agents.codex-adapter (rule.ownerGone) and design section 8.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

START_SLACK_S = 1.0  # where psutil tells the start: it is rounded differently by different versions

_LINUX = sys.platform.startswith("linux")


def this_process() -> dict[str, Any]:
    """The owner record of this process: pid, start_time, boot_id."""
    pid = os.getpid()
    return {"pid": pid, "start_time": start_time(pid), "boot_id": boot_id()}


def owner_alive(owner: Mapping[str, Any]) -> bool:
    """Whether the very process of `owner` runs. A zombie doesn't; one whose start can't be told doesn't either."""
    pid, started = owner.get("pid"), owner.get("start_time")
    if not isinstance(pid, int) or isinstance(pid, bool) or pid <= 0 or not isinstance(started, int | float):
        return False
    if owner.get("boot_id") != boot_id():
        return False
    now = start_time(pid)
    return now is not None and abs(now - started) <= (0 if _LINUX else START_SLACK_S)


def start_time(pid: int) -> float | None:
    """When `pid` started: clock ticks since boot on Linux, Unix seconds elsewhere. None when it is gone or a zombie."""
    if not _LINUX:
        return _start_by_psutil(pid)
    try:
        with open(f"/proc/{pid}/stat", "rb") as f:
            # The command name is in brackets and may hold spaces and brackets itself: fields count from the last one.
            fields = f.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def _start_by_psutil(pid: int) -> float | None:
    import psutil

    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    except psutil.Error:
        return None


def boot_id() -> str:
    """What tells this boot from others; empty where the system has no such thing."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
            return f.read().strip()
    except OSError:
        return ""
