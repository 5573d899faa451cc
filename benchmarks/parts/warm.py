"""A turn in a `serve` that has run turns before: what is left when our imports are paid.

It starts a Codex of its own all the same. Owns no judgement.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from benchmarks.bench import Bench
from benchmarks.codex_world import BARE, EXEC, OURS, PROFILE, CodexWorld
from benchmarks.figure import Figure, figure
from benchmarks.measure import BadRun
from benchmarks.model import ANSWER, SAY
from benchmarks.serve import Serve, open_serve

NEEDS_CODEX = True
WARM_UP = 2


def run(bench: Bench) -> Iterator[Figure]:
    world = bench.codex_world
    others = {name: argv for name, argv in world.contenders().items() if name in (EXEC, BARE, PROFILE)}
    wall: dict[str, list[float]] = {name: [] for name in (OURS, *others)}
    with open_serve(world.ours("serve"), world.env, world.work) as serve:
        for _ in range(WARM_UP):
            one(serve, world)
        for _ in range(bench.times(10)):
            wall[OURS].append(one(serve, world))
            for name, argv in others.items():
                wall[name].append(1e3 * world.run(argv).wall_s)
    yield figure("warm.wall", "turn in serve, warm", "ms", wall[OURS], EXEC, wall[EXEC])
    yield figure("warm.floor", "turn in serve, warm, over the floor", "ms", wall[OURS], PROFILE, wall[PROFILE])


def one(serve: Serve, world: CodexWorld) -> float:
    """Milliseconds from the request to the outcome."""
    began = time.perf_counter()
    outcome = serve.turn(prompt=SAY, cwd=str(world.work))
    took = 1e3 * (time.perf_counter() - began)
    if outcome["final_text"] != ANSWER:
        raise BadRun(f"serve: {outcome}")
    return took
