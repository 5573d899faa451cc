"""Exit codes, and the JSON of outcomes and events. Serves rule.exitCodes and rule.errorKinds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from schemas import valid
from turns import strict

from adapters import contract
from adapters.contract import Effective, Ending, Problem, Sourced, TurnError, Usage
from sidecar import outcome
from sidecar.errors import UserError
from sidecar.outcome import Outcome, Timing
from sidecar.records import dump, event_record, outcome_record

pytestmark = pytest.mark.rule("rule.exitCodes")


def ended(status: Any, kind: Any = "other", reason: str = "x", signal: int | None = None) -> Outcome:
    error = None if status == "completed" else TurnError(kind=kind, reason=reason, message="m")
    return Outcome(job="j", status=status, error=error, signal=signal)


@pytest.mark.parametrize(
    ("found", "code"),
    [
        (ended("completed"), 0),
        (ended("completed", signal=2), 0),
        (ended("failed"), 1),
        (ended("failed", reason="no_answer"), 1),
        (ended("refused"), 2),
        (ended("failed", "auth"), 3),
        (ended("refused", "auth", "not_signed_in"), 3),
        (ended("failed", "quota"), 4),
        (ended("failed", "rate-limit"), 5),
        (ended("failed", "capacity"), 6),
        (ended("refused", reason="mode_not_enforced"), 7),
        (ended("failed", reason="mode_not_enforced"), 7),
        (ended("interrupted", reason="timeout"), 8),
        (ended("interrupted", reason="idle_timeout"), 8),
        (ended("interrupted", reason="token_limit"), 8),
        (ended("failed", reason="app_server_exited"), 9),
        (ended("failed", reason="protocol"), 9),
        (ended("interrupted", reason="interrupted"), 130),
        (ended("interrupted", reason="interrupted", signal=1), 129),
        (ended("interrupted", reason="interrupted", signal=2), 130),
        (ended("interrupted", reason="interrupted", signal=15), 143),
    ],
)
def test_each_end_has_its_code(found: Outcome, code: int) -> None:
    assert found.exit_code == code
    assert found.to_json()["exit_code"] == code


def test_a_reason_of_a_refusal_means_the_same_code_whoever_says_it() -> None:
    assert outcome.refused(Problem(reason="not_signed_in", message="m")).exit_code == 3
    assert outcome.refused(Problem(reason="unknown_model", message="m")).exit_code == 2


def test_a_refusal_says_every_problem_on_a_line_of_its_own() -> None:
    error = outcome.refused(Problem(reason="a", message="one"), Problem(reason="b", message="two")).error
    assert error is not None
    assert (error.reason, error.message) == ("a", "one\ntwo")
    assert [p.message for p in outcome.problems_of(UserError("a", "one\ntwo"))] == ["one", "two"]


def test_every_field_of_an_ending_is_in_the_json_and_the_schema_takes_it() -> None:
    effective = Effective(
        model=Sourced(value="m", source="--model"),
        writable_roots=("/a",),
        switched_off=("x",),
        sandbox={"type": "readOnly"},
    )
    error = TurnError(kind="quota", reason="r", message="m", codex_error_info={"a": [1]}, http_status=429, retry_at=5)
    ending = Ending(
        status="failed", partial_text="p", usage=Usage(total_tokens=3), child_usage=Usage(), error=error,
        effective=effective, thread="T", turn="U", declined=({"method": "m", "subject": "s"},), warnings=("w",),
    )  # fmt: skip
    timing = Timing(queued_s=0.1, started_at=1.0, duration_s=2.0)
    found = outcome.of_ending(ending, job="j", timing=timing, processes_ended=2, signal=None, warnings=("late",))
    wire = strict(dump(found.to_json()))
    assert valid("outcome", wire)
    assert (wire["warnings"], wire["usage"]["total_tokens"], wire["error"]["retry_at"]) == (["w", "late"], 3, 5)
    assert valid("event", strict(dump(outcome_record(found))))


EVENTS: dict[str, contract.Event] = {
    "status": contract.StatusEvent(state="retry", text="t"),
    "text_delta": contract.TextDelta(item="i", text="\ud83d"),
    "item": contract.ItemEvent(
        item="i", kind="commandExecution", phase="started", text="ls\u2028", detail={"exitCode": 1}
    ),
    "usage": contract.UsageEvent(usage=Usage(total_tokens=1)),
    "declined": contract.DeclinedEvent(method="m", subject=""),
    "warning": contract.WarningEvent(text="w\x00"),
    "begun": contract.BegunEvent(thread="T", turn="U"),
}


@pytest.mark.parametrize("name", EVENTS)
def test_an_event_is_one_line_of_valid_json_that_its_schema_takes(name: str) -> None:
    line = dump(event_record(EVENTS[name]))
    assert (line.count(b"\n"), line[-1:]) == (1, b"\n")
    found = strict(line)
    assert found["event"] == name
    assert valid("event", found)


@pytest.mark.rule("rule.bytesThenLinesThenText")
@pytest.mark.parametrize("text", ["é🎉\u2028\u0085\r\n", "\ud83d", "a\udfffb", "\x00\x1f", '"\\'])
def test_any_text_is_valid_json_and_utf8_and_comes_back(text: str) -> None:
    for indent in (None, 2):
        data = dump({"text": text}, indent=indent)
        data.decode("utf-8", "strict")
        assert json.loads(data) == {"text": text}
