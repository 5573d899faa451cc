"""The scenario: what a file or an environment variable says the fake should do, checked before it starts.

Owns: the keys of a scenario and of every step. Does not own: playing them (steps, server).
Serves spec:cc-agents.fakes.
"""

from __future__ import annotations

import json
import os
from typing import Any

from fake_app_server import items

Step = dict[str, Any]

DEFAULT_TEXT = "This answer is scripted by the fake app-server; no model was asked."
DEFAULT_TURN: list[Step] = [
    {"start": True},
    {"user_message": True},
    {"msg": [DEFAULT_TEXT, "final_answer"]},
    {
        "usage": [
            {"inputTokens": 100, "cachedInputTokens": 10, "outputTokens": 20, "reasoningOutputTokens": 5},
            None,
        ]
    },
    {"rate_limits": True},
    {"idle": True},
    {"done": "completed"},
]

WHERE = ("thread", "turn")
# step -> (keys of its value when that is an object or None for any, keys allowed beside it)
STEPS: dict[str, tuple[tuple[str, ...] | None, tuple[str, ...]]] = {
    "expect": (("method", "params"), ()),
    "reply": (("method", "result", "error", "default"), ("drip",)),
    "notify": (("method", "params"), ("drip",)),
    "ask": (("method", "id", "params", "expect_result", "wait"), ()),
    "wait": (("seconds", "file"), ()),
    "raw": (("text", "hex", "drip", "pause_s"), ()),
    "stall": (("deaf",), ()),
    "crash": (("exit", "signal"), ()),
    "close_stdout": ((), ()),
    "spawn": (("shape", "seconds", "pid_file", "count", "appends", "stdout"), ()),
    "stderr": (("text", "bytes"), ()),
    "flood": (("lines", "method", "params", "text", "deltas", "size"), ()),
    "start": ((), ()),
    "user_message": ((), ()),
    "msg": ((), (*WHERE, "delivery", "id", "deltas", "open", "drip", "pause_s", "questions")),
    "item": (None, (*WHERE, "state", "drip")),
    "command": (("run", "output", "exit", "seconds", "open", "status", "deltas", "cwd"), WHERE),
    "usage": ((), WHERE),
    "rate_limits": (None, ()),
    "err": ((), (*WHERE, "message", "details", "error")),
    "idle": ((), ("thread",)),
    "done": ((), (*WHERE, "error", "items", "silent")),
    "stop_turn": ((), ()),
    "repeat": (("times", "steps"), ()),
}
SCRIPTS = ("on_start", "turn", "on_interrupt", "on_steer")
SHAPES = ("group", "setsid", "double_fork", "nohup", "ignore_term", "clean_env", "stopped", "fork_storm")
ON_EOF = ("exit", "ignore", "crash")
STATUSES = ("completed", "failed", "interrupted")


class ScenarioError(Exception):
    """The scenario can't be played: its text names the place and the unknown word. Exit code 64."""


class Scenario:
    """A checked scenario. Scripts are lists of steps; None means that the default behaviour holds."""

    KEYS = frozenset(
        "version config layers models account thread thread_id turn_id replies on_start on turn turns on_interrupt"
        " on_steer on_eof ignore_signals known_threads replay_usage history store replay true_to_request".split()
    )

    def __init__(self, data: Any, folder: str = ".") -> None:
        data = {"turn": data} if isinstance(data, list) else data
        if not isinstance(data, dict):
            raise ScenarioError("a scenario is an object, or a list of steps")
        _known(data, self.KEYS, "scenario")
        self._data = data
        self.version: str = data.get("version", "0.171.0")
        self.config: dict[str, Any] = data.get("config", {})
        self.layers: list[dict[str, Any]] | None = data.get("layers")
        self.models: list[Any] | None = data.get("models")
        self.account: dict[str, Any] | None = _account(data)
        self.thread: dict[str, Any] = data.get("thread", {})
        self.thread_id: str | None = data.get("thread_id")
        self.replies: dict[str, Any] = data.get("replies", {})
        self.on: dict[str, list[Step]] = data.get("on", {})
        self.on_start: list[Step] = data.get("on_start", [])
        self.on_interrupt: list[Step] | None = data.get("on_interrupt")
        self.on_steer: list[Step] | None = data.get("on_steer")
        self.on_eof: str = data.get("on_eof", "exit")
        self.ignore_signals: list[str] = [name.removeprefix("SIG") for name in data.get("ignore_signals", [])]
        self.known_threads: list[str] | None = data.get("known_threads")
        self.replay_usage = _replayed(data.get("replay_usage"))
        self.history: list[dict[str, Any]] = [_history(turn) for turn in data.get("history", [])]
        self.store: str | None = data.get("store")
        self.replay: str | None = os.path.join(folder, data["replay"]) if "replay" in data else None
        self.true_to_request: bool = data.get("true_to_request", True)
        self._check()

    def _check(self) -> None:
        for name in SCRIPTS:
            if name in self._data:
                _check_steps(self._data[name], name)
        for index, steps in enumerate(self._data.get("turns", [])):
            _check_steps(steps, f"turns[{index}]")
        for method, steps in self.on.items():
            _check_steps(steps, f"on.{method}")
        if self.on_eof not in ON_EOF:
            raise ScenarioError(f"on_eof: {self.on_eof!r} is not one of {', '.join(ON_EOF)}")
        unknown = set(self.ignore_signals) - {"TERM", "INT", "HUP"}
        if unknown:
            raise ScenarioError(f"ignore_signals: {sorted(unknown)} can't be ignored here")

    def turn_steps(self, index: int) -> list[Step]:
        turns: list[list[Step]] = self._data.get("turns", [])
        if index < len(turns):
            return turns[index]
        steps: list[Step] = self._data.get("turn", DEFAULT_TURN)
        return steps

    def turn_id(self, index: int) -> str | None:
        """The id of the n-th turn: one string is for the first turn only, a list for as many as it has."""
        given = self._data.get("turn_id")
        ids = [given] if isinstance(given, str) else given or []
        return ids[index] if index < len(ids) else None


