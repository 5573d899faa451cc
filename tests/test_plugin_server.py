"""The plugin's MCP server against the fake app-server. Serves spec:cc-agents.claude-code, rule.fallbackTool."""

from __future__ import annotations

import json
import signal
import time
from typing import Any

import pytest
from plugin_server import DATA, install_command, serving
from turns import ANSWER, SILENCE, START, User, living, wait_for

READY_S = 1.0  # what Claude Code waits for a server before it starts an agent is two seconds
pytestmark = pytest.mark.rule("rule.fallbackTool")

USED: list[dict[str, Any]] = [{"msg": ["Looking.", "commentary"]}, {"command": "ls"}]


@pytest.fixture
def agent_user(user: User) -> User:
    install_command(user)
    return user


def test_it_is_ready_within_a_second_and_has_started_nothing(agent_user: User) -> None:
    began = time.monotonic()
    with serving(agent_user) as client:
        client.says("initialize", 1, protocolVersion="2025-06-18", capabilities={}, clientInfo={})
        answer = client.answer()["result"]
        client.says("tools/list", 2)
        tools = client.answer(2)["result"]["tools"]
        took_s = time.monotonic() - began
        assert client.end() == 0
    assert answer["serverInfo"]["name"] == "gpt"
    assert {tool["_meta"]["anthropic/maxResultSizeChars"] for tool in tools} == {500000}
    assert took_s < READY_S
    assert agent_user.nothing_was_made()


def test_the_answer_is_exact_and_what_happens_is_told_as_progress(agent_user: User) -> None:
    answer = "  漢字\n\n\tend\n"
    agent_user.plays([*START, *USED, {"msg": [answer, "final_answer"]}, {"done": "completed"}])
    with serving(agent_user) as client:
        client.calls("run", task="do  it\n", token=7)
        result = client.answer()["result"]
        client.end()
    assert result == {"content": [{"type": "text", "text": answer}], "isError": False}
    told = [m["params"] for m in client.heard]
    assert {p["progressToken"] for p in told} == {7}
    assert [p["progress"] for p in told] == list(range(1, len(told) + 1))
    assert [p["message"] for p in told][-2:] == ["Looking.", "running: ls"]
    assert agent_user.asked("turn/start")[0]["input"][0]["text"] == "do  it\n"


def test_one_agent_has_one_thread_and_another_has_its_own(agent_user: User) -> None:
    agent_user.plays(ANSWER)
    with serving(agent_user) as client:
        for rid, (agent, task) in enumerate([("a1", "first"), ("b2", "other"), ("a1", "second")], start=1):
            assert client.told("run", rid, task=task, agent=agent) == ("ANSWER", False)
        client.end()
    first, other, second = [params["threadId"] for params in agent_user.asked("turn/start")]
    assert first == second != other
    assert [params["threadId"] for params in agent_user.asked("thread/resume")] == [first]
    assert json.loads((agent_user.root / DATA / "agents" / "a1.json").read_text()) == {"thread": first}


def test_an_agents_id_is_never_a_path(agent_user: User) -> None:
    agent_user.plays(ANSWER)
    with serving(agent_user) as client:
        assert client.told("run", task="x", agent="../../a1") == ("ANSWER", False)
        client.end()
    assert not list(agent_user.root.rglob("a1.json"))


def test_a_cancelled_call_interrupts_its_turn_and_no_other(agent_user: User) -> None:
    go = agent_user.root / "go"
    agent_user.plays({"turns": [[*START, {"wait": {"file": str(go)}}, *ANSWER[1:]]]})
    with serving(agent_user) as client:
        client.calls("run", 1, task="stays", agent="a1")
        client.calls("run", 2, task="goes", agent="b2")
        wait_for(lambda: len(agent_user.asked("turn/start")) == 2)
        client.says("notifications/cancelled", requestId=2, reason="user")
        wait_for(lambda: [s["outcome"]["status"] for s in ended_jobs(agent_user)] == ["interrupted"])
        go.touch()
        assert client.answer(1)["result"]["content"][0]["text"] == "ANSWER"
        client.end()


def ended_jobs(user: User) -> list[dict[str, Any]]:
    records = [json.loads((job / "record.json").read_text()) for job in user.jobs()]
    return [record for record in records if record["state"] == "ended"]


@pytest.mark.parametrize("how", ["end of input", "SIGTERM", "SIGKILL"])
def test_when_the_server_is_ended_its_turns_end_too(agent_user: User, how: str) -> None:
    agent_user.plays(SILENCE)
    with serving(agent_user) as client:
        client.calls("run", task="long")
        wait_for(lambda: agent_user.asked("turn/start"))
        if how == "end of input":
            client.end()
        else:
            client.process.send_signal(signal.Signals[how])
            client.process.wait()
        wait_for(lambda: not living(f"{agent_user.root}/"))
    assert [record["outcome"]["status"] for record in ended_jobs(agent_user)] == ["interrupted"]


@pytest.mark.rule("rule.answerNotRelayed")
def test_a_failure_is_an_error_with_its_kind_and_what_to_do(agent_user: User) -> None:
    agent_user.plays([*START, {"err": ["usageLimitExceeded", False], "message": "NO MORE"}, {"done": "failed"}])
    with serving(agent_user) as client:
        text, failed = client.told("run", task="x")
        client.end()
    assert failed
    assert all(words in text for words in ("(quota, ", "NO MORE", "used up"))


@pytest.mark.rule("rule.noRecursion")
def test_inside_a_turn_of_ours_it_starts_no_further_one(agent_user: User) -> None:
    agent_user.env["CC_AGENTS_TURN"] = "j1"
    with serving(agent_user) as client:
        text, failed = client.told("run", task="x")
        client.end()
    assert failed
    assert "(other, recursion)" in text
    assert agent_user.nothing_was_made()


def test_commands_take_a_job_and_nothing_that_could_be_an_option(agent_user: User) -> None:
    agent_user.plays(ANSWER)
    with serving(agent_user) as client:
        client.told("run", 1, task="x")
        table, _ = client.told("status", 2)
        job = agent_user.jobs()[0].name
        assert job in table
        assert client.told("result", 3, job=job) == ("ANSWER", False)
        assert client.told("interrupt", 4, job=job)[1]
        for rid, words in enumerate(["--help", "$(id)", "a;b", "`id`"], start=5):
            assert client.told("result", rid, job=words) == (f"cc-agents: result takes a job, not: {words}", True)
        client.end()


def test_a_line_that_is_no_json_and_unknown_words_are_answered_and_it_goes_on(agent_user: User) -> None:
    with serving(agent_user) as client:
        client.line(b"{nonsense")
        assert client.answer(None)["error"]["code"] == -32700
        client.says("no/such", 2)
        assert client.answer(2)["error"]["code"] == -32601
        client.says("tools/call", 3, name="bash", arguments={})
        assert client.answer(3)["error"]["code"] == -32602
        client.says("ping", 4)
        assert client.answer(4)["result"] == {}
        assert client.end() == 0
