"""Ctrl-C while the model is silent: from the signal to the exit, outcome told and processes gone.

Beside `codex exec`, which gets the same signal at the same moment of its turn. Owns no judgement.
"""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence

from benchmarks.bench import Bench
from benchmarks.codex_world import EXEC, OURS, CodexWorld
from benchmarks.figure import Figure, figure
from benchmarks.measure import PATIENCE_S, BadRun
from benchmarks.model import SILENT

NEEDS_CODEX = True
INTERRUPTED = 130


def run(bench: Bench) -> Iterator[Figure]:
    world = bench.codex_world
    contenders = {OURS: world.ours("run", "--json", SILENT), EXEC: world.codex_exec(SILENT)}
    found: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(bench.times(10)):
        for name, argv in contenders.items():
            took_ms, code, out = interrupted(world, argv)
            found[name].append(took_ms)
            if name == OURS:
                check(world, code, out)
    note = "ours asks Codex, waits for its word and proves that nothing lives; codex exec just ends"
    yield figure("stop.int", "Ctrl-C to the outcome", "ms", found[OURS], EXEC, found[EXEC], note=note)


def interrupted(world: CodexWorld, argv: Sequence[str]) -> tuple[float, int, bytes]:
    """Milliseconds from the signal to the end, the exit code and stdout."""
    world.model.forget()
    null, pipe = subprocess.DEVNULL, subprocess.PIPE
    with subprocess.Popen(argv, env=world.env, cwd=world.work, stdin=null, stdout=pipe, stderr=null) as running:
        try:
            world.model.wait_for(SILENT)
            began = time.perf_counter()
            running.send_signal(signal.SIGINT)
            out, _ = running.communicate(timeout=PATIENCE_S)
            return 1e3 * (time.perf_counter() - began), running.returncode, out
        finally:
            running.kill()


def check(world: CodexWorld, code: int, out: bytes) -> None:
    outcome = json.loads(out)
    if code != INTERRUPTED or outcome["status"] != "interrupted" or not outcome["confirmed"]:
        raise BadRun(f"exit code {code}, {outcome['status']}, confirmed {outcome['confirmed']}")
    if left := world.alive():
        raise BadRun(f"alive after the exit: {left}")
