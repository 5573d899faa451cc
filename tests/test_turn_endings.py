"""A Codex that dies, goes silent or says the end without meaning it: one outcome, within a bound, and never a success.

Serves spec:cc-agents.misbehaving-peer. Does not test what the guard ends (test_guard.py).
"""

from __future__ import annotations

from typing import Any

import pytest
from peer import THREAD, TURN, Codex, converse, done, line, message, notice, started
from turns import ANSWER, SILENCE, START, Steps, User, usage_of

from adapters.contract import Limits

pytestmark = pytest.mark.rule("rule.boundedAlways")

PROMPT_S = 5.0  # "within a second", and four for a machine that does other things meanwhile
SHORT = Limits(start_s=0.1, grace_s=0.1)
EXITS: list[tuple[dict[str, Any], str]] = [
    ({"exit": 0}, "exited with code 0"),
    ({"exit": 1}, "exited with code 1"),
    ({"signal": "KILL"}, "was ended by SIGKILL"),
    ({"signal": "SEGV"}, "was ended by SIGSEGV"),
]
STEPS: list[tuple[str, Steps, str]] = [
    ("turn/start was answered", [{"start": "reply"}], ""),
    ("the turn has started", START, ""),
    ("a message", [*START, {"msg": ["half", None]}], "half"),
    ("the final answer", [*START, {"msg": ["all", "final_answer"]}], "all"),
]
# every exit at one step, and two exits at the others: which exit it is and where it comes are two things
DEATHS = [(step, end) for step in STEPS for end in (EXITS if step[0] == "the turn has started" else EXITS[::2])]


@pytest.mark.parametrize(("crash", "how"), EXITS[::2], ids=["exit 0", "SIGKILL"])
@pytest.mark.parametrize("method", ["initialize", "thread/start", "turn/start"])
def test_a_death_on_any_request_is_told_with_its_exit_and_the_end_of_stderr(
    user: User, method: str, crash: dict[str, Any], how: str
) -> None:
    ran = user.turn({"on": {method: [{"stderr": "boom"}, {"crash": crash}]}})
    ran.ended_as("failed", "app_server_exited", 9)
    assert how in ran.error["message"]
    assert "boom" in ran.error["message"]
    assert ran.outcome["timing"]["duration_s"] < PROMPT_S


@pytest.mark.rule("rule.neverEmptySuccess")
@pytest.mark.parametrize(("step", "end"), DEATHS, ids=lambda given: given[0] if isinstance(given[0], str) else given[1])
def test_a_death_in_the_middle_of_a_turn_is_no_success_after(
    user: User, step: tuple[str, Steps, str], end: tuple[dict[str, Any], str]
) -> None:
    (_, steps, partial), (crash, how) = step, end
    ran = user.turn([*steps, {"stderr": "boom"}, {"crash": crash}])
    ran.ended_as("failed", "app_server_exited", 9)
    assert (ran.outcome["final_text"], ran.outcome["partial_text"], ran.outcome["confirmed"]) == ("", partial, False)
    assert how in ran.error["message"]
    assert "boom" in ran.error["message"]
    assert ran.outcome["timing"]["duration_s"] < PROMPT_S


@pytest.mark.parametrize("method", ["initialize", "config/read", "model/list", "account/read", "thread/start"])
async def test_an_answer_that_never_comes_is_named_and_bounded(method: str) -> None:
    codex = Codex(answers={method: None})
    ending = await converse(codex, limits=SHORT)
    assert ending.error is not None
    assert (ending.status, ending.error.reason) == ("failed", "protocol")
    assert ending.error.message == f"Codex did not answer {method} within 0.1 s"
    assert not codex.asked("turn/start")


def test_a_resume_that_is_never_answered_is_named_and_bounded(user: User) -> None:
    ran = user.turn({"replies": {"thread/resume": "silence"}}, "--start-timeout", "2", "--resume", "0a")
    ran.ended_as("failed", "protocol", 9)
    assert "did not answer thread/resume" in ran.error["message"]


@pytest.mark.parametrize(
    "answer", [None, {}, {"turn": {}}, {"turn": {"id": ""}}, b'{"id":"$ID","result":null}\n'], ids=repr
)
async def test_a_turn_start_that_brings_no_turn_ends_at_the_start_limit(answer: Any) -> None:
    ending = await converse(Codex(answers={"turn/start": answer}), limits=SHORT)
    assert ending.error is not None
    assert (ending.status, ending.error.reason) == ("failed", "protocol")
    assert "turn/start" in ending.error.message


async def test_what_was_taken_for_our_turn_is_given_back_when_codex_names_another() -> None:
    stranger = {"threadId": THREAD, "turnId": "V"}
    item = {"type": "agentMessage", "id": "v", "text": "STRANGER", "phase": "final_answer"}
    usage = {"total": {"totalTokens": 500}, "last": {"totalTokens": 500}}
    early = [
        notice("turn/started", **stranger, turn={"id": "V"}),
        notice("item/completed", **stranger, item=item),
        notice("thread/tokenUsage/updated", **stranger, tokenUsage=usage),
        line({"id": "$ID", "result": {"turn": {"id": TURN}}}),
    ]
    own = notice("thread/tokenUsage/updated", tokenUsage={"total": {"totalTokens": 620}})
    ending = await converse(Codex([*early, started(), message("A"), own, done()], answers={"turn/start": None}))
    assert (ending.status, ending.final_text, ending.turn) == ("completed", "A", TURN)
    assert ending.usage is not None
    assert ending.usage.total_tokens == 120


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
    assert (
        user.turn(quiet, "--start-timeout", "0.5", "--idle-timeout", "20").completed().outcome["final_text"] == "ANSWER"
    )


def test_output_that_is_closed_by_a_living_codex_ends_the_turn_and_the_process(user: User) -> None:
    ran = user.turn({"turn": [*START, {"close_stdout": True}, {"stall": True}], "on_eof": "ignore"})
    ran.ended_as("failed", "protocol", 9)
    assert "closed its output" in ran.error["message"]
    assert ran.outcome["processes_ended"] >= 1
    assert ran.outcome["timing"]["duration_s"] < PROMPT_S


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
    user.turn([*START, {"wait": 0.1}, {"msg": ["X", "final_answer"]}, {"done": "completed"}]).completed()
    assert len(user.logged("eof")) == 1
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
