"""The quick verbs: CPU over a Python that does nothing. Owns no judgement."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.bench import Bench, python
from benchmarks.figure import Budget, Figure, figure
from benchmarks.measure import measure

NEEDS_CODEX = False
VERBS = ("status", "--help", "--version")
OVER_PYTHON = Budget(at_most=60, of="over")


def run(bench: Bench) -> Iterator[Figure]:
    with bench.fake_world() as world:
        commands = {"python": python(), **{verb: world.ours(verb) for verb in VERBS}}
        for argv in commands.values():
            measure(argv, world.env, world.work)
        found: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(bench.times(20)):
            for name, argv in commands.items():
                found[name].append(1e3 * measure(argv, world.env, world.work).cpu_s)
    for verb in VERBS:
        yield figure(
            f"verbs.{verb.strip('-')}",
            f"{verb}, CPU",
            "ms",
            found[verb],
            "bare Python",
            found["python"],
            budget=OVER_PYTHON,
        )
