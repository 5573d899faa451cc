"""The public JSON Schemas hold what really leaves us: requests, events and outcomes of every kind.

Serves rule.schemasHold.
"""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from schemas import NAMES, valid, validator
from turns import ANSWER, START, User

from adapters.contract import Problem
from sidecar.outcome import refused

pytestmark = pytest.mark.rule("rule.schemasHold")

RICH = [
    *START,
    {"command": {"run": "ls", "exit": 1}},
    {"ask": {"method": "item/commandExecution/requestApproval", "params": {"command": "git push"}}},
    {"err": ["serverOverloaded", True]},
    {"notify": {"method": "warning", "params": {"message": "careful", "threadId": "$thread"}}},
    {"usage": [{"inputTokens": 10, "outputTokens": 2, "totalTokens": 12}, None]},
    *ANSWER[1:],
]
TURNS: dict[str, tuple[Any, tuple[str, ...], str]] = {
    "rich": (RICH, ("--mode", "write", "--label", "x"), "completed"),
    "quota": ([*START, {"err": ["usageLimitExceeded", False]}, {"done": "failed"}], (), "failed"),
    "half": ([*START, {"msg": ["half", None]}, {"crash": {"signal": "KILL"}}], (), "failed"),
    "object": (
        [*START, {"err": [{"httpConnectionFailed": {"httpStatusCode": 429}}, False]}, {"done": "failed"}],
        (),
        "failed",
    ),
    "time": ([*START, {"stall": True}], ("--timeout", "0.3s"), "interrupted"),
    "model": (ANSWER, ("--model", "nope"), "refused"),
    "early": (ANSWER, ("--mode", "nope"), "refused"),
}


@pytest.mark.parametrize("name", TURNS)
def test_the_request_the_events_and_the_outcome_of_a_turn_are_valid(user: User, name: str) -> None:
    scenario, words, status = TURNS[name]
    outcome = user.turn(scenario, *words).outcome
    assert outcome["status"] == status
    assert valid("outcome", outcome)
    for folder in user.jobs():
        assert valid("request", json.loads((folder / "request.json").read_text()))
        events = [json.loads(line) for line in (folder / "events.ndjson").read_text().splitlines()]
        assert [valid("event", event) for event in events]
        if name == "rich":
            kinds = {"status", "text_delta", "item", "usage", "declined", "warning", "begun", "outcome"}
            assert {event["event"] for event in events} == kinds


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_a_schema(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(validator(name).schema)


def test_a_schema_can_say_no() -> None:
    problem = Problem(reason="bad_request", message="the prompt is empty")
    outcome = json.loads(json.dumps(refused(problem).to_json()))
    assert valid("outcome", outcome)
    for change in ({"status": "done"}, {"usage": {}}, {"more": 1}, {"exit_code": "0"}, {"timing": None}):
        assert not validator("outcome").is_valid({**outcome, **change})
    assert not validator("event").is_valid({"event": "surprise", "at": 1.0})
    assert not validator("event").is_valid({"event": "status", "at": 1.0, "state": "x", "text": "y", "more": 1})
    assert not validator("request").is_valid({"prompt": "x", "mode": "all"})
