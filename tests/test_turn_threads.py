"""Threads: what is asked of Codex when one is resumed, and what is said when that can't be.

Serves rule.threadResumes, rule.refusedEarly. Jobs and follow-ups are tested elsewhere.
"""

from __future__ import annotations

import pytest
from turns import ANSWER, User

pytestmark = pytest.mark.rule("rule.threadResumes")


def test_a_resumed_thread_is_the_one_that_was_named(user: User) -> None:
    ran = user.turn({"known_threads": ["0a"], "turn": ANSWER}, "--resume", "0a").completed()
    assert [p["threadId"] for p in user.asked("thread/resume")] == ["0a"]
    assert "thread/start" not in user.methods()
    assert (ran.outcome["thread"], user.asked("turn/start")[0]["threadId"]) == ("0a", "0a")


def test_an_unknown_thread_is_refused_and_never_a_new_one(user: User) -> None:
    ran = user.turn({"known_threads": ["0a"], "turn": ANSWER}, "--resume", "0b").ended_as(
        "refused", "thread_unknown", 2
    )
    assert "no rollout found for thread id 0b" in ran.error["message"]
    assert "thread/start" not in user.methods()
    assert "turn/start" not in user.methods()


def test_what_is_no_thread_id_is_refused_in_codex_words(user: User) -> None:
    ran = user.turn({"known_threads": ["0a"], "turn": ANSWER}, "--resume", "zebra")
    ran.ended_as("refused", "thread_unknown", 2)
    assert "invalid session id" in ran.error["message"]


def test_a_thread_that_somebody_else_writes_is_busy(user: User) -> None:
    refusal = {"error": {"code": -32600, "message": "thread 0a already has an active writer"}}
    ran = user.turn({"replies": {"thread/resume": refusal}}, "--resume", "0a").ended_as("refused", "thread_busy", 2)
    assert "in use" in ran.error["message"]


def test_another_thread_than_the_one_asked_for_is_an_error_of_the_protocol(user: User) -> None:
    ran = user.turn({"thread": {"thread": {"id": "0b"}}, "turn": ANSWER}, "--resume", "0a")
    ran.ended_as("failed", "protocol", 9)
    assert "asked 0a, Codex answered 0b" in ran.error["message"]
    assert "turn/start" not in user.methods()


def test_an_older_codex_is_asked_again_without_what_it_does_not_know(user: User) -> None:
    refusal = {"error": {"code": -32600, "message": "thread/resume.excludeTurns requires experimentalApi capability"}}
    scenario = {"known_threads": ["0a"], "replies": {"thread/resume": [refusal]}, "turn": ANSWER, "version": "0.145.0"}
    ran = user.turn(scenario, "--resume", "0a").completed()
    assert ["excludeTurns" in p for p in user.asked("thread/resume")] == [True, False]
    assert ran.outcome["final_text"] == "ANSWER"


def test_a_thread_that_is_named_in_an_outcome_can_be_resumed_by_another_process(user: User) -> None:
    scenario = {"store": str(user.root / "threads"), "turn": ANSWER}
    threads = [user.turn(scenario).completed().outcome["thread"] for _ in range(3)]
    assert len(set(threads)) == 3
    assert all(not params.get("ephemeral") for params in user.asked("thread/start"))
    assert user.turn(scenario, "--resume", threads[0]).completed().outcome["thread"] == threads[0]
