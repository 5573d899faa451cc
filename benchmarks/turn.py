"""One turn: `cc-agents run` beside `codex exec --json`, same binary, same scripted model, run by run in turn.

    python benchmarks/turn.py --codex PATH [-n RUNS] [--turn message|command] [--only turns|verbs] [--json]

Owns: what is compared, and the table. Does not own: how a run is measured (measure.py).
The model has a process of its own. Memory is watched in further runs, so that watching costs no time here.
"""

# ruff: noqa: E402 - run as a script, the checkout must be on the path before its modules are imported
from __future__ import annotations

import argparse
import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(CHECKOUT))

from adapters.codex.binary import find
from adapters.contract import Refused
from benchmarks.measure import BadRun, Run, Spread, command_of, measure
from tests_live.homes import Home, open_home, write_config
from tests_live.responses_api import ScriptedModel, run_command, say
from tests_live.script import Body, Item, outputs

RUNS = 20
WARM_UP = 2  # the first turns of a new CODEX_HOME make its databases
WALL_RATIO = 1.10
OWN_MIB = 40
VERB_CPU_MS = 60
ANSWER = "done"
VERBS = ("--version", "--help", "status")


def main() -> int:
    parser = argparse.ArgumentParser(description="cc-agents run beside codex exec")
    parser.add_argument("--codex", help="the codex to use; default: the one on PATH")
    parser.add_argument("-n", "--runs", type=int, default=RUNS, help=f"runs of each (default {RUNS})")
    parser.add_argument("--turn", choices=("message", "command"), default="message", help="what a turn does")
    parser.add_argument("--only", choices=("turns", "verbs"), help="one of the two tables; default: both")
    parser.add_argument("--json", action="store_true", help="all figures as one object")
    parser.add_argument("--serve-model", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve_model:
        return serve_model(options.turn)
    try:
        found = compare(find(options.codex, os.environ).path, options)
    except (BadRun, Refused) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(json.dumps(found, indent=2) + "\n" if options.json else table(found))
    return 0


def compare(codex: str, options: argparse.Namespace) -> dict[str, Any]:
    said = subprocess.run([codex, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    found = {"codex": said, "python": sys.version.split()[0], "turn": options.turn, "runs": options.runs}
    with open_home() as home, model_process(options.turn) as base_url:
        write_config(home, base_url)
        if options.only != "verbs":
            found["turns"] = turns(home, codex, options.runs)
        if options.only != "turns":
            found["verbs"] = verbs(home, options.runs)
    return found


# --- the model ----------------------------------------------------------------------------------------------


def next_part(turn: str) -> Callable[[Body], Item]:
    if turn == "message":
        return lambda _: say(ANSWER)
    return lambda body: say(ANSWER) if outputs(body) else run_command("echo hi")


def serve_model(turn: str) -> int:
    with ScriptedModel([next_part(turn)]) as model:
        sys.stdout.write(model.base_url + "\n")
        sys.stdout.flush()
        sys.stdin.read()  # until the benchmark lets go
    return 0


@contextmanager
def model_process(turn: str) -> Iterator[str]:
    argv = [sys.executable, __file__, "--serve-model", "--turn", turn]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdin is not None
        yield running.stdout.readline().strip()
        running.stdin.close()


# --- what is run --------------------------------------------------------------------------------------------


def ours(*args: str) -> list[str]:
    return [sys.executable, "-m", "sidecar", *args]


def turns(home: Home, codex: str, runs: int) -> dict[str, Any]:
    """A B A B: whatever the machine does meanwhile, it does to both."""
    env = home.environ(PYTHONPATH=str(CHECKOUT), CC_AGENTS_CODEX_BIN=codex)
    peers: dict[str, tuple[Sequence[str], Callable[[bytes], bool]]] = {
        "cc-agents run": (ours("run", "go"), lambda out: out == ANSWER.encode()),
        "codex exec": (
            [codex, "exec", "--json", "--skip-git-repo-check", "-s", "read-only", "go"],
            lambda out: f'"text":"{ANSWER}"'.encode() in out,
        ),
    }

    def one(name: str, whose: Callable[[int], str] | None = None) -> Run:
        argv, right = peers[name]
        run = measure(argv, env, home.work, whose)
        if not right(run.stdout):
            raise BadRun(f"{name} said {run.stdout[-500:]!r}")
        return run

    for _ in range(WARM_UP):
        for name in peers:
            one(name)
    timed: dict[str, list[Run]] = {name: [] for name in peers}
    for _ in range(runs):
        for name in peers:
            timed[name].append(one(name))
    watched = [one("cc-agents run", owner).pss_kib for _ in range(max(3, runs // 4))]
    result: dict[str, Any] = {
        name: {
            "wall_ms": spread([1000 * run.wall_s for run in found]),
            "cpu_ms": spread([1000 * run.cpu_s for run in found]),
        }
        for name, found in timed.items()
    }
    a, b = (result[name]["wall_ms"]["median"] for name in peers)
    c, d = (result[name]["cpu_ms"]["median"] for name in peers)
    memory = {who: spread([seen.get(who, 0) / 1024 for seen in watched]) for who in ("sidecar", "guard", "codex")}
    own = spread([(seen.get("sidecar", 0) + seen.get("guard", 0)) / 1024 for seen in watched])
    return {"peers": result, "wall_ratio": a / b, "cpu_ratio": c / d, "pss_mib": {**memory, "own": own}}


def owner(pid: int) -> str:
    """Whose process it is: sidecar, guard, or codex with all that it started."""
    words = command_of(pid)
    if any(Path(word).name == "guard.py" for word in words):
        return "guard"
    return "sidecar" if words[1:3] == ["-m", "sidecar"] else "codex"


def verbs(home: Home, runs: int) -> dict[str, Any]:
    """CPU of the quick verbs over a Python that does nothing, in milliseconds."""
    env = home.environ(PYTHONPATH=str(CHECKOUT))
    commands = {"python": [sys.executable, "-c", "pass"], **{verb: ours(verb) for verb in VERBS}}
    for argv in commands.values():
        measure(argv, env, home.work)
    found: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(runs):
        for name, argv in commands.items():
            found[name].append(1000 * measure(argv, env, home.work).cpu_s)
    bare = Spread.of(found["python"]).median
    return {
        name: {**spread(figures), "over_python": Spread.of(figures).median - bare} for name, figures in found.items()
    }


def spread(figures: Sequence[float]) -> dict[str, float]:
    return {name: round(value, 3) for name, value in dataclasses.asdict(Spread.of(figures)).items()}


# --- the table ----------------------------------------------------------------------------------------------


def table(found: Mapping[str, Any]) -> str:
    lines = [
        f"{found['codex']}, Python {found['python']}, turn: {found['turn']}, {found['runs']} runs of each",
        "",
    ]
    row = "{:<28}{:>10}{:>12}{:>20}".format
    lines.append(row("", "median", "quartiles", "lowest to highest"))

    def add(name: str, figures: Mapping[str, float], unit: str) -> None:
        apart, ends = f"±{figures['quartiles'] / 2:.1f}", f"{figures['low']:.1f} to {figures['high']:.1f}"
        lines.append(row(name, f"{figures['median']:.1f} {unit}", apart, ends))

    last = [""]
    if turned := found.get("turns"):
        for name, figures in turned["peers"].items():
            add(f"{name}, wall", figures["wall_ms"], "ms")
            add(f"{name}, CPU", figures["cpu_ms"], "ms")
        for who, figures in turned["pss_mib"].items():
            add(f"peak PSS, {who}", figures, "MiB")
        last.append(f"wall, cc-agents over codex exec: {turned['wall_ratio']:.3f} (at most {WALL_RATIO:.2f})")
        last.append(f"CPU, cc-agents over codex exec: {turned['cpu_ratio']:.3f}")
        last.append(f"own memory: {turned['pss_mib']['own']['median']:.1f} MiB (at most {OWN_MIB})")
    for verb, figures in found.get("verbs", {}).items():
        add(f"{verb}, CPU", figures, "ms")
    if quick := found.get("verbs"):
        slowest = max(figures["over_python"] for figures in quick.values())
        last.append(f"slowest quick verb over bare Python: {slowest:.1f} ms of CPU (at most {VERB_CPU_MS})")
    return "\n".join([*lines, *last]) + "\n"


if __name__ == "__main__":
    sys.exit(main())
