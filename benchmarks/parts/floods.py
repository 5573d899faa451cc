"""Much at once, against the fake: an answer of 5 MB on one line, 20,000 deltas, a prompt of 5 MB.

CPU of ours, over the bare driver's, which reads and parses the very same lines. Each is measured at its size, twice
and four times that: growth shows as the cost of one more. Owns no judgement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from benchmarks.bench import Bench
from benchmarks.fake_world import ANSWER, DONE, START, USAGE, FakeWorld
from benchmarks.figure import Budget, Figure, figure
from benchmarks.growth import bend
from benchmarks.measure import BadRun, Watch, measure

NEEDS_CODEX = False
LINE = "answer \N{GREEK SMALL LETTER ALPHA}\n"  # 10 bytes
DELTA = "twenty bytes of text"
LINES, DELTAS = 500_000, 20_000
OVER = Budget(at_most=300, of="over")
STRAIGHT = Budget(at_most=1.5)  # the noise of a shared machine; squares would give 2
TIMES = (1, 2, 4)


class Flood(NamedTuple):
    key: str
    what: str
    size: int
    play: Callable[[FakeWorld, int], str]  # makes the fake play it; the prompt
    text: Callable[[int], str]  # the exact answer
    budget: Budget | None


def answer(world: FakeWorld, lines: int) -> str:
    long = {"msg": [{"repeat": LINE, "times": lines}, "final_answer"], "deltas": []}
    world.plays([*START, long, USAGE, {"done": "completed"}])
    return "flood"


def deltas(world: FakeWorld, count: int) -> str:
    world.plays([*START, {"flood": {"deltas": DELTA, "lines": count}}, USAGE, {"done": "completed"}])
    return "flood"


def prompt(world: FakeWorld, lines: int) -> str:
    world.plays([*START, *DONE])
    return LINE * lines


FLOODS = (
    Flood("answer", "answer of 5 MB on one line", LINES, answer, lambda lines: LINE * lines, OVER),
    Flood("deltas", f"{DELTAS:,} deltas", DELTAS, deltas, lambda count: DELTA * count, OVER),
    Flood("prompt", "prompt of 5 MB", LINES, prompt, lambda _: ANSWER, None),
)


def run(bench: Bench) -> Iterator[Figure]:
    straight = None if bench.quick else STRAIGHT  # a few runs show no line
    with bench.fake_world() as world:
        for flood in FLOODS:
            sizes = [flood.size * times for times in TIMES]
            ours: dict[int, list[float]] = {size: [] for size in sizes}
            bare: dict[int, list[float]] = {size: [] for size in sizes}
            for _ in range(bench.times(5, quick=2)):
                for size in sizes:
                    asked = flood.play(world, size)
                    ours[size].append(our_cpu_ms(world, asked, flood.text(size)))
                    bare[size].append(bare_cpu_ms(world, asked, flood.text(size)))
            yield figure(
                f"floods.{flood.key}",
                f"{flood.what}, CPU of ours only",
                "ms",
                ours[flood.size],
                "read and parsed",
                bare[flood.size],
                budget=flood.budget,
            )
            points = [(size, min(ours[size])) for size in sizes]
            words = f"{flood.what}: growth (1 is linear)"
            note = "what one more costs, from twice to four times the size over the size to twice of it"
            yield figure(f"floods.{flood.key}_bend", words, "", [bend(points)], budget=straight, note=note)


def our_cpu_ms(world: FakeWorld, asked: str, text: str) -> float:
    file, watch = world.root / "prompt", Watch()
    file.write_text(asked, encoding="utf-8")
    run = measure(world.ours("run", "--quiet", "--prompt-file", str(file)), world.env, world.work, watch=watch)
    check(run.stdout, text)
    return 1e3 * (run.self_cpu_s + watch.guards_cpu_s())


def bare_cpu_ms(world: FakeWorld, asked: str, text: str) -> float:
    run = measure(world.bare(asked), world.env, world.work)
    check(run.stdout, text)
    return 1e3 * run.self_cpu_s


def check(out: bytes, text: str) -> None:
    if out != text.encode():
        raise BadRun(f"an answer of {len(out)} bytes is not the one of {len(text.encode())} that was sent")