def _account(data: dict[str, Any]) -> dict[str, Any] | None:
    """`account` is the response of account/read, or the account itself (it has a `type`), or null."""
    if "account" not in data:
        return None
    given = data["account"]
    if given is None or "type" in given:
        return {"account": given}
    return dict(given)


def _known(data: dict[str, Any], keys: Any, place: str) -> None:
    unknown = sorted(set(data) - set(keys))
    if unknown:
        raise ScenarioError(f"{place}: unknown key {', '.join(map(repr, unknown))}; known: {', '.join(sorted(keys))}")


def _check_steps(steps: Any, place: str) -> None:
    if not isinstance(steps, list):
        raise ScenarioError(f"{place}: steps are a list")
    for index, step in enumerate(steps):
        _check_step(step, f"{place}[{index}]")


def verb_of(step: Step) -> str:
    return next((key for key in step if key in STEPS), "")


def _check_step(step: Any, place: str) -> None:
    if not isinstance(step, dict):
        raise ScenarioError(f"{place}: a step is an object")
    verb = verb_of(step)
    if not verb:
        raise ScenarioError(f"{place}: unknown step {step!r}; known: {', '.join(STEPS)}")
    inner, beside = STEPS[verb]
    _known(step, (verb, *beside), f"{place} {verb}")
    value = step[verb]
    if isinstance(value, dict) and inner is not None:
        _known(value, inner, f"{place} {verb}")
    if verb == "repeat":
        _check_steps(value.get("steps"), f"{place} repeat.steps")
    if verb == "spawn" and value.get("shape") not in SHAPES:
        raise ScenarioError(f"{place} spawn: shape is one of {', '.join(SHAPES)}")
    if verb == "done" and value not in STATUSES:
        raise ScenarioError(f"{place} done: status is one of {', '.join(STATUSES)}")
    if verb in ("msg", "usage", "err") and not (isinstance(value, list) and len(value) == 2):
        raise ScenarioError(f"{place} {verb}: takes a list of two")


def _replayed(given: Any) -> dict[str, Any] | None:
    """`replay_usage`: [total, last], [total, last, turn], or an object with these names."""
    if given is None:
        return None
    if isinstance(given, list):
        given = dict(zip(("total", "last", "turn"), given, strict=False))
    _known(given, ("total", "last", "turn"), "replay_usage")
    counts = {
        "total": items.usage(given["total"]),
        "last": items.usage(given.get("last", given["total"])),
        "modelContextWindow": 475000,
    }
    return {**({"turnId": given["turn"]} if "turn" in given else {}), "tokenUsage": counts}


def _history(turn: dict[str, Any]) -> dict[str, Any]:
    """A past turn: as on the wire, items being allowed as [text, phase]."""
    found = [items.ended(items.agent_message(*i)) if isinstance(i, list) else i for i in turn.get("items", [])]
    return {"status": "completed", **turn, "items": found}


def load(source: str) -> Scenario:
    """A path, or inline JSON that starts with `{` or `[`. Raises ScenarioError."""
    text, folder = source, "."
    try:
        if not source.lstrip().startswith(("{", "[")):
            folder = os.path.dirname(os.path.abspath(source))
            with open(source, encoding="utf-8") as file:
                text = file.read()
        return Scenario(json.loads(text), folder)
    except (OSError, ValueError) as error:
        raise ScenarioError(f"{source[:200]}: {error}") from error
