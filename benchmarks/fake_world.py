"""A user whose codex is the fake: folders of their own, a scenario, our command beside the bare driver.

Owns: that world and what is alive in it. Does not own what is measured there. No log: the fake must not be the one
that costs.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.plans import bare_argv, plain_plan, write_plan
from benchmarks.world import World
from fake_app_server.shim import write_shim

ANSWER = "ANSWER"
START: list[dict[str, Any]] = [{"start": True}]
USAGE = {"usage": [{"inputTokens": 100, "outputTokens": 20}, None]}
DONE: list[dict[str, Any]] = [{"msg": [ANSWER, "final_answer"]}, USAGE, {"done": "completed"}]

# an answer of its own for each turn: what belongs to another turn would be seen
OWN_TEXT = "answer of $thread"
OWN: list[dict[str, Any]] = [
    *START,
    {"item": {"type": "agentMessage", "text": OWN_TEXT, "phase": "final_answer"}, "state": "completed"},
    USAGE,
    {"done": "completed"},
]


def is_exact(outcome: Mapping[str, Any]) -> bool:
    """Whether this is the outcome of a turn of OWN, and of no other turn."""
    text, usage = OWN_TEXT.replace("$thread", str(outcome["thread"])), outcome["usage"]
    return bool(outcome["status"] == "completed" and outcome["final_text"] == text and usage["total_tokens"] == 120)


class FakeWorld(World):
    def plays(self, turn: Sequence[Mapping[str, Any]]) -> None:
        """From now on a turn of the fake is this."""
        self.codex = write_shim(self.root / "bin", scenario={"turn": list(turn)})
        self.env["CC_AGENTS_CODEX_BIN"] = str(self.codex)

    def bare(self, prompt: str) -> list[str]:
        """The bare driver with one turn of the fake."""
        plan = plain_plan([str(self.codex), "app-server"], str(self.work), prompt)
        return bare_argv(write_plan(self.root / "bare.json", plan))

    def options(self, **given: Any) -> None:
        """config.toml of cc-agents; a value of a table is written inline."""
        folder = self.root / "config" / "cc-agents"
        folder.mkdir(parents=True, exist_ok=True)
        lines = [f"{name} = {toml(value)}" for name, value in given.items()]
        (folder / "config.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {toml(inner)}" for key, inner in value.items()) + "}"
    return json.dumps(value)


@contextmanager
def open_fake_world(checkout: Path, ours: Sequence[str]) -> Iterator[FakeWorld]:
    with tempfile.TemporaryDirectory(prefix="ccb") as name:
        world = FakeWorld(Path(name).resolve(), ours)
        world.plays([*START, *DONE])
        with world.nothing_left():
            yield world
