"""Turns and threads of the fake go as those of Codex go, and as their script says.

Does not test the adapter. Serves spec:cc-agents.fakes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_client import INPUT, PATIENCE_S, Fake

pytestmark = pytest.mark.rule("rule.fakeIsTrue")


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[Fake]:
    with Fake(tmp_path) as made:
        yield made


def test_an_interrupt_counts_from_turn_started_on_and_nothing_follows_it(fake: Fake) -> None:
    steps = [{"start": "reply"}, {"wait": {"file": str(fake.folder / "go")}}, {"start": "started"}]
    client = fake([*steps, {"repeat": {"times": None, "steps": [{"rate_limits": True}, {"wait": 0.001}]}}])
    thread = client.open()
    turn = client.turn(thread)
    where = {"threadId": thread, "turnId": turn}
    assert client.call("turn/interrupt", where)["message"] == "no active turn to interrupt"
    (fake.folder / "go").touch()
    client.notice("turn/started")
    assert client.call("turn/interrupt", {**where, "turnId": "other"})["message"] == "no active turn to interrupt"
    assert client.call("turn/interrupt", where) == {}
    assert client.notice("turn/completed")["turn"]["status"] == "interrupted"
    client.answer(client.ask("account/read"))
    assert client.received[-1].get("id"), "something of the turn came after its end"


def test_an_empty_turn_id_interrupts_whatever_runs(fake: Fake) -> None:
    client = fake([{"start": "reply"}, {"stall": True}])
    thread = client.open()
    client.turn(thread)
    assert client.call("turn/interrupt", {"threadId": thread, "turnId": ""}) == {}
    assert client.notice("turn/completed")["turn"]["status"] == "interrupted"


def test_a_scripted_interrupt_is_acknowledged_and_never_confirmed(fake: Fake) -> None:
    client = fake({"turn": [{"start": True}, {"stall": True}], "on_interrupt": [{"reply": {}}]})
    thread = client.open()
    turn = client.turn(thread)
    client.notice("turn/started")
    assert client.call("turn/interrupt", {"threadId": thread, "turnId": turn}) == {}
    client.call("account/read")
    assert not client.said("turn/completed")


def test_steers_are_shown_or_refused_in_the_words_of_codex(fake: Fake) -> None:
    client = fake([{"start": True}, {"user_message": True}, {"stall": True}])
    thread = client.open()
    steer = {"threadId": thread, "expectedTurnId": "x", "input": [{"type": "text", "text": "left"}]}
    assert client.call("turn/steer", steer)["message"] == "no active turn to steer"
    turn = client.turn(thread)
    client.notice("item/completed")
    found = f"expected active turn id `x` but found `{turn}`"
    assert client.call("turn/steer", {**steer, "expectedTurnId": "x", "unused": 1})["message"] == found
    missing = client.call("turn/steer", {"threadId": thread, "input": []})
    assert missing["message"] == "Invalid request: missing field `expectedTurnId`"
    assert client.call("thread/read", {"threadId": thread, "includeTurns": True})["thread"]["turns"]


def test_a_steer_is_a_further_user_message_and_a_second_start_is_a_steer(fake: Fake) -> None:
    client = fake([{"start": True}, {"user_message": True}, {"stall": True}])
    thread = client.open()
    turn = client.turn(thread)
    client.notice("item/completed")
    steer = {"threadId": thread, "expectedTurnId": turn, "input": [{"type": "text", "text": "left"}]}
    assert client.call("turn/steer", steer) == {"turnId": turn}
    assert client.notice("item/completed")["item"]["content"][0]["text"] == "left"
    assert client.turn(thread) == turn


def test_text_that_comes_after_the_end_is_still_sent(fake: Fake) -> None:
    late = [{"start": True}, {"done": "completed"}, {"wait": 0.01}, {"msg": ["LATE", "final_answer"]}]
    client = fake(late)
    client.turn(client.open())
    client.notice("turn/completed")
    assert client.notice("item/completed")["item"]["text"] == "LATE"


def test_a_childs_end_is_not_the_parents(fake: Fake) -> None:
    child = {"thread": "C", "turn": "c"}
    steps = [{"msg": ["CHILD", "final_answer"], **child}, {"done": "completed", **child}]
    client = fake([{"start": True}, *steps, {"msg": ["PARENT", None]}, {"done": "completed"}])
    thread = client.open()
    turn = client.turn(thread)
    first, second = client.notice("turn/completed"), client.notice("turn/completed")
    assert (first["threadId"], first["turn"]["id"], first["turn"]["items"][0]["text"]) == ("C", "c", "CHILD")
    assert (second["threadId"], second["turn"]["id"], second["turn"]["items"][0]["text"]) == (
        thread,
        turn,
        "PARENT",
    )


def test_a_failure_is_told_three_times_with_the_same_error(fake: Fake) -> None:
    client = fake([{"start": True}, {"err": ["usageLimitExceeded", False]}, {"done": "failed"}])
    client.turn(client.open())
    end = client.notice("turn/completed")
    assert client.said("thread/status/changed")[-1]["status"] == {"type": "systemError"}
    assert end["turn"]["error"] == client.said("error")[0]["error"]
    assert (end["turn"]["status"], end["turn"]["items"]) == ("failed", [])


def test_usage_without_a_last_request_is_the_difference_to_the_total_before(fake: Fake) -> None:
    client = fake([{"start": True}, {"usage": [1100, 100]}, {"usage": [1400, None]}, {"done": "completed"}])
    client.turn(client.open())
    client.notice("turn/completed")
    usage = [u["tokenUsage"] for u in client.said("thread/tokenUsage/updated")]
    assert [(u["total"]["totalTokens"], u["last"]["totalTokens"]) for u in usage] == [
        (1100, 100),
        (1400, 300),
    ]


def test_a_request_of_the_fake_waits_for_an_answer_with_an_id_of_the_same_type(fake: Fake) -> None:
    ask = {"method": "item/fileChange/requestApproval", "params": {"threadId": "$thread", "turnId": "$turn"}}
    client = fake([{"start": True}, {"ask": {**ask, "expect_result": {"decision": "decline"}}}, {"done": "completed"}])
    thread = client.open()
    turn = client.turn(thread)
    asked = client.until(lambda m: m.get("method") == ask["method"])
    assert (asked["id"], asked["params"]) == (0, {"threadId": thread, "turnId": turn})
    client.write({"id": "0", "result": {"decision": "decline"}})
    client.call("account/read")
    assert not client.said("serverRequest/resolved")
    client.write({"id": 0, "result": {"decision": "decline"}})
    client.notice("turn/completed")
    assert fake.logged("answer") == [{"id": 0, "result": {"decision": "decline"}}]


def test_scripts_and_replies_take_the_place_of_the_defaults(fake: Fake) -> None:
    refusal = {"error": {"code": -32600, "message": "no"}}
    extra = [{"reply": {"default": True}}, {"notify": {"method": "x/y", "params": {"t": "$thread"}}}]
    client = fake({"replies": {"account/read": [refusal], "config/read": "silence"}, "on": {"thread/start": extra}})
    thread = client.open()
    assert client.notice("x/y") == {"t": thread}
    client.ask("config/read")
    assert client.call("account/read") == refusal["error"]
    assert client.call("account/read")["requiresOpenaiAuth"] is True


def test_what_a_script_expects_and_replies_to_is_left_to_it(fake: Fake) -> None:
    told = [{"expect": "turn/steer"}, {"reply": {"result": {"turnId": "mine"}}}, {"done": "completed"}]
    client = fake([{"start": True}, *told])
    thread = client.open()
    turn = client.turn(thread)
    steer = {"threadId": thread, "expectedTurnId": turn, "input": INPUT}
    assert client.call("turn/steer", steer) == {"turnId": "mine"}
    client.notice("turn/completed")


def test_an_unknown_thread_is_not_resumed(fake: Fake) -> None:
    client = fake({"known_threads": ["01a2"], "replay_usage": [50000, 4000, "OLD"], "thread": {"model": "kept"}})
    client.initialize()
    no = client.call("thread/resume", {"threadId": "01a3"})
    assert no == {"code": -32600, "message": "no rollout found for thread id 01a3"}
    assert client.call("thread/resume", {"threadId": "garbage"})["message"].startswith("invalid session id")
    assert client.call("thread/resume", {"threadId": "01a2", "model": "asked"})["model"] == "kept"
    replayed = client.notice("thread/tokenUsage/updated")
    assert (replayed["turnId"], replayed["tokenUsage"]["total"]["totalTokens"]) == ("OLD", 50000)


def test_a_stored_thread_is_read_resumed_and_locked_across_processes(fake: Fake) -> None:
    scenario = {"store": str(fake.folder / "threads"), "turns": [[{"start": True}, {"msg": ["half", None]}]]}
    first = fake(scenario)
    thread = first.open()
    first.turn(thread)
    first.notice("item/completed")
    second = fake(scenario)
    second.initialize()
    busy = second.call("thread/resume", {"threadId": thread})
    assert busy["message"] == f"thread {thread} already has an active writer"
    first.process.kill()
    first.process.wait(PATIENCE_S)
    read = second.call("thread/read", {"threadId": thread, "includeTurns": True})["thread"]
    assert [(t["status"], t["items"][0]["text"]) for t in read["turns"]] == [("interrupted", "half")]
    assert second.call("thread/resume", {"threadId": thread})["thread"]["turns"] == read["turns"]
