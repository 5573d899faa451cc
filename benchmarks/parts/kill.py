"""kill -9 of the sidecar, with 100 descendants of its turn: from the kill to the end of the last process.

Half of them are in sessions of their own, half double-forked as well. In every second trial another program reads the
whole of /proc meanwhile, as top and ps do: what ends a process may have to wait for its readers. The floor: the same
100 processes, ended by a loop that knows their pids. Owns no judgement.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.fake_world import START, FakeWorld
from benchmarks.figure import Budget, Figure, figure
from benchmarks.measure import BadRun, tree
from fake_app_server import spawn

NEEDS_CODEX = False
SHAPES = {"setsid": 50, "double_fork": 50}
BUDGET_MS = 250
TRIALS, FLOORS = 40, 10
READER = """
import os, time
while True:
    for name in filter(str.isdigit, os.listdir("/proc")):
        for file in ("stat", "cmdline", "environ"):
            try: open(f"/proc/{name}/{file}", "rb").read()
            except OSError: pass
    time.sleep(0.002)
"""
BORN_S, GONE_S = 30.0, 30.0
LOOK_S = 0.002


def run(bench: Bench) -> Iterator[Figure]:
    trials = bench.trials or bench.times(TRIALS)
    quiet: list[float] = []
    read: list[float] = []
    floor: list[float] = []
    with bench.fake_world() as world:
        spawns = [
            {"spawn": {"shape": shape, "count": count, "pid_file": str(pid_file(world, shape))}}
            for shape, count in SHAPES.items()
        ]
        world.plays([*START, *spawns, {"stall": True}])
        for trial in range(trials):
            with readers(trial % 2):
                (read if trial % 2 else quiet).append(kill_of_the_sidecar(world))
            if trial % max(1, trials // FLOORS) == 0:
                floor.append(kill_by_pid(world))
    what = f"kill -9 of the sidecar to the last of {sum(SHAPES.values())} descendants"
    budget = Budget(at_most=BUDGET_MS, of="worst")
    for key, words, ours in (("last", "", quiet), ("read", ", /proc being read", read)):
        said = f"{what}{words}"
        note = f"{len(ours)} trials"
        yield figure(f"kill.{key}", said, "ms", ours, "a loop over the pids", floor, budget=budget, note=note)


@contextmanager
def readers(count: int) -> Iterator[None]:
    """So many programs that look at every process, again and again."""
    argv = [sys.executable, "-I", "-S", "-c", READER]
    started = [subprocess.Popen(argv) for _ in range(count)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def kill_of_the_sidecar(world: FakeWorld) -> float:
    """Milliseconds until guard, app-server and every descendant are gone."""
    null = subprocess.DEVNULL
    argv = world.ours("run", "--", "leave them")
    with subprocess.Popen(argv, env=world.env, cwd=world.work, stdin=null, stdout=null, stderr=null) as sidecar:
        try:
            pids = {*born(world), *tree(sidecar.pid)} - {sidecar.pid}  # guard and app-server too
            return time_to_the_end(pids, sidecar.kill)
        finally:
            sidecar.kill()
            forget(world)


def kill_by_pid(world: FakeWorld) -> float:
    started = []
    for shape, count in SHAPES.items():
        argv = [sys.executable, "-I", "-S", str(spawn.__file__), shape, "600", str(pid_file(world, shape))]
        started.append(subprocess.Popen([*argv, str(count), ""], env=world.env, start_new_session=True))
    try:
        pids = set(born(world))
        return time_to_the_end(pids, lambda: kill_all(pids))
    finally:
        forget(world)
        for process in started:
            process.kill()
            process.wait()


def kill_all(pids: Iterable[int]) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def time_to_the_end(pids: Iterable[int], kill: Callable[[], None]) -> float:
    """A descriptor of each process tells its end, so that looking for it costs nothing beside the work measured."""
    with ExitStack() as stack:
        watched = []
        for pid in pids:
            with suppress(ProcessLookupError):  # the one between two forks has ended by itself
                watched.append(os.pidfd_open(pid))
                stack.callback(os.close, watched[-1])
        if len(watched) < sum(SHAPES.values()):
            raise BadRun(f"only {len(watched)} processes lived before the kill")
        began = time.perf_counter()
        kill()
        for fd in watched:
            waiting = select.poll()
            waiting.register(fd, select.POLLIN)
            if not waiting.poll(GONE_S * 1e3):
                raise BadRun(f"a process lived {GONE_S:.0f} s after the kill")
        return 1e3 * (time.perf_counter() - began)


def born(world: FakeWorld) -> list[int]:
    until = time.monotonic() + BORN_S
    while time.monotonic() < until:
        found = {shape: pids_in(pid_file(world, shape)) for shape in SHAPES}
        if all(len(found[shape]) == count for shape, count in SHAPES.items()):
            return [pid for pids in found.values() for pid in pids]
        time.sleep(LOOK_S)
    raise BadRun("the descendants did not start")


def pid_file(world: FakeWorld, shape: str) -> Path:
    return world.root / f"pids-{shape}"


def pids_in(path: Path) -> list[int]:
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def forget(world: FakeWorld) -> None:
    if left := world.left():
        raise BadRun(f"survivors: {left}")
    for shape in SHAPES:
        pid_file(world, shape).unlink(missing_ok=True)
