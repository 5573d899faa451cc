"""Which processes live below the guard: what /proc or ps says, and the tree that is made of it.

Owns: reading the process table, following descendants from look to look. Does not own: signals and waiting
(ways.py, supervisor.py). Standard library only. Serves spec:cc-agents.work-containment.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False  # as typing has it, without 5 ms of import
if TYPE_CHECKING:
    from collections.abc import Callable

MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"


class Proc:
    """One process as it was seen; (pid, start time) names it for ever."""

    __slots__ = ("key", "pgid", "pid", "ppid", "sid", "start_time", "zombie")

    def __init__(self, *, pid: int, zombie: bool, ppid: int, pgid: int, sid: int, start_time: int) -> None:
        self.pid, self.ppid, self.pgid, self.sid = pid, ppid, pgid, sid
        self.start_time, self.zombie, self.key = start_time, zombie, (pid, start_time)


def read_stat(pid: int) -> Proc | None:
    """The process as /proc has it, start time in clock ticks since boot; None if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            stat = file.read()
    except OSError:  # gone, or no descriptor to be had: whoever waits for it looks again
        return None
    f = stat[stat.rindex(b")") + 2 :].split()  # the name may hold anything, blanks and ")" too
    zombie = f[0] == b"Z" and f[17] == b"1"  # a leader that has ended shows Z too while its threads live on
    return Proc(pid=pid, zombie=zombie, ppid=int(f[1]), pgid=int(f[2]), sid=int(f[3]), start_time=int(f[19]))


def proc_pids() -> set[int]:
    return {int(name) for name in os.listdir("/proc") if name.isdigit()}


def proc_table(skip: set[int]) -> tuple[set[int], list[Proc]]:
    """All pids, and the processes behind those that aren't in `skip`."""
    pids = proc_pids()
    return pids, [p for p in map(read_stat, sorted(pids - skip)) if p]


def ps_pids() -> set[int]:
    return ps_table(set())[0]


def ps_table(skip: set[int]) -> tuple[set[int], list[Proc]]:
    """The same for systems without /proc: start time in seconds since 1970, session not known (0)."""
    out, into = os.pipe()
    argv, env = ["ps", "-axo", "pid=,stat=,ppid=,pgid=,lstart="], {**os.environ, "LC_ALL": "C"}
    ps = os.posix_spawnp("ps", argv, env, file_actions=[(os.POSIX_SPAWN_DUP2, into, 1)])
    os.close(into)
    with open(out, "rb") as file:
        rows = [line.decode("ascii", "replace").split() for line in file]
    os.waitpid(ps, 0)
    procs = [parse_row(row) for row in rows]
    pids = {p.pid for p in procs if p.pid != ps}
    return pids, [p for p in procs if p.pid in pids and p.pid not in skip]


def parse_row(row: list[str]) -> Proc:
    """A line of ps: `4711 Ss 1 4711 Mon Nov 30 10:47:49 2026`, the date in local time."""
    pid, state, ppid, pgid, _, month, day, clock, year = row
    hour, minute, second = map(int, clock.split(":"))
    date = (int(year), MONTHS.index(month) // 3 + 1, int(day), hour, minute, second, 0, 0, -1)
    start_time = int(time.mktime(date))
    zombie = state.startswith("Z")
    return Proc(pid=int(pid), zombie=zombie, ppid=int(ppid), pgid=int(pgid), sid=0, start_time=start_time)


class Tree:
    """The processes below the guard, zombies included.

    What existed before is foreign for good, and so are its other children: only a descendant can come to be a child
    of a descendant or of the subreaper. So a look reads only the entries that are new or known to be ours.
    """

    def __init__(
        self, pids: set[int], table: Callable[[set[int]], tuple[set[int], list[Proc]]], *, by_group: bool
    ) -> None:
        self.me, self.foreign, self.table, self.by_group = os.getpid(), pids, table, by_group
        self.known: dict[int, Proc] = {}

    def scan(self, settled: set[int] | frozenset[int] = frozenset()) -> list[Proc]:
        """Those alive now. The `settled` ones (stopped) are taken as unchanged: speed counts in a storm."""
        pids, procs = self.table(self.foreign | settled)
        self.foreign &= pids
        below = {pid: self.known[pid] for pid in settled & pids if pid in self.known}
        groups = {p.pgid for p in self.known.values()} if self.by_group else set()
        fresh = []
        for p in procs:
            was = self.known.get(p.pid)
            if p.ppid == self.me or (was and was.key == p.key) or p.pgid in groups:
                below[p.pid] = p
            elif p.pid != self.me:
                fresh.append(p)
        self.sort_out(fresh, below)
        self.known = below
        return [p for p in below.values() if not p.zombie]

    def sort_out(self, fresh: list[Proc], below: dict[int, Proc]) -> None:
        """Each goes where its parent is; if the parent vanished meanwhile, the next look decides."""
        before = -1
        while len(fresh) != before:
            before = len(fresh)
            for p in fresh:
                if p.ppid in below:
                    below[p.pid] = p
                elif p.ppid == 0 or p.ppid in self.foreign:
                    self.foreign.add(p.pid)
            fresh = [p for p in fresh if p.pid not in below and p.pid not in self.foreign]

    def forget_foreign(self) -> None:
        """Sort everything anew; for when `wait` knows of a child that no look has shown (a reused number)."""
        self.foreign = set()
