"""Model and effort are settled before a thread is started, and what is wrong is refused with what would work.

Serves rule.catalogCheck. The rule alone, in memory: test_catalog.py.
"""

from __future__ import annotations

from typing import Any

import pytest
from turns import ANSWER, User

pytestmark = pytest.mark.rule("rule.catalogCheck")

MODELS = [
    {"id": "gpt-6.2-sol", "supportedReasoningEfforts": ["low", "max", "ultra"]},
    {"id": "gpt-mini", "supportedReasoningEfforts": ["low", "medium"]},
    {"id": "gpt-quiet", "supportedReasoningEfforts": ["low"], "hidden": True},
]


def playing(**more: Any) -> dict[str, Any]:
    return {"models": MODELS, "turn": ANSWER, **more}


def test_an_effort_of_the_catalog_passes_whatever_it_is_called(user: User) -> None:
    ran = user.turn(playing(), "--effort", "ultra").completed()
    assert ran.outcome["effective"]["effort"] == {"value": "ultra", "source": "--effort"}
    assert user.asked("turn/start")[0]["effort"] == "ultra"


def test_an_unknown_effort_is_refused_with_those_that_work_and_no_thread_is_started(user: User) -> None:
    ran = user.turn(playing(), "--effort", "minimal").ended_as("refused", "unknown_effort", 2)
    assert "low, max, ultra" in ran.error["message"]
    assert "thread/start" not in user.methods()


def test_an_effort_that_another_model_has_is_refused_for_this_one(user: User) -> None:
    ran = user.turn(playing(), "--model", "gpt-mini", "--effort", "ultra").ended_as("refused", "unknown_effort", 2)
    assert "low, medium" in ran.error["message"]
    assert "thread/start" not in user.methods()


def test_an_unknown_model_and_an_unknown_effort_are_said_at_once(user: User) -> None:
    ran = user.turn(playing(), "--model", "gpt-9", "--effort", "zany").ended_as("refused", "unknown_model", 2)
    assert "gpt-6.2-sol, gpt-mini" in ran.error["message"]
    assert "gpt-quiet" not in ran.error["message"], "hidden models are not listed"
    assert "zany" in ran.error["message"]


def test_a_hidden_model_can_be_asked_for(user: User) -> None:
    ran = user.turn(playing(), "--model", "gpt-quiet").completed()
    assert user.asked("thread/start")[0]["model"] == "gpt-quiet"
    assert ran.outcome["effective"]["effort"] == {"value": "low", "source": "model default"}


def test_header_then_flag_then_codex_configuration_then_catalog(user: User) -> None:
    configured = playing(config={"model": "gpt-mini", "model_reasoning_effort": "medium"})
    header = "---\nmodel: gpt-quiet\neffort: low\n---\ngo"
    by_header = user.turn(configured, "--model", "gpt-6.2-sol", "--effort", "max", prompt=header).completed()
    by_flag = user.turn(configured, "--model", "gpt-6.2-sol", "--effort", "max").completed()
    by_config = user.turn(configured).completed()
    by_catalog = user.turn(playing()).completed()
    found = [
        (r.outcome["effective"]["model"], r.outcome["effective"]["effort"])
        for r in (by_header, by_flag, by_config, by_catalog)
    ]
    assert [(m["value"], m["source"], e["value"], e["source"]) for m, e in found] == [
        ("gpt-quiet", "header", "low", "header"),
        ("gpt-6.2-sol", "--model", "max", "--effort"),
        ("gpt-mini", "codex config", "medium", "codex config"),
        ("gpt-6.2-sol", "catalog default", "low", "model default"),
    ]
    assert user.asked("turn/start")[0]["input"][0]["text"] == "go"


def test_a_catalog_of_many_pages_is_read_to_its_end(user: User) -> None:
    first = {"data": [{"id": "one", "model": "one", "isDefault": True}], "nextCursor": "1"}
    second = {"data": [{"id": "two", "model": "two"}], "nextCursor": None}
    ran = user.turn(playing(replies={"model/list": [first, second]}), "--model", "two").completed()
    assert ran.outcome["effective"]["model"]["value"] == "two"


def test_a_catalog_that_never_ends_does_not_hold_us(user: User) -> None:
    page = {"data": [{"id": "one", "model": "one", "isDefault": True}], "nextCursor": "1"}
    user.turn(playing(replies={"model/list": page})).completed()
    assert len(user.asked("model/list")) <= 21


def test_an_empty_catalog_refuses_and_says_that_it_is_empty(user: User) -> None:
    ran = user.turn(playing(replies={"model/list": {"data": []}}), "--model", "x")
    ran.ended_as("refused", "unknown_model", 2)
    assert "the catalog is empty" in ran.error["message"]


def test_a_model_that_the_thread_does_not_take_is_refused_before_the_turn(user: User) -> None:
    scenario = playing(known_threads=["0a"], thread={"model": "gpt-6.2-sol"})
    ran = user.turn(scenario, "--model", "gpt-mini", "--resume", "0a").ended_as("refused", "mode_not_enforced", 7)
    assert "model: asked gpt-mini, Codex answered gpt-6.2-sol" in ran.error["message"]
    assert "turn/start" not in user.methods()


def test_check_refuses_as_run_does_and_starts_no_thread(user: User) -> None:
    user.plays(playing())
    ran = user.run("check", "--json", "--effort", "minimal", "go")
    assert ran.code == 2
    assert ran.outcome["problems"][0]["reason"] == "unknown_effort"
    assert "thread/start" not in user.methods()


@pytest.mark.rule("rule.boundedAlways")
@pytest.mark.parametrize("verb", [("check", "--json", "go"), ("models", "--json")], ids=["check", "models"])
def test_check_and_models_say_how_codex_died(user: User, verb: tuple[str, ...]) -> None:
    user.plays({"on": {"initialize": [{"stderr": "boom"}, {"crash": {"exit": 3}}]}})
    ran = user.run(*verb)
    assert ran.code in (2, 9)
    said = ran.err + ran.out.decode()
    assert "exited with code 3: boom" in said
    assert "Traceback" not in said


@pytest.mark.rule("rule.boundedAlways")
def test_check_tells_an_error_of_codex_in_its_words(user: User) -> None:
    user.plays({"replies": {"config/read": {"error": {"code": -32600, "message": "no config today"}}}})
    ran = user.run("check", "--json", "go")
    assert (ran.code, ran.outcome["problems"][0]["message"]) == (2, "Codex refused config/read: no config today")
