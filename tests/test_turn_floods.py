"""Too much of everything: floods on both streams, long lines, and that limits and signals get through all the same.

Serves rule.boundedAlways. The bounds are wide: what is tested is that nothing hangs, not how quick it is.
"""

from __future__ import annotations

import json
import signal

import pytest
from turns import START, User, wait_for

pytestmark = pytest.mark.rule("rule.boundedAlways")

DONE = [{"msg": ["ANSWER", "final_answer"]}, {"done": "completed"}]
FOREVER = {"times": None}


def test_a_flood_on_stderr_neither_blocks_nor_grows_the_outcome(user: User) -> None:
    ran = user.turn([*START, {"stderr": {"bytes": 30_000_000}}, *DONE]).completed()
    assert ran.outcome["final_text"] == "ANSWER"
    assert len(ran.err) < 10_000


def test_the_end_of_a_flood_on_stderr_is_what_an_error_shows(user: User) -> None:
    flood = [*START, {"stderr": {"bytes": 3_000_000}}, {"stderr": "the last words"}, {"crash": {"exit": 1}}]
    ran = user.turn(flood).ended_as("failed", "app_server_exited", 9)
    assert ran.error["message"].endswith("the last words")
    assert len(ran.error["message"]) < 20_000


def test_a_flood_of_unknown_notifications_is_passed_by(user: User) -> None:
    ran = user.turn([*START, {"flood": {"lines": 100_000}}, *DONE]).completed()
    assert ran.outcome["warnings"] == []


def test_a_flood_of_broken_lines_is_counted(user: User) -> None:
    ran = user.turn([*START, {"flood": {"lines": 20_000, "text": "no json"}}, *DONE]).completed()
    assert ran.outcome["warnings"] == ["20000 lines of Codex were no JSON objects and were passed by"]


def test_a_flood_of_warnings_is_kept_in_part_and_counted(user: User) -> None:
    warn = [{"notify": {"method": "warning", "params": {"message": f"w{i}"}}} for i in range(150)]
    ran = user.turn([*START, *warn, *DONE]).completed()
    assert len(ran.outcome["warnings"]) == 101
    assert ran.outcome["warnings"][-1] == "50 more declined requests and warnings were not kept"


def test_twenty_thousand_deltas_are_one_answer(user: User) -> None:
    ran = user.turn([*START, {"flood": {"deltas": "é🎉", "lines": 20_000}}, {"done": "completed"}]).completed()
    assert ran.outcome["final_text"] == "é🎉" * 20_000


def test_deltas_that_are_read_together_are_told_together_and_exactly(user: User) -> None:
    user.plays([*START, {"flood": {"deltas": "é🎉", "lines": 20_000}}, {"done": "completed"}])
    ran = user.run("run", "--events", "go")
    told = [event["text"] for event in map(json.loads, ran.out.splitlines()) if event["event"] == "text_delta"]
    assert "".join(told) == "é🎉" * 20_000
    assert len(told) < 5_000  # a read takes what is there, 256 KiB at most: some 1,200 deltas


def test_a_line_of_thirty_megabytes_is_one_line(user: User) -> None:
    big = {"flood": {"lines": 1, "size": 30_000_000}}
    assert user.turn([*START, big, *DONE]).completed().outcome["final_text"] == "ANSWER"


@pytest.mark.rule("rule.limits")
@pytest.mark.parametrize("what", ["stdout", "one line without an end", "stderr"])
def test_a_limit_of_time_gets_through_a_flood_that_never_ends(user: User, what: str) -> None:
    step = {
        "stdout": {"flood": {"lines": 2000, "method": "account/rateLimits/updated", "params": {"pad": "x" * 200}}},
        "one line without an end": {"raw": {"text": "x" * 65536}},
        "stderr": {"stderr": {"bytes": 1_000_000}},
    }[what]
    ran = user.turn([*START, {"repeat": {**FOREVER, "steps": [step]}}], "--timeout", "1.5", "--grace", "0.2")
    ran.ended_as("interrupted", "timeout", 8)
    assert ran.took_s < 30


@pytest.mark.rule("rule.interruptConfirmed")
def test_an_interrupt_gets_through_a_flood(user: User) -> None:
    lines = {"flood": {"lines": 2000, "method": "future/flood", "params": {"pad": "x" * 200}}}
    steps = [*START, {"repeat": {**FOREVER, "steps": [lines]}}]
    with user.running(steps, "--grace", "0.2") as process:
        wait_for(lambda: user.asked("turn/start"))
        process.send_signal(signal.SIGINT)
        user.finish(process).ended_as("interrupted", "interrupted", 130)


def test_a_prompt_of_five_megabytes_passes_while_codex_talks_and_reads_slowly(user: User) -> None:
    prompt = "p é\n" * 1_000_000
    chatter = {"flood": {"lines": 1000, "size": 1000}}
    user.plays({"on": {"thread/start": [{"reply": {"default": True}}, chatter]}, "turn": [*START, *DONE]})
    ran = user.run("run", "--json", "-", stdin=prompt.encode()).completed()
    assert ran.outcome["final_text"] == "ANSWER"
    (sent,) = user.asked("turn/start")
    assert sent["input"][0]["text"] == prompt
