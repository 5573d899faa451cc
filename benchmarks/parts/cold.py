"""A cold turn, beside `codex exec --json`, bare drivers and OpenAI's Node plugin.

One message of the model, read-only, the same binary. A bare driver replays what cc-agents was recorded to send, with
our permission profile and without: that part of the price is Codex's own. Owns no judgement.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.bench import Bench
from benchmarks.codex_world import BARE, EXEC, NODE, OURS, PROFILE
from benchmarks.figure import Budget, Figure, figure
from benchmarks.measure import Run, Watch

NEEDS_CODEX = True
WARM_UP = 2  # the first turns of a new CODEX_HOME make its databases
MB = 1e6


def run(bench: Bench) -> Iterator[Figure]:
    world = bench.codex_world
    contenders = world.contenders()
    for _ in range(WARM_UP):
        for argv in contenders.values():
            world.run(argv)
    runs: dict[str, list[Run]] = {name: [] for name in contenders}
    for _ in range(bench.times(15)):
        for name, argv in contenders.items():  # A B A B: whatever the machine does meanwhile, it does to all
            runs[name].append(world.run(argv))
    world.end_all()  # what a peer leaves running must not weigh on the next part
    wall = {name: [run.wall_s * 1e3 for run in found] for name, found in runs.items()}
    cpu = {name: [run.cpu_s * 1e3 for run in found] for name, found in runs.items()}
    yield figure("cold.wall", "run, cold", "ms", wall[OURS], EXEC, wall[EXEC], budget=Budget(at_most=1.10, of="ratio"))
    yield figure("cold.floor", "run, cold, over the floor", "ms", wall[OURS], PROFILE, wall[PROFILE])
    yield figure(
        "cold.profile",
        "Codex's own price of a profile with denied paths",
        "ms",
        wall[PROFILE],
        BARE,
        wall[BARE],
        note="both columns are bare drivers; what Codex adds, no client can take away",
    )
    if NODE in wall:
        note = "its app-server stays running between two turns; ours and codex exec start one each time"
        yield figure("cold.node", "run, cold, beside a warm one", "ms", wall[OURS], NODE, wall[NODE], note=note)
    yield figure("cold.cpu", "run, CPU of all processes", "ms", cpu[OURS], EXEC, cpu[EXEC])
    yield own_cpu(bench, [run.self_cpu_s * 1e3 for run in runs[BARE]])
    yield own_memory(bench)


def own_cpu(bench: Bench, bare: list[float]) -> Figure:
    """Sidecar and guard, without Codex and what it starts."""
    found = []
    for _ in range(bench.times(10)):
        watch = Watch()
        run = bench.codex_world.run(bench.codex_world.contenders()[OURS], watch=watch)
        found.append((run.self_cpu_s + watch.guards_cpu_s()) * 1e3)
    return figure("cold.own_cpu", "run, CPU of ours only (sidecar + guard)", "ms", found, BARE, bare)


def own_memory(bench: Bench) -> Figure:
    peaks: dict[str, list[float]] = {"sidecar": [], "guard": [], "own": []}
    for _ in range(bench.times(5)):
        watch = Watch(memory=True)
        bench.codex_world.run(bench.codex_world.contenders()[OURS], watch=watch)
        for who, found in peaks.items():
            found.append(watch.pss[who] / MB)
    alone = ", ".join(f"{who} {max(peaks[who]):.1f} MB at most" for who in ("sidecar", "guard"))
    budget = Budget(at_most=40, of="ours")
    return figure("cold.memory", "run, memory of ours only (PSS)", "MB", peaks["own"], budget=budget, note=alone)
