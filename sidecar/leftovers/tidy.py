"""What dead turns have left: their processes, their sockets and locks; and jobs that are too old to keep.

Owns: finding them, quickly enough for every command that starts a turn, and ending them. A turn whose owner or guard
lives is left alone, and so is every process that is not known by a record or marker of a job of this store.
Does not own: how survivors are found and ended (orphans.py). Serves rule.guardKilled, rule.pruned.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from sidecar import deadlines, files, flocks
from sidecar.config import Settings
from sidecar.errors import UserError
from sidecar.store import JobView, Store

DAY_S = 86400.0


class Reaped(NamedTuple):
    """What was ended of a dead turn, or why nothing could be done: `problem`."""

    turn: str
    ended: int
    problem: str | None = None


# --- processes ------------------------------------------------------------------------------------------------


def left_behind(store: Store) -> list[JobView]:
    """Jobs that are over and have a guard's record still. Cheap where there is none: no record of a job is read."""
    found = []
    for name in store.with_processes():
        with suppress(UserError):  # pruned meanwhile
            view = store.read(name)
            if view.over:
                found.append(view)
    return found


def end_all(jobs: list[JobView]) -> list[Reaped]:
    """Ends what is left of each; where its guard lives, the guard does. Blocking."""
    return [end_job(view) for view in jobs]


def end_job(view: JobView) -> Reaped:
    from sidecar.leftovers import orphans  # only for what is rare

    path = view.path("processes.json")
    try:
        record = orphans.read_record(path)
        if record is not None and not orphans.guard_ends(record, deadlines.GUARD_S):
            return Reaped(view.job, 0, f"its guard, process {record['guard']['pid']}, lives and can't end it")
        ended = orphans.end_survivors(record, view.job, grace_s=deadlines.SURVIVOR_GRACE_S)
        left = orphans.find_survivors(record, view.job)
    except (ValueError, KeyError, OSError) as error:
        return Reaped(view.job, 0, f"{path}: {error}")
    if left:
        return Reaped(view.job, ended, f"{len(left)} processes can't be ended: {[p.pid for p in left]}")
    with suppress(FileNotFoundError):
        os.unlink(path)  # its guard is gone, and so is all that it told of
    return Reaped(view.job, ended)


def reap(store: Store, runtime: str) -> Iterator[Reaped]:
    """All that dead turns have left, by record and by marker; sockets and locks that nobody has, too."""
    from sidecar.leftovers import orphans

    candidates = {view.job: view for view in left_behind(store)}
    for turn in marked_turns():
        with suppress(UserError):  # not a job of ours: another store's, or an inquiry
            view = store.read(turn)
            if view.over:
                candidates[turn] = view
    yield from (end_job(candidates[turn]) for turn in sorted(candidates))
    for entry in files.scan(os.path.join(runtime, "inquiries")):
        turn = entry.name.removesuffix(".json")
        if entry.name.endswith(".json"):
            with suppress(ValueError, KeyError, OSError):  # being written, or gone
                record = orphans.read_record(entry.path)
                if record is not None and not orphans.owner_alive(record):
                    ended = orphans.end_survivors(record, turn, grace_s=deadlines.SURVIVOR_GRACE_S)
                    os.unlink(entry.path)
                    yield Reaped(turn, ended)
    _sweep(runtime)


def marked_turns() -> set[str]:
    """The turns of which something lives, by the marker in the environment."""
    from sidecar.leftovers import orphans

    mark = f"{orphans.MARKER}="
    found = (entry for pid in orphans.pids() for entry in orphans.environment(pid) if entry.startswith(mark))
    return {entry.removeprefix(mark) for entry in found}


def _sweep(runtime: str) -> None:
    from sidecar import control_socket  # with `socket`, which nothing on the way to Codex needs

    for entry in files.scan(control_socket.folder_of(runtime)):
        if not control_socket.is_heard(entry.path):
            with suppress(FileNotFoundError):
                os.unlink(entry.path)
    for entry in files.scan(os.path.join(runtime, "threads")):
        if (fd := flocks.take(entry.path)) >= 0:
            with suppress(FileNotFoundError):
                os.unlink(entry.path)
            flocks.leave(fd)


# --- jobs -----------------------------------------------------------------------------------------------------


def prune(store: Store, settings: Settings) -> list[str]:
    """Removes what is older or more than the options keep; returns the jobs. Never one that is queued or runs."""
    age_s, count = settings.keep_days.value * DAY_S, settings.keep_count.value
    return store.prune(age_s, count) if store.prune_due(age_s, count) else []
