"""A Codex that dies, goes silent or says the end without meaning it: one outcome, within a bound, and never a success.

Serves spec:cc-agents.misbehaving-peer. Does not test what the guard ends (test_guard.py).
"""

from __future__ import annotations

from typing import Any

import pytest
from turns import ANSWER, SILENCE, START, User, usage_of

pytestmark = pytest.mark.rule("rule.boundedAlways")

PROMPT_S = 5.0  # "within a second", and four for a machine that does other things meanwhile
GREETING = ("initialize", "config/read", "model/list", "account/read")
BEFORE = (*GREETING, "thread/start")
EXITS: list[tuple[dict[str, Any], str]] = [
    ({"exit": 0}, "exited with code 0"),
    ({"exit": 1}, "exited with code 1"),
    ({"signal": "KILL"}, "was ended by SIGKILL"),
    ({"signal": "SEGV"}, "was ended by SIGSEGV"),
]
EXIT_IDS = ["exit 0", "exit 1", "SIGKILL", "SIGSEGV"]


@pytest.mark.parametrize(("crash", "how"), EXITS, ids=EXIT_IDS)
@pytest.mark.parametrize("step", ["initialize", "thread/start", "turn/start"])
def test_a_death_on_any_request_is_told_with_its_exit_and_the_end_of_stderr(
    user: User, step: str, crash: dict[str, Any], how: str
) -> None:
    ran = user.turn({"on": {step: [{"stderr": "boom"}, {"crash": crash}]}})
    ran.ended_as("failed", "app_server_exited", 9)
    assert how in ran.error["message"]
    assert "boom" in ran.error["message"]
    assert ran.took_s < PROMPT_S


@pytest.mark.parametrize(("crash", "how"), EXITS, ids=EXIT_IDS)
@pytest.mark.parametrize(
    "steps",
    [[{"start": "reply"}], START, [*START, {"msg": ["half", None]}], [*START, {"msg": ["all", "final_answer"]}]],
    ids=["after the answer", "after turn/started", "after a message", "after the final answer"],
)
@pytest.mark.rule("rule.neverEmptySuccess")
def test_a_death_in_the_middle_of_a_turn_is_no_success_at_any_step(
    user: User, steps: list[Any], crash: dict[str, Any], how: str
) -> None:
    ran = user.turn([*steps, {"stderr": "boom"}, {"crash": crash}])
    ran.ended_as("failed", "app_server_exited", 9)
    assert (ran.outcome["final_text"], ran.outcome["confirmed"]) == ("", False)
    assert how in ran.error["message"]
    assert "boom" in ran.error["message"]
    assert ran.outcome["partial_text"] == {2: "half"}.get(len(steps), "") or steps[-1]["msg"][0] == "all"
    assert ran.took_s < PROMPT_S


@pytest.mark.parametrize("method", BEFORE)
def test_an_answer_that_never_comes_is_named_and_bounded(user: User, method: str) -> None:
    ran = user.turn({"replies": {method: "silence"}}, "--start-timeout", "0.3")
    ran.ended_as("failed", "protocol", 9)
    assert f"did not answer {method} within 0.3 s" in ran.error["message"]
    assert not user.asked("turn/start")


def test_a_resume_that_is_never_answered_is_named_and_bounded(user: User) -> None:
    ran = user.turn({"replies": {"thread/resume": "silence"}}, "--start-timeout", "0.3", "--resume", "0a")
    ran.ended_as("failed", "protocol", 9)
    assert "did not answer thread/resume" in ran.error["message"]


def test_a_turn_start_without_an_answer_and_without_a_turn_ends_at_the_start_limit(user: User) -> None:
    ran = user.turn([{"stall": True}], "--start-timeout", "0.3")
    ran.ended_as("failed", "protocol", 9)
    assert "turn/start" in ran.error["message"]


def test_a_turn_that_begins_without_an_answer_to_turn_start_goes_on(user: User) -> None:
    ran = user.turn([{"start": "started"}, {"msg": ["ANSWER", "final_answer"]}, {"done": "completed"}]).completed()
    assert ran.outcome["final_text"] == "ANSWER"


@pytest.mark.rule("rule.limits")
def test_a_turn_that_says_nothing_at_all_ends_at_the_idle_limit(user: User) -> None:
    ran = user.turn(SILENCE, "--idle-timeout", "0.3")
    ran.ended_as("interrupted", "idle_timeout", 8)
    assert ran.outcome["confirmed"] is True


def test_silence_within_the_limits_is_not_an_end(user: User) -> None:
    quiet = [*START, {"wait": 0.6}, *ANSWER[1:]]
    assert user.turn(quiet, "--start-timeout", "0.5", "--idle-timeout", "20").completed().outcome["final_text"] == "ANSWER"


