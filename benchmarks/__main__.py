"""`bin/bench`: all that is promised about speed, in one command and one table.

Owns: argv, which parts run, what is written and the exit code. Does not own any measurement (parts/).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from adapters.codex.binary import find
from adapters.contract import Refused
from benchmarks import alternatives, chart, table
from benchmarks.bench import Bench
from benchmarks.figure import Figure
from benchmarks.machine import describe
from benchmarks.measure import BadRun

PARTS = ("cold", "warm", "verbs", "stop", "kill", "floods", "many")
FAILED, NOT_HERE = 1, 2


def main(argv: Sequence[str]) -> int:
    options = parse(argv)
    if sys.platform != "linux":
        tell("bench: needs Linux (/proc, pidfd, the CPU clocks of other processes)")
        return NOT_HERE
    if options.alternatives:
        return tell_alternatives(options)
    parts = {name: import_module(f"benchmarks.parts.{name}") for name in options.only or PARTS}
    codex = None
    if any(part.NEEDS_CODEX for part in parts.values()):
        try:
            codex = find(options.codex, os.environ).path
        except Refused as refused:
            return no_codex(refused)
    about = describe(codex)
    began, figures, failures = time.monotonic(), [], []
    with Bench(codex=codex, node_plugin=options.node_plugin, quick=options.quick, trials=options.trials) as bench:
        for name, part in parts.items():
            tell(f"{time.monotonic() - began:5.0f} s  {name}: {first_line(part)}")
            try:
                figures += list(part.run(bench))
            except BadRun as bad:
                failures.append(f"{name} could not be measured: {bad}")
                tell(failures[-1])
    about |= {"quick": options.quick, "seconds": round(time.monotonic() - began)}
    write(options, figures, about, failures)
    missed = any(figure.met is False for figure in figures)
    return FAILED if failures or (options.strict and missed) else 0


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bin/bench", description="Measures cc-agents beside its peers and floors.")
    parser.add_argument("--codex", metavar="PATH", help="the codex to use (default: the one on PATH)")
    parser.add_argument("--only", nargs="+", choices=PARTS, metavar="PART", help=f"some of: {', '.join(PARTS)}")
    parser.add_argument("--quick", action="store_true", help="few runs and small sizes: to see that it works")
    parser.add_argument("--node-plugin", type=Path, metavar="DIR", help="a checkout of OpenAI's codex-plugin-cc")
    parser.add_argument("--trials", type=int, metavar="N", help="how often the sidecar is killed with -9")
    parser.add_argument("--json", nargs="?", const="-", metavar="FILE", help="all figures as JSON; alone: to stdout")
    parser.add_argument("--chart", type=Path, metavar="FILE", help="the budgets as a picture (SVG)")
    parser.add_argument("--markdown", action="store_true", help="the table as Markdown")
    parser.add_argument("--alternatives", action="store_true", help="only: what a user pays with each way to run Codex")
    parser.add_argument("--strict", action="store_true", help="exit code 1 if a budget is missed")
    return parser.parse_args(argv)


def tell_alternatives(options: argparse.Namespace) -> int:
    """The other table, as Markdown."""
    try:
        codex = find(options.codex, os.environ).path
    except Refused as refused:
        return no_codex(refused)
    with Bench(codex=codex, node_plugin=options.node_plugin) as bench:
        rows = alternatives.measured(bench.codex_world)
    sys.stdout.write(alternatives.as_markdown(rows))
    return 0


def no_codex(refused: Refused) -> int:
    message = "; ".join(problem.message for problem in refused.problems)
    without = [name for name in PARTS if not import_module(f"benchmarks.parts.{name}").NEEDS_CODEX]
    tell(f"bench: {message}; without one: --only {' '.join(without)}")
    return NOT_HERE


def write(
    options: argparse.Namespace, figures: Sequence[Figure], about: dict[str, Any], failures: Sequence[str]
) -> None:
    if options.chart:
        caption = f"Budgets of cc-agents and what was used of them, {about['date']}, codex {about['codex']}"
        options.chart.write_text(chart.as_svg(figures, caption), encoding="utf-8")
    if options.json:
        found = {"about": about, "figures": [figure.to_json() for figure in figures], "failures": list(failures)}
        text = json.dumps(found, indent=1) + "\n"
        if options.json == "-":
            sys.stdout.write(text)
            return
        Path(options.json).write_text(text, encoding="utf-8")
    shown = table.as_markdown(figures) if options.markdown else table.as_text(figures)
    sys.stdout.write(f"{', '.join(f'{name} {value}' for name, value in about.items())}\n\n{shown}")


def first_line(part: ModuleType) -> str:
    return (part.__doc__ or "").partition("\n")[0]


def tell(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
