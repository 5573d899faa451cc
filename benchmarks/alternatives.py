"""What a user pays with each way to give Codex a task: processes, memory, what a kill leaves, whose servers start.

Owns: that table (`bin/bench --alternatives`), measured in real turns of the real codex with a scripted model.
Does not own: speed (parts/). What a relay costs in Claude tokens is told by README.md; it is not measured here.
"""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import plans
from benchmarks.codex_world import BARE, EXEC, NODE, OURS, PROFILE, CodexWorld
from benchmarks.measure import BadRun, pss
from benchmarks.model import RUN, SAY

BORN_S, LOOK_S = 30.0, 0.02
SETTLED_S = 3.0  # from a kill to the count of what is left: what ends at all has ended by then
MB = 1e6
DRIVERS = ("guard.py", "sidecar", "bare.py", "codex-companion.mjs", "app-server-broker.mjs")
CODEX = ("codex", "codex-code-mode-host", "bwrap")
# what an agent's command may leave: a process in a session of its own, another double-forked; it goes on itself
LEAVES = "setsid sleep 600 & (setsid sleep 600 &); sleep 600"
SLEEPS = 3
SERVER = """
[mcp_servers.theirs]
command = "/bin/sh"
args = ["-c", "echo started >>{mark}; exit 1"]
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    what: str
    cells: Mapping[str, str]


def measured(world: CodexWorld) -> list[Row]:
    """The rows, each with a cell for everyone who drives Codex."""
    mark = world.root / "theirs"
    world.configure(SERVER.format(mark=mark))
    contenders = read_only(world, RUN + LEAVES)
    rows: dict[str, dict[str, str]] = {}

    def tell(what: str, name: str, said: str) -> None:
        rows.setdefault(what, {})[name] = said

    for name, argv in contenders.items():
        mark.unlink(missing_ok=True)
        with running(world, argv) as turn:
            found = world.alive()
            tell("processes while a command of the turn runs: driver + Codex + command", name, count_of(found))
            tell("memory of the driver, PSS", name, size_of(found, "driver"))
            tell("memory of driver and Codex, PSS", name, size_of(found, "driver", "codex"))
            turn.kill()
            tell(f"alive {SETTLED_S:.0f} s after kill -9 of it, read-only", name, left_by(world))
        tell("MCP servers of the user's configuration start", name, "yes" if mark.exists() else "no")
    for name, argv in full_access(world, RUN + LEAVES).items():
        with running(world, argv) as turn:
            turn.kill()
            tell(f"alive {SETTLED_S:.0f} s after kill -9 of it, full access", name, left_by(world))
    for name, argv in read_only(world, SAY).items():
        world.run(argv)
        tell("alive after a turn that has ended", name, left_by(world))
    world.configure()
    return [Row(what=what, cells=cells) for what, cells in rows.items()]


def read_only(world: CodexWorld, prompt: str) -> dict[str, list[str]]:
    """As for speed, but the bare driver switches nothing off: it is what most clients of the app-server are."""
    found = {name: argv for name, argv in world.contenders(prompt).items() if name != PROFILE}
    return {**found, BARE: bare(world, prompt, "read-only")}


def full_access(world: CodexWorld, prompt: str) -> dict[str, list[str]]:
    """The Node plugin has no such mode."""
    return {
        OURS: world.ours("run", "--mode", "yolo", prompt),
        EXEC: world.codex_exec(prompt, "danger-full-access"),
        BARE: bare(world, prompt, "danger-full-access"),
    }


def bare(world: CodexWorld, prompt: str, sandbox: str) -> list[str]:
    plan = plans.plain_plan([str(world.codex), "app-server"], str(world.work), prompt)
    return plans.bare_argv(plans.write_plan(world.root / f"{sandbox}.json", plans.with_sandbox(plan, sandbox)))


@contextmanager
def running(world: CodexWorld, argv: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A turn whose command has started its three sleeps; whatever is left of it at the end is ended."""
    null = subprocess.DEVNULL
    with subprocess.Popen(argv, env=world.env, cwd=world.work, stdin=null, stdout=null, stderr=null) as turn:
        try:
            wait_for(lambda: sum(words[:1] == ["sleep"] for words in world.alive().values()) >= SLEEPS)
            yield turn
        finally:
            turn.kill()
            world.end_all()


def wait_for(fact: Callable[[], bool]) -> None:
    until = time.monotonic() + BORN_S
    while not fact():
        if time.monotonic() > until:
            raise BadRun("the turn's command did not start")
        time.sleep(LOOK_S)


# --- what is found ----------------------------------------------------------------------------------------------


def left_by(world: CodexWorld) -> str:
    found = world.left(SETTLED_S)
    world.end_all()
    return count_of(found) if found else "nothing"


def owner(words: Sequence[str]) -> str:
    """driver, codex or command: by the command line."""
    names = {Path(word).name for word in words[:5]}
    if names & set(DRIVERS):
        return "driver"
    return "codex" if words and Path(words[0]).name in CODEX else "command"


def count_of(found: Mapping[int, Sequence[str]]) -> str:
    counts = Counter(map(owner, found.values()))
    return " + ".join(str(counts[who]) for who in ("driver", "codex", "command"))


def size_of(found: Mapping[int, Sequence[str]], *owners: str) -> str:
    return f"{sum(pss(pid) for pid, words in found.items() if owner(words) in owners) / MB:.0f} MB"


# --- the table --------------------------------------------------------------------------------------------------


def as_markdown(rows: Sequence[Row]) -> str:
    names = [name for name in (OURS, EXEC, BARE, NODE) if any(name in row.cells for row in rows)]
    lines = [["", *names], ["---"] * (1 + len(names))]
    lines += [[row.what, *(row.cells.get(name, "") for name in names)] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
