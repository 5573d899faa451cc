"""What a turn left behind when its guard was killed by -9: finding it and ending it.

Owns: survivors by the guard's record, by the turn's two marks, by adoption, and their descendants. Does not own: ending
a turn whose guard lives (the guard does), jobs, slots. Never goes by name; a pid counts only with its start time.
Serves spec:cc-agents.work-containment (rule.guardKilled, rule.secondSubreaper, rule.markOfLimits).
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from typing import Any

from adapters.values import Value
from sidecar.leftovers.marks import limit_mark
from sidecar.leftovers.process_table import (
    Proc,
    boot_id,
    environment,
    limit,
    linux_ended_children,
    pids,
    read_proc,
    same_start,
)

__all__ = ["MARKER", "Adopted", "end_survivors", "environment", "find_survivors", "guard_ends", "owner_alive", "pids"]

MARKER = "CC_AGENTS_TURN"
LOOK_S = 0.02  # between two looks while survivors end: a look costs some milliseconds
LISTINGS = 20  # of the process table in one look; the busiest machine has an end
END_S = 10.0  # for the KILL part: what still lives then sleeps in the kernel or is another user's

Record = dict[str, Any]


def read_record(path: str) -> Record | None:
    """The guard's record, None if there is none. Raises ValueError if it isn't one."""
    try:
        with open(path, encoding="utf-8") as file:
            record = json.load(file)
    except FileNotFoundError:
        return None
    if not isinstance(record, dict) or record.get("version") != 1:
        raise ValueError(f"{path} is not a record of a guard")
    return record


def owner_alive(record: Record) -> bool:
    """Does the guard of this record still live? Then the turn is its business."""
    guard = record["guard"]
    proc = read_proc(guard["pid"]) if record["boot_id"] == boot_id() else None
    return proc is not None and same_start(proc.start_time, guard["start_time"])


class Adopted(Value):
    """Children of this process that it did not start: it is a subreaper, and their guard was killed.

    Only those no older than that guard count, and none of `ours`.
    """

    since: int  # the start time of the guard that was killed
    ours: Callable[[], frozenset[int]]  # pids of the children that it did start; asked after each look


def find_survivors(record: Record | None, turn: str | None, adopted: Adopted | None = None) -> list[Proc]:
    """The living processes of a turn, by its record, its marks, adoption and descent; oldest first.

    Never this process or an ancestor of it. A living guard is one of them if it carries the marker.
    """
    table, marked = snapshot(turn)
    spared = ancestors(table)
    found = {pid: table[pid] for pid in (by_record(record, table) | marked | by_adoption(adopted, table)) - spared}
    grew = True
    while grew:
        below = [p for p in table.values() if p.ppid in found and p.pid not in found and p.pid not in spared]
        found.update({p.pid: p for p in below})
        grew = bool(below)
    return sorted(found.values(), key=lambda p: p.key[::-1])


def snapshot(turn: str | None) -> tuple[dict[int, Proc], set[int]]:
    """All processes, and the pids of those that carry one of the turn's marks.

    Listed again until nothing is new: a process that forks and exits all the time is never in a finished listing.
    """
    table: dict[int, Proc] = {}
    marked: set[int] = set()
    looked: set[int] = set()
    mark = limit_mark(turn) if turn else -1
    for _ in range(LISTINGS):
        fresh = pids() - looked
        if not fresh:
            break
        looked |= fresh
        for pid in fresh:
            if proc := read_proc(pid):
                table[pid] = proc
                if turn and (limit(pid) == mark or f"{MARKER}={turn}" in environment(pid)):
                    marked.add(pid)
    return table, marked


def by_record(record: Record | None, table: dict[int, Proc]) -> set[int]:
    """Recorded processes, and the groups that still hold one: only then the group's number means the same group."""
    if record is None or record["boot_id"] != boot_id():
        return set()
    entries = [record["app_server"], *record["groups"]]
    known = [p for e in entries if (p := table.get(e["pid"])) and same_start(p.start_time, e["start_time"])]
    groups = {p.pgid for p in known}
    return {p.pid for p in known} | {p.pid for p in table.values() if p.pgid in groups}


def by_adoption(adopted: Adopted | None, table: dict[int, Proc]) -> set[int]:
    if adopted is None:
        return set()
    ours = adopted.ours()  # later than the look: a guard that was started meanwhile is known by now
    children = (p for p in table.values() if p.ppid == os.getpid() and p.pid not in ours)
    return {p.pid for p in children if p.start_time >= adopted.since}