def test_output_that_is_closed_by_a_living_codex_ends_the_turn_and_the_process(user: User) -> None:
    ran = user.turn([*START, {"close_stdout": True}, {"stall": True}])
    ran.ended_as("failed", "protocol", 9)
    assert "closed its output" in ran.error["message"]
    assert ran.outcome["processes_ended"] >= 1
    assert ran.took_s < PROMPT_S


def test_a_child_that_holds_the_output_open_does_not_hide_that_codex_died(user: User) -> None:
    spawn = {"spawn": {"shape": "setsid", "stdout": True, "pid_file": str(user.root / "pids")}}
    ran = user.turn([*START, spawn, {"crash": {"exit": 3}}])
    ran.ended_as("failed", "app_server_exited", 9)
    assert "code 3" in ran.error["message"]


def test_a_final_error_without_an_end_settles_the_turn_after_the_grace(user: User) -> None:
    ran = user.turn([*START, {"err": ["usageLimitExceeded", False]}, {"stall": True}], "--grace", "0.2")
    ran.ended_as("failed", "usage_limit_exceeded", 4)
    assert (ran.error["kind"], ran.outcome["confirmed"]) == ("quota", False)


def test_an_idle_thread_without_an_end_is_asked_and_its_answer_is_kept(user: User) -> None:
    steps = [*START, {"msg": ["X", "final_answer"]}, {"idle": True}, {"done": "completed", "silent": True}]
    ran = user.turn([*steps, {"stall": True}], "--grace", "0.2").completed()
    assert (ran.outcome["final_text"], ran.outcome["confirmed"]) == ("X", False)
    assert user.asked("thread/read")
    assert any("never said" in w for w in ran.outcome["warnings"])


def test_an_idle_thread_that_has_the_answer_counts_also_if_it_cannot_be_read(user: User) -> None:
    steps = [*START, {"msg": ["X", "final_answer"]}, {"idle": True}, {"stall": True}]
    ran = user.turn({"turn": steps, "replies": {"thread/read": "silence"}}, "--grace", "0.2").completed()
    assert (ran.outcome["final_text"], ran.outcome["confirmed"]) == ("X", False)


@pytest.mark.rule("rule.neverEmptySuccess")
def test_an_idle_thread_without_an_answer_is_no_success(user: User) -> None:
    steps = [*START, {"idle": True}, {"done": "completed", "silent": True}, {"stall": True}]
    user.turn(steps, "--grace", "0.2").ended_as("failed", "no_answer", 1)


def test_a_turn_that_its_thread_calls_running_goes_on_to_the_idle_limit(user: User) -> None:
    steps = [*START, {"idle": True}, {"stall": True}]
    user.turn(steps, "--grace", "0.1", "--idle-timeout", "0.6").ended_as("interrupted", "idle_timeout", 8)


@pytest.mark.rule("rule.neverEmptySuccess")
def test_an_end_without_an_answer_is_a_failure_that_says_so(user: User) -> None:
    ran = user.turn([*START, {"command": "true"}, {"usage": [10, 10]}, {"done": "completed"}])
    ran.ended_as("failed", "no_answer", 1)
    assert ran.outcome["confirmed"] is True
    assert usage_of(ran.outcome) == 10


def test_codex_keeps_its_input_until_the_turn_is_over(user: User) -> None:
    go = user.root / "go"
    steps = [*START, {"wait": 0.1}, {"msg": ["X", "final_answer"]}, {"done": "completed"}]
    user.turn(steps).completed()
    entries = user.logged("eof")
    assert len(entries) == 1, go
    lines = user.log.read_text().splitlines()
    assert '"eof"' in lines[-1], "something came after the end of input"


def test_an_exit_right_after_the_end_is_still_a_success(user: User) -> None:
    ran = user.turn([*ANSWER, {"crash": {"exit": 1}}]).completed()
    assert ran.outcome["final_text"] == "ANSWER"


def test_half_a_line_before_death_is_not_taken_for_a_message(user: User) -> None:
    half = '{"method":"turn/completed","params":{"threadId":"$thread","turn":{"id":"$turn","status":"comp'
    ran = user.turn([*START, {"msg": ["X", None]}, {"raw": {"text": half}}, {"crash": {"exit": 1}}])
    ran.ended_as("failed", "app_server_exited", 9)


def test_a_codex_that_reads_nothing_and_says_nothing_ends_at_the_idle_limit(user: User) -> None:
    deaf = [*START, {"stall": {"deaf": True}}]
    ran = user.turn(deaf, "--idle-timeout", "0.3", "--grace", "0.2")
    ran.ended_as("interrupted", "idle_timeout", 8)
    assert ran.outcome["confirmed"] is False
