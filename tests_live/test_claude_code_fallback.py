"""The agents of the plugin where Claude Code loads no modules: a relay and the plugin's MCP server.

Serves spec:cc-agents.claude-code, rule.fallbackTool."""

from __future__ import annotations

import signal
from collections.abc import Sequence

import pytest

from tests_live.claude_code import Desk, wait_for
from tests_live.homes import still_alive
from tests_live.messages_api import ScriptedClaude, Turn, asks_agent, needs, says, sends, task, tool_result, uses
from tests_live.test_claude_code import FAILURES, GONE_S, SILENCE, START, agent_id, answers, asks, jobs

TOOLS = "mcp__plugin_cc-agents_gpt__"
RELAY_TOKENS = 1300  # of one request of the relay: its prompt, one tool, the task
pytestmark = pytest.mark.rule("rule.fallbackTool")


def relays(tool: str = "run", turns: int = 1) -> Sequence[Turn]:
    """A relay that does as its agent file says."""
    one: list[Turn] = [lambda body: [uses(TOOLS + tool, task=task(body))], lambda body: [says(tool_result(body))]]
    return one * turns


def test_without_modules_the_relay_carries_task_and_answer_and_can_do_nothing_else(desk: Desk) -> None:
    desk.plays(answers("THE ANSWER\n"))
    prompt = "Say  hi\n twice"
    with ScriptedClaude(main=asks(prompt), relay=relays()) as claude:
        said = desk.session(claude, "go", "--permission-mode", "default", modules=False)
    assert desk.prompts() == [prompt]
    assert said.reports()[0].endswith("THE ANSWER\n")
    assert said.denied == 0
    asked = claude.of("relay")
    assert len(asked) == 2
    offered = {tool["name"] for request in asked for tool in request.body["tools"]}
    assert offered - {"DeferredToolPlaceholder"} == {TOOLS + "run"}
    assert all(request.tokens < RELAY_TOKENS for request in asked)


def test_a_long_answer_reaches_the_relay_whole(desk: Desk) -> None:
    text = "".join(f"{n:05} line\n" for n in range(10_000))  # 110,000 characters
    desk.plays(answers(text))
    heard: list[str] = []

    def hears(body: dict[str, object]) -> list[object]:
        heard.append(tool_result(body))
        return [says("heard")]

    relay: list[Turn] = [relays()[0], hears]  # type: ignore[list-item]  # a list of blocks, as a Turn answers it
    with ScriptedClaude(main=asks("go"), relay=relay) as claude:
        desk.session(claude, modules=False)
    assert heard == [text]


def test_a_follow_up_goes_on_with_the_agents_thread(desk: Desk) -> None:
    desk.plays(answers("ANSWER"))
    main: list[Turn] = [
        [asks_agent("first")],
        [needs("SendMessage")],
        lambda body: [sends(agent_id(body), "second")],
        [says("sent")],
    ]
    with ScriptedClaude(main=main, relay=relays(turns=2)) as claude:
        desk.session(claude, modules=False)
    first, second = desk.prompts()
    assert first == "first"
    assert "second" in second  # what Claude Code writes around a message only the module can take off
    assert desk.asked("thread/resume")[0]["threadId"] == desk.asked("turn/start")[0]["threadId"]


def test_the_writers_tool_is_in_write_mode_whatever_the_relay_says(desk: Desk) -> None:
    desk.plays(answers("ANSWER"))
    with ScriptedClaude(main=asks("go", "gpt-writer"), relay=relays("write")) as claude:
        desk.session(claude, modules=False)
    assert [job["mode"] for job in jobs(desk)] == ["write"]


def test_a_failure_reaches_the_relay_as_an_error_with_its_kind_and_what_to_do(desk: Desk) -> None:
    kind, advice = FAILURES["usageLimitExceeded"]
    desk.plays([*START, {"err": ["usageLimitExceeded", False], "message": "THE REASON"}, {"done": "failed"}])
    with ScriptedClaude(main=asks("go"), relay=relays()) as claude:
        said = desk.session(claude, modules=False)
    assert all(words in said.reports()[0] for words in (f"({kind}, ", advice, "THE REASON"))


def test_esc_interrupts_the_turn_of_the_tool(desk: Desk) -> None:
    desk.plays(SILENCE)
    with ScriptedClaude(main=asks("long"), relay=relays()) as claude:
        with desk.begun(claude, "go", modules=False) as session:
            wait_for(lambda: desk.asked("turn/start"))
            session.esc()
            wait_for(lambda: jobs(desk)[0]["state"] == "ended", GONE_S)
            session.end()
    assert jobs(desk)[0]["outcome"]["status"] == "interrupted"


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGKILL], ids=lambda s: s.name)
def test_when_claude_code_is_ended_the_turn_of_the_tool_ends_too(desk: Desk, signum: signal.Signals) -> None:
    desk.plays(SILENCE)
    with ScriptedClaude(main=asks("long"), relay=relays()) as claude:
        with desk.begun(claude, "go", modules=False) as session:
            wait_for(lambda: desk.asked("turn/start"))
            session.kill(signum)
            session.process.wait(GONE_S)
            assert not still_alive(desk.home, GONE_S)


def test_nothing_of_claude_codes_environment_reaches_codex(desk: Desk) -> None:
    desk.plays(answers("ANSWER"))
    with ScriptedClaude(main=asks("go"), relay=relays()) as claude:
        desk.session(claude, modules=False, options={"effort": "high"})
    env = next(start["env"] for start in desk.logged("start") if "app-server" in start["argv"])
    assert [n for n in env if n.startswith(("ANTHROPIC_", "CLAUDE", "CC_AGENTS_"))] == ["CC_AGENTS_TURN"]
    assert jobs(desk)[0]["outcome"]["effective"]["effort"]["source"] == "CLAUDE_PLUGIN_OPTION_EFFORT"
