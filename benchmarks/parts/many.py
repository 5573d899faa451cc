"""Many turns against the fake, in one `serve` and in a `batch`, each with an answer of its own.

10, 50 and 200 at once in `serve`; 50, 200 and 1,000 in a `batch` with 50 slots; and what each further turn of `serve`
takes in memory. The floor starts as many fakes, as many at once, one turn each and nothing else. Owns no judgement.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from benchmarks.bench import Bench
from benchmarks.fake_world import OWN, START, FakeWorld, is_exact
from benchmarks.figure import Budget, Figure, figure
from benchmarks.growth import bend, fit
from benchmarks.measure import BadRun, Watch, children, cpu_s, descriptors, measure, pss
from benchmarks.plans import many_argv, plain_plan, write_plan
from benchmarks.serve import Serve, open_serve

NEEDS_CODEX = False
SERVE, BATCH, SLOTS = (10, 50, 200), (50, 200, 1000), 50
QUICK_SERVE, QUICK_BATCH = (5, 10, 20), (5, 10, 20)
STRAIGHT = Budget(at_most=1.5)  # the noise of a shared machine; squares would give more than 4
FURTHER, FURTHER_MB = 20, 8
MB = 1e6


class Cost(NamedTuple):
    wall_s: float
    cpu_s: float  # of the sidecar alone
    peak_mb: float  # of the sidecar alone


def run(bench: Bench) -> Iterator[Figure]:
    with bench.fake_world() as world:
        world.options(caps={"codex": max(SERVE) + FURTHER})
        yield memory_of_a_further_turn(world, 4 if bench.quick else FURTHER)
    yield from grown(bench, "serve", "turns at once in one serve", QUICK_SERVE if bench.quick else SERVE, served)
    yield from grown(bench, "batch", "turns of a batch, 50 slots", QUICK_BATCH if bench.quick else BATCH, batched)


# --- memory of a further turn ----------------------------------------------------------------------------------


def memory_of_a_further_turn(world: FakeWorld, further: int) -> Figure:
    """All turns run and wait for one word: sidecar and guards with one, then with so many more."""
    go = world.root / "go"
    world.plays([*START, {"wait": {"file": str(go)}}, *OWN[1:]])
    with open_serve(world.ours("serve"), world.env, world.work) as serve:
        one = held(serve, world, 1)
        each = [(held(serve, world, further) - one) / further]
        go.touch()
        serve.hear_until(lambda: len(serve.outcomes) == 1 + further)
    check(list(serve.outcomes.values()), 1 + further)
    note = f"sidecar and guards with {1 + further} turns, less those with one ({one:.1f} MB), by {further}"
    budget = Budget(at_most=FURTHER_MB)
    return figure(
        "many.further", "each further turn in serve, memory of ours (PSS)", "MB", each, budget=budget, note=note
    )


def held(serve: Serve, world: FakeWorld, more: int) -> float:
    """MB of ours once so many more turns have begun."""
    count = len(serve.begun) + more
    for _ in range(more):
        serve.ask(prompt="wait", cwd=str(world.work))
    serve.hear_until(lambda: len(serve.begun) == count)
    return (pss(serve.pid) + sum(map(pss, children(serve.pid)))) / MB


# --- growth ----------------------------------------------------------------------------------------------------


def grown(
    bench: Bench, key: str, what: str, sizes: Sequence[int], measured: Callable[[FakeWorld, int], Cost]
) -> Iterator[Figure]:
    found: dict[int, list[tuple[Cost, float]]] = {size: [] for size in sizes}
    for size in (*sizes, *reversed(sizes[:-1])):  # small, large, small: a load that comes or goes bends no line
        found[size].append(one_size(bench, size, at_once(key, size), measured))
    costs = {size: Cost(*map(fmean, zip(*(cost for cost, _ in pairs), strict=True))) for size, pairs in found.items()}
    floors = {size: fmean(floor for _, floor in pairs) for size, pairs in found.items()}
    most = sizes[-1]
    each = 1e3 * costs[most].wall_s / most
    shown = ", ".join(f"{size:,}: {1e3 * costs[size].wall_s / size:.0f} ms" for size in sizes)
    yield figure(
        f"many.{key}_wall",
        f"{most:,} {what}, time for each",
        "ms",
        [each],
        "the fake, bare",
        [1e3 * floors[most] / most],
        note=f"for each of {shown}; every outcome exact, no descriptor and no process left",
    )
    yield from growth(key, costs, None if bench.quick else STRAIGHT)


def one_size(bench: Bench, size: int, at_once: int, measured: Callable[[FakeWorld, int], Cost]) -> tuple[Cost, float]:
    with bench.fake_world() as world:
        world.options(caps={"codex": at_once})
        world.plays(OWN)
        return measured(world, size), floor_s(world, size, at_once)


def growth(key: str, costs: Mapping[int, Cost], budget: Budget | None) -> Iterator[Figure]:
    """What one more turn costs in the last step, over what it cost before: in time, CPU and memory."""
    least, middle, most = costs
    units = {
        "wall_s": ("time", 1e3, "ms"),
        "cpu_s": ("CPU of the sidecar", 1e3, "ms"),
        "peak_mb": ("memory", 1e3, "kB"),
    }
    for name, (words, scale, unit) in units.items():
        points = [(size, getattr(cost, name)) for size, cost in costs.items()]
        each = scale * fit(points).each
        note = f"{each:.2f} {unit} for one more; {middle:,} to {most:,} over {least:,} to {middle:,}"
        said = f"turns in {key}: growth of {words} (1 is linear)"
        yield figure(f"many.{key}_{name}_bend", said, "", [bend(points)], budget=budget, note=note)


def at_once(key: str, size: int) -> int:
    return size if key == "serve" else min(size, SLOTS)


def served(world: FakeWorld, count: int) -> Cost:
    with open_serve(world.ours("serve"), world.env, world.work) as serve:
        serve.turn(prompt="first", cwd=str(world.work))
        before, files = cpu_s(serve.pid) or 0.0, descriptors(serve.pid)
        watch = Watch(memory=True, guards=False)
        with watch.of(serve.pid):
            began = time.perf_counter()
            for _ in range(count):
                serve.ask(prompt="go", cwd=str(world.work))
            serve.hear_until(lambda: len(serve.outcomes) == 1 + count)
            wall = time.perf_counter() - began
        used = (cpu_s(serve.pid) or 0.0) - before
        if descriptors(serve.pid) > files or children(serve.pid):
            raise BadRun(f"serve: descriptors {files} -> {descriptors(serve.pid)}, children {children(serve.pid)}")
    check(list(serve.outcomes.values()), 1 + count)
    return Cost(wall, used, watch.pss["sidecar"] / MB)


def batched(world: FakeWorld, count: int) -> Cost:
    file, watch = world.root / "batch.jsonl", Watch(memory=True, guards=False)
    file.write_text("".join(json.dumps({"prompt": f"go {n}"}) + "\n" for n in range(count)), encoding="utf-8")
    run = measure(world.ours("batch", "--quiet", str(file)), world.env, world.work, watch=watch)
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    if sorted(line["line"] for line in lines) != list(range(1, count + 1)):
        raise BadRun("batch: not one outcome for each line")
    check([line["outcome"] for line in lines], count)
    return Cost(run.wall_s, run.self_cpu_s, watch.pss["sidecar"] / MB)


def check(outcomes: Sequence[dict[str, object]], count: int) -> None:
    exact = sum(map(is_exact, outcomes))
    threads = {outcome["thread"] for outcome in outcomes}
    if not exact == len(threads) == count:
        raise BadRun(f"{exact} of {count} outcomes are exact, of {len(threads)} threads")


def floor_s(world: FakeWorld, count: int, at_once: int) -> float:
    plan = plain_plan([str(world.codex), "app-server"], str(world.work), "go")
    path: Path = write_plan(world.root / "many.json", {**plan, "times": count, "at_once": at_once})
    run = measure(many_argv(path), world.env, world.work)
    if run.stdout != str(count).encode():
        raise BadRun(f"the floor completed {run.stdout!r} of {count} turns")
    return run.wall_s
