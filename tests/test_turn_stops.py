"""How a running turn is stopped: by a signal, by a limit; asked first, ended then, confirmed or not.

Serves rule.interruptConfirmed, rule.limits, rule.exitCodes.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from turns import ANSWER, SILENCE, START, User, alive, pids_in, wait_for

pytestmark = pytest.mark.rule("rule.interruptConfirmed")

STUBBORN: dict[str, Any] = {"turn": SILENCE, "on_interrupt": [{"reply": {}}]}


def is_running(user: User) -> bool:
    """Codex has said that the turn began, and we have heard it."""
    return any(json.loads((job / "record.json").read_bytes()).get("turn") for job in user.jobs())


@pytest.mark.rule("rule.exitCodes")
@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_interrupts_and_codex_confirms(user: User, signum: signal.Signals, code: int) -> None:
    with user.running([*START, {"msg": ["half", None]}, {"stall": True}]) as process:
        wait_for(lambda: is_running(user))
        process.send_signal(signum)
        ran = user.finish(process).ended_as("interrupted", "interrupted", code)
    assert ran.outcome["confirmed"] is True
    assert (ran.outcome["final_text"], ran.outcome["partial_text"]) == ("", "half")
    (asked,) = user.asked("turn/interrupt")
    assert asked == {"threadId": ran.outcome["thread"], "turnId": ran.outcome["turn"]}


def test_an_interrupt_that_is_acknowledged_and_never_confirmed_ends_the_processes(user: User) -> None:
    pids = user.root / "pids"
    spawn = {"spawn": {"shape": "setsid", "pid_file": str(pids)}}
    with user.running({**STUBBORN, "turn": [*START, spawn, {"stall": True}]}, "--grace", "0.2") as process:
        wait_for(lambda: is_running(user) and pids_in(pids))
        process.send_signal(signal.SIGINT)
        ran = user.finish(process).ended_as("interrupted", "interrupted", 130)
    assert ran.outcome["confirmed"] is False
    assert ran.outcome["processes_ended"] >= 1, "Codex may go by itself when its input ends, the sleep does not"
    assert not any(map(alive, pids_in(pids))), "the outcome comes when the processes are gone"


def test_a_confirmed_interrupt_ends_what_the_turn_left_running(user: User) -> None:
    pids = user.root / "pids"
    spawn = {"spawn": {"shape": "double_fork", "pid_file": str(pids)}}
    with user.running([*START, spawn, {"stall": True}]) as process:
        wait_for(lambda: is_running(user) and pids_in(pids))
        process.send_signal(signal.SIGTERM)
        ran = user.finish(process).ended_as("interrupted", "interrupted", 143)
    assert ran.outcome["confirmed"] is True
    assert not any(map(alive, pids_in(pids)))


@pytest.mark.parametrize(
    "scenario",
    [
        {"on": {"initialize": [{"stall": True}]}},
        {"on": {"thread/start": [{"stall": True}]}},
        {"turn": [{"stall": True}]},
        {"turn": [{"start": "reply"}, {"stall": True}]},
    ],
    ids=["before initialize", "before the thread", "before turn/start is answered", "before turn/started"],
)
def test_an_interrupt_before_the_turn_has_started_needs_no_word_of_codex(user: User, scenario: dict[str, Any]) -> None:
    method = next(iter(scenario.get("on", {"turn/start": None})))
    with user.running(scenario, "--grace", "0.3") as process:
        wait_for(lambda: user.asked(method))
        process.send_signal(signal.SIGINT)
        user.finish(process).ended_as("interrupted", "interrupted", 130)
    assert not user.asked("turn/interrupt")


def test_a_second_signal_ends_at_once(user: User) -> None:
    with user.running({**STUBBORN, "ignore_signals": ["TERM"]}, "--grace", "50") as process:
        wait_for(lambda: is_running(user))
        process.send_signal(signal.SIGINT)
        wait_for(lambda: user.asked("turn/interrupt"))
        process.send_signal(signal.SIGINT)
        ran = user.finish(process).ended_as("interrupted", "interrupted", 130)
    assert ran.outcome["confirmed"] is False


def test_an_interrupt_that_finds_another_turn_tries_once_more_with_it(user: User) -> None:
    wrong = {"error": {"code": -32600, "message": "expected active turn id `x` but found `Y`"}}
    first = [{"reply": {"error": wrong["error"]}}]
    again = {"turn": SILENCE, "on": {"turn/interrupt": first}}
    with user.running(again, "--grace", "0.3") as process:
        wait_for(lambda: is_running(user))
        process.send_signal(signal.SIGINT)
        user.finish(process).ended_as("interrupted", "interrupted", 130)
    turns = [params["turnId"] for params in user.asked("turn/interrupt")]
    assert turns[1:] == ["Y"], turns


def test_a_turn_that_completes_while_it_is_interrupted_keeps_its_answer(user: User) -> None:
    scenario = {"turn": SILENCE, "on_interrupt": [{"msg": ["A", "final_answer"]}, {"done": "completed"}, {"reply": {}}]}
    with user.running(scenario) as process:
        wait_for(lambda: is_running(user))
        process.send_signal(signal.SIGINT)
        ran = user.finish(process).completed()
    assert ran.outcome["final_text"] == "A"


def test_a_codex_that_dies_of_the_interrupt_is_an_interrupted_turn(user: User) -> None:
    with user.running({"turn": SILENCE, "on_interrupt": [{"crash": {"exit": 1}}]}) as process:
        wait_for(lambda: is_running(user))
        process.send_signal(signal.SIGINT)
        ran = user.finish(process).ended_as("interrupted", "interrupted", 130)
    assert ran.outcome["confirmed"] is False


# --- limits -----------------------------------------------------------------------------------------------------


@pytest.mark.rule("rule.limits")
def test_the_time_limit_is_the_reason_though_the_process_exits_of_it(user: User) -> None:
    scenario = {"turn": SILENCE, "on_interrupt": [{"crash": {"exit": 1}}]}
    user.turn(scenario, "--timeout", "0.8").ended_as("interrupted", "timeout", 8)


@pytest.mark.rule("rule.limits")
def test_the_time_limit_holds_before_the_turn_too(user: User) -> None:
    user.turn({"replies": {"initialize": "silence"}}, "--timeout", "0.5").ended_as("interrupted", "timeout", 8)


@pytest.mark.rule("rule.limits")
def test_progress_of_the_turn_puts_the_idle_limit_off(user: User) -> None:
    steady = [step for n in range(6) for step in ({"wait": 0.25}, {"msg": [f"m{n}", "commentary"]})]
    ran = user.turn([*START, *steady, *ANSWER[1:]], "--idle-timeout", "1.2").completed()
    assert ran.outcome["timing"]["duration_s"] > 1.5


@pytest.mark.rule("rule.limits")
@pytest.mark.parametrize("method", ["account/rateLimits/updated", "thread/status/changed", "item/started"])
def test_chatter_that_is_not_of_the_turn_does_not_put_the_idle_limit_off(user: User, method: str) -> None:
    params = {"threadId": "$thread", "turnId": "OLD", "item": {"id": "x"}, "status": {"type": "active"}}
    chatter = {"repeat": {"times": None, "steps": [{"notify": {"method": method, "params": params}}, {"wait": 0.1}]}}
    ran = user.turn([*START, chatter], "--idle-timeout", "0.7", "--timeout", "30")
    ran.ended_as("interrupted", "idle_timeout", 8)


@pytest.mark.rule("rule.limits")
def test_the_work_of_a_sub_agent_is_progress_of_the_turn(user: User) -> None:
    child = {"thread": "C", "turn": "c"}
    steady = [s for n in range(6) for s in ({"wait": 0.25}, {"msg": [f"m{n}", None], **child})]
    user.turn([*START, *steady, *ANSWER[1:]], "--idle-timeout", "1.2").completed()


# --- what is left on disk ---------------------------------------------------------------------------------------


def test_a_stopped_turn_leaves_an_ended_record_with_its_outcome(user: User) -> None:
    with user.running(SILENCE) as process:
        wait_for(lambda: is_running(user))
        os.killpg(process.pid, signal.SIGTERM)
        ran = user.finish(process).ended_as("interrupted", "interrupted", 143)
    record = json.loads((Path(user.jobs()[0]) / "record.json").read_bytes())
    assert (record["state"], record["status"], record["thread"]) == ("ended", "interrupted", ran.outcome["thread"])
    assert record["outcome"]["error"]["reason"] == "interrupted"