def ancestors(table: dict[int, Proc]) -> set[int]:
    """This process and all above it."""
    line, pid = {0, 1}, os.getpid()
    while pid not in line:
        line.add(pid)
        pid = table[pid].ppid if pid in table else 0
    return line


def end_survivors(
    record: Record | None,
    turn: str | None,
    *,
    grace_s: float,
    force: bool = False,
    adopted: Adopted | None = None,
) -> int:
    """TERM, grace, KILL until nothing is found; how many have been ended. Blocking; bounded by grace_s + END_S.

    Does nothing while the guard of the record lives, unless forced. What can't be ended is still found afterwards.
    """
    if record is not None and not force and owner_alive(record):
        return 0
    until = time.monotonic() + grace_s
    seen: dict[tuple[int, int], Proc] = {}
    asked: set[tuple[int, int]] = set()
    while (left := look(record, turn, seen, adopted)) and time.monotonic() < until:
        fresh = [p for p in left if p.key not in asked]
        signal_each(fresh, signal.SIGTERM)
        signal_each(fresh, signal.SIGCONT)  # the stopped can't hear TERM before it
        asked.update(p.key for p in fresh)
        time.sleep(LOOK_S)
    until = time.monotonic() + END_S
    while left and time.monotonic() < until:
        signal_each(freeze(record, turn, seen, adopted), signal.SIGKILL)
        time.sleep(LOOK_S)
        left = look(record, turn, seen, adopted)
    reap(adopted)
    return len(seen.keys() - {p.key for p in left})


def reap(adopted: Adopted | None) -> None:
    """The adopted ones are ours to wait for, or they would stay as zombies. Never a guard: its owner waits for it."""
    if adopted is not None:
        ended = linux_ended_children()
        for pid in set(ended) - adopted.ours():
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                continue  # reaped by another thread of ours


def guard_ends(record: Record, within_s: float) -> bool:
    """Whether the guard of a turn that is over ends in time; one that was stopped goes on now. Blocking."""
    until = time.monotonic() + within_s
    while owner_alive(record):
        if time.monotonic() > until:
            return False
        guard = read_proc(record["guard"]["pid"])
        if guard is not None and same_start(guard.start_time, record["guard"]["start_time"]):
            signal_each([guard], signal.SIGCONT)  # says nothing to one that runs
        time.sleep(LOOK_S)
    return True


def look(
    record: Record | None, turn: str | None, seen: dict[tuple[int, int], Proc], adopted: Adopted | None
) -> list[Proc]:
    """The survivors, and those seen before that have lost every trace but their pid and start time."""
    found = {p.key: p for p in find_survivors(record, turn, adopted)}
    for key in seen.keys() - found.keys():
        proc = read_proc(key[0])
        if proc and proc.key == key:
            found[key] = proc
    seen.update(found)
    return list(found.values())


def freeze(
    record: Record | None, turn: str | None, seen: dict[tuple[int, int], Proc], adopted: Adopted | None
) -> list[Proc]:
    """Stop them until a look shows nothing new: what is stopped can't replace what is killed."""
    stopped: set[tuple[int, int]] = set()
    until = time.monotonic() + LOOK_S
    while True:
        left = look(record, turn, seen, adopted)
        fresh = [p for p in left if p.key not in stopped]
        if not fresh or time.monotonic() > until:
            return left
        signal_each(fresh, signal.SIGSTOP)
        stopped.update(p.key for p in fresh)


def signal_each(procs: list[Proc], signum: signal.Signals) -> None:
    for proc in procs:
        try:
            send(proc, signum)
        except (ProcessLookupError, PermissionError):
            continue  # gone, or another user's: the next look tells which


def send(proc: Proc, signum: signal.Signals) -> None:
    try:
        fd = os.pidfd_open(proc.pid)
    except ProcessLookupError:
        raise
    except (
        OSError,
        AttributeError,
    ):  # not on this system: a short gap is left between the look and the signal
        if (now := read_proc(proc.pid)) and now.key == proc.key:
            os.kill(proc.pid, signum)
        return
    try:
        if (now := read_proc(proc.pid)) and now.key == proc.key:  # read after the open, so it is this process
            signal.pidfd_send_signal(fd, signum)
    finally:
        os.close(fd)
