"""`cc-agents review`, and an answer that is held against the schema it was asked for.

Serves rule.review and rule.answerSchema.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from turns import START, User

REVIEW = [
    *START,
    {"item": {"type": "enteredReviewMode", "review": "current changes"}},
    {"item": {"type": "exitedReviewMode", "review": "R: one finding\n"}},
    {"msg": ["R2", None]},
    {"done": "completed"},
]


@pytest.mark.rule("rule.review")
@pytest.mark.parametrize(
    ("words", "target"),
    [
        ((), {"type": "uncommittedChanges"}),
        (("--base", "main"), {"type": "baseBranch", "branch": "main"}),
    ],
    ids=["uncommitted", "against a base"],
)
def test_a_review_is_codex_s_own_and_its_text_is_the_answer(
    user: User, words: tuple[str, ...], target: dict[str, str]
) -> None:
    user.plays(REVIEW)
    ran = user.run("review", *words)
    assert (ran.code, ran.out) == (0, b"R: one finding\n"), ran.err
    (asked,) = user.asked("review/start")
    assert (asked["target"], asked["delivery"]) == (target, "inline")
    assert user.asked("turn/start") == []


@pytest.mark.rule("rule.review")
def test_a_review_runs_in_the_mode_that_is_asked_and_read_only_if_nothing_is(user: User) -> None:
    user.plays(REVIEW)
    told = user.run("review", "--json").completed().outcome
    assert told["effective"]["mode"] == "read-only"
    assert user.run("review", "--json", "--model", "nope").outcome["error"]["reason"] == "unknown_model"


@pytest.mark.rule("rule.review")
@pytest.mark.parametrize("root", [True, False], ids=["as 0.171 says it", "as 0.145 says it"])
def test_a_review_has_begun_when_the_reviewer_s_own_turn_has(user: User, root: bool) -> None:
    inner = {"id": "t-inner", "items": [], "status": "inProgress", **({"rootTurnId": "$turn"} if root else {})}
    begins = {"notify": {"method": "turn/started", "params": {"threadId": "$thread", "turn": inner}}}
    user.plays([{"start": "reply"}, begins, *REVIEW[1:]])
    told = user.run("review", "--json").completed().outcome
    events = [json.loads(line) for line in user.run("events", told["job"]).out.splitlines()]
    assert [e["turn"] for e in events if e["event"] == "begun"] == [told["turn"]]


SCHEMA = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}


def answer(text: str) -> list[dict[str, object]]:
    return [*START, {"msg": [text, "final_answer"]}, {"done": "completed"}]


def schema(user: User, content: object) -> Path:
    path = user.root / "schema.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


@pytest.mark.rule("rule.answerSchema")
@pytest.mark.parametrize(
    ("text", "fault"),
    [('{"n": 1}', None), ('{"n": "1"}', "n: '1' is not of type 'integer'"), ("n is 1", "not JSON")],
)
def test_an_answer_that_does_not_match_the_schema_is_a_warning_and_unchanged(
    user: User, text: str, fault: str | None
) -> None:
    user.plays(answer(text))
    ran = user.run("run", "--json", "--output-schema", str(schema(user, SCHEMA)), "--", "x").completed()
    assert ran.outcome["final_text"] == text
    assert user.asked("turn/start")[0]["outputSchema"] == SCHEMA
    warnings = [w for w in ran.outcome["warnings"] if "--output-schema" in w]
    assert len(warnings) == (fault is not None)
    if fault is not None:
        assert fault in warnings[0]


@pytest.mark.rule("rule.answerSchema")
@pytest.mark.parametrize("content", ["{", '{"type": 7}', "[]"])
def test_a_schema_that_is_none_is_refused_before_anything(user: User, content: str) -> None:
    ran = user.run("run", "--json", "--output-schema", str(schema(user, content)), "--", "x")
    ran.ended_as("refused", "bad_request", 2)
    assert user.nothing_was_made()
