"""The agents of the plugin in the real Claude Code, by its module: behind it the fake app-server, before it a scripted
Claude. Serves spec:cc-agents.claude-code."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Mapping
from typing import Any

import pytest

from tests_live.claude_code import Desk, wait_for
from tests_live.homes import still_alive
from tests_live.messages_api import Body, ScriptedClaude, Turn, asks_agent, needs, newest, says, sends, texts

START: list[dict[str, Any]] = [{"start": True}, {"user_message": True}]
USED = {"inputTokens": 5200, "cachedInputTokens": 4096, "outputTokens": 48, "reasoningOutputTokens": 12}
SILENCE = [*START, {"stall": True}]
LONG_TEXT = "".join(f"{n:05} 漢字 line \n" for n in range(20_000))  # 320,000 characters
GONE_S = 30.0  # what an interrupted turn may take: the grace of Codex and of the guard, on a loaded machine


def answers(text: str) -> list[dict[str, Any]]:
    """A turn that says something on the way, and then this."""
    said = [{"msg": ["Looking around.", "commentary"]}, {"command": "ls"}, {"msg": [text, "final_answer"]}]
    return [*START, *said, {"usage": [USED, None]}, {"done": "completed"}]


def asks(prompt: str, agent: str = "gpt", **options: Any) -> list[Turn]:
    return [[asks_agent(prompt, agent, **options)], lambda body: [says(f"FINAL {newest(body)}")]]


def agent_id(body: Body) -> str:
    found = re.search(r"agentId: (\w+)", "\n".join(texts(body)))
    assert found is not None
    return found[1]


def jobs(desk: Desk) -> list[Mapping[str, Any]]:
    folder = desk.home.state / "cc-agents" / "jobs"
    records = (json.loads((job / "record.json").read_text()) for job in sorted(folder.iterdir()) if job.is_dir())
    return list(records)


# --- the answer -----------------------------------------------------------------------------------------------


@pytest.mark.rule("rule.agentIsReal")
@pytest.mark.rule("rule.answerNotRelayed")
def test_the_agents_report_is_codexs_answer_and_no_claude_model_is_asked_for_it(desk: Desk) -> None:
    answer, prompt = "  The answer,\n\twith tabs: 漢字 <b>\n\n", "Say hi\n\n  twice, “exactly” $(touch x) `y`\n"
    desk.plays(answers(answer))
    with ScriptedClaude(main=asks(prompt)) as claude:
        said = desk.session(claude, "go", "--permission-mode", "default")
    assert said.reports() == [answer], said.err
    assert desk.prompts() == [prompt]
    assert [asked.actor for asked in claude.asked] == ["main", "main"]
    assert "mcp__plugin_cc-agents" not in "".join(tool["name"] for tool in claude.asked[0].body["tools"])
    assert said.denied == 0
    tokens = USED["inputTokens"] + USED["outputTokens"]
    assert f"subagent_tokens: {tokens}" in said.result
    assert set(said.results[-1]["modelUsage"]) == {"claude-opus-5-5"}


@pytest.mark.rule("rule.answerNotRelayed")
def test_a_long_answer_comes_whole(desk: Desk) -> None:
    desk.plays(answers(LONG_TEXT))
    with ScriptedClaude(main=asks("go on")) as claude:
        said = desk.session(claude)
    assert said.reports() == [LONG_TEXT]


@pytest.mark.rule("rule.agentIsReal")
def test_three_agents_work_at_once_in_the_background(desk: Desk) -> None:
    together = desk.home.root / "together"
    waits = [{"wait": {"file": str(together)}}, {"msg": ["ANSWER", "final_answer"]}, {"done": "completed"}]
    desk.plays([*START, *waits])
    three = [asks_agent(name, background=True) for name in ("first", "second", "third")]
    with ScriptedClaude(main=[three, [says("waiting")]]) as claude, desk.begun(claude, "go") as session:
        wait_for(lambda: len(desk.prompts()) == 3)
        together.touch()
        said = session.end()
    assert sorted(desk.prompts()) == ["first", "second", "third"]
    assert said.results[-1]["subagent_stats"]["started_in_background"] == 3
    assert sum("<result>ANSWER</result>" in text for text in texts(claude.asked[-1].body)) == 3


@pytest.mark.rule("rule.agentIsReal")
def test_the_ask_command_goes_straight_to_the_agent_with_the_words_as_typed(desk: Desk) -> None:
    desk.plays(answers("ANSWER"))
    with ScriptedClaude() as claude:
        said = desk.session(claude, '/cc-agents:ask why  is\n "this" so?')
    assert said.result == "ANSWER"
    assert desk.prompts() == ['why  is\n "this" so?']
    assert claude.asked == []


@pytest.mark.rule("rule.agentIsReal")
def test_the_mode_is_the_agents_and_yolo_only_what_the_tasks_own_header_says(desk: Desk) -> None:
    desk.plays(answers("ANSWER"))
    tasks = [("read", "gpt"), ("write", "gpt-writer"), ("---\nmode: yolo\n---\nall", "gpt"), ("again", "gpt")]
    calls: list[Turn] = [[asks_agent(prompt, agent)] for prompt, agent in tasks]
    with ScriptedClaude(main=calls) as claude:
        desk.session(claude)
    assert [job["mode"] for job in jobs(desk)] == ["read-only", "write", "yolo", "read-only"]
    assert desk.prompts() == ["read", "write", "all", "again"]


# --- one agent, one thread ------------------------------------------------------------------------------------


@pytest.mark.rule("rule.identityIsThread")
def test_a_message_to_an_agent_that_has_reported_goes_on_with_its_thread(desk: Desk) -> None:
    desk.plays(answers("ANSWER"))
    second = "and now\n  the second"
    main: list[Turn] = [
        [asks_agent("first")],
        [needs("SendMessage")],
        lambda body: [sends(agent_id(body), second)],
        [says("sent")],
    ]
    with ScriptedClaude(main=main) as claude:
        desk.session(claude)
    assert desk.prompts() == ["first", second]
    (resumed,) = desk.asked("thread/resume")
    assert resumed["threadId"] == desk.asked("turn/start")[0]["threadId"]
    assert {asked.actor for asked in claude.asked} == {"main"}


@pytest.mark.rule("rule.identityIsThread")
def test_a_message_to_an_agent_at_work_steers_its_turn(desk: Desk) -> None:
    go = desk.home.root / "go"
    desk.plays([*START, {"wait": {"file": str(go)}}, {"msg": ["ANSWER", "final_answer"]}, {"done": "completed"}])
    text = "rather  the other\n way"

    def when_it_works(body: Body) -> list[Any]:
        wait_for(lambda: desk.asked("turn/start"))
        return [sends(agent_id(body), text)]

    def let_it_end(_: Body) -> list[Any]:
        go.touch()
        return [says("steered")]

    main: list[Turn] = [[asks_agent("first", background=True)], [needs("SendMessage")], when_it_works, let_it_end]
    with ScriptedClaude(main=main) as claude:
        said = desk.session(claude)
    (steered,) = desk.asked("turn/steer")
    assert steered["input"][0]["text"] == text
    assert desk.prompts() == ["first"]
    assert "has taken the message" in "\n".join(texts(claude.asked[-1].body)), said.err


@pytest.mark.rule("rule.identityIsThread")
def test_two_agents_have_two_threads(desk: Desk) -> None:
    desk.plays(answers("ANSWER"))
    with ScriptedClaude(main=[[asks_agent("first"), asks_agent("second")]]) as claude:
        desk.session(claude)
    assert len({params["threadId"] for params in desk.asked("turn/start")}) == 2
    assert desk.asked("thread/resume") == []


# --- it ends ----------------------------------------------------------------------------------------------------


@pytest.mark.rule("rule.escStops")
@pytest.mark.parametrize("background", [False, True], ids=["foreground", "background"])
def test_esc_interrupts_the_turn(desk: Desk, background: bool) -> None:
    desk.plays(SILENCE)
    main: list[Turn] = [[asks_agent("long", background=background)], [says("waiting")]]
    with ScriptedClaude(main=main) as claude, desk.begun(claude, "go") as session:
        wait_for(lambda: desk.asked("turn/start"))
        session.esc()
        wait_for(lambda: jobs(desk)[0]["state"] == "ended", GONE_S)
        session.end()
    assert jobs(desk)[0]["outcome"]["status"] == "interrupted"


@pytest.mark.rule("rule.escStops")
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda s: s.name)
def test_when_claude_code_is_ended_the_turn_ends_too(desk: Desk, signum: signal.Signals) -> None:
    desk.plays(SILENCE)
    with ScriptedClaude(main=asks("long")) as claude, desk.begun(claude, "go") as session:
        wait_for(lambda: desk.asked("turn/start"))
        session.kill(signum)
        session.process.wait(GONE_S)
        assert not still_alive(desk.home, GONE_S)
    assert jobs(desk)[0]["outcome"]["status"] == "interrupted"


@pytest.mark.rule("rule.escStops")
def test_a_silent_turn_is_no_stalled_agent(desk: Desk) -> None:
    """The signs of life come every 20 s; ten minutes are the limit, here 25 s."""
    quiet = {"wait": {"seconds": 35}}
    desk.plays([*START, quiet, {"msg": ["ANSWER", "final_answer"]}, {"done": "completed"}])
    desk.env["CLAUDE_ASYNC_AGENT_STALL_TIMEOUT_MS"] = "25000"
    with ScriptedClaude(main=[[asks_agent("slow", background=True)], [says("waiting")]]) as claude:
        desk.session(claude)
    assert "<result>ANSWER</result>" in "\n".join(texts(claude.asked[-1].body))


# --- a failure is told --------------------------------------------------------------------------------------------

FAILURES = {
    "usageLimitExceeded": ("quota", "used up"),
    "unauthorized": ("auth", "codex login"),
    "serverOverloaded": ("capacity", "overloaded"),
}


@pytest.mark.rule("rule.answerNotRelayed")
def test_a_failed_turn_is_the_agents_report_with_its_kind_and_what_to_do(desk: Desk) -> None:
    def fails(info: str) -> Turn:
        def turn(_: Body) -> list[Any]:
            desk.plays([*START, {"err": [info, False], "message": f"WHY {info}"}, {"done": "failed"}])
            return [asks_agent("go")]

        return turn

    with ScriptedClaude(main=[fails(info) for info in FAILURES]) as claude:
        said = desk.session(claude)
    assert len(said.reports()) == len(FAILURES)
    for report, (info, (kind, advice)) in zip(said.reports(), FAILURES.items(), strict=True):
        assert f"({kind}, " in report
        assert advice in report
        assert f"WHY {info}" in report
    assert {asked.actor for asked in claude.asked} == {"main"}


@pytest.mark.rule("rule.answerNotRelayed")
def test_a_refused_request_is_the_agents_report(desk: Desk) -> None:
    with ScriptedClaude(main=asks("---\nmodle: x\n---\ngo")) as claude:
        said = desk.session(claude)
    assert "unknown key 'modle'" in said.reports()[0]
    assert desk.prompts() == []


@pytest.mark.rule("rule.noRecursion")
def test_a_claude_code_inside_a_turn_of_ours_starts_no_further_turn(desk: Desk) -> None:
    desk.env["CC_AGENTS_TURN"] = "j1"
    with ScriptedClaude(main=asks("go")) as claude:
        said = desk.session(claude)
    assert "(other, recursion)" in said.reports()[0]
    assert desk.prompts() == []


# --- what reaches Codex -------------------------------------------------------------------------------------------


@pytest.mark.rule("rule.nothingLeaks")
@pytest.mark.rule("rule.cliFound")
def test_the_plugins_options_reach_the_turn_and_nothing_of_claude_codes_environment_reaches_codex(desk: Desk) -> None:
    desk.plays(answers("ANSWER"))
    extra = desk.home.root / "extra"
    extra.mkdir()
    with ScriptedClaude(main=asks("go", "gpt-writer")) as claude:
        desk.session(claude, options={"effort": "high", "writable_dirs": str(extra)})
    effective = jobs(desk)[0]["outcome"]["effective"]
    assert effective["effort"] == {"value": "high", "source": "CLAUDE_PLUGIN_OPTION_EFFORT"}
    assert str(extra) in effective["writable_roots"]
    env = next(start["env"] for start in desk.logged("start") if "app-server" in start["argv"])
    ours = ("ANTHROPIC_", "CLAUDE", "CC_AGENTS_")
    assert [name for name in env if name.startswith(ours)] == ["CC_AGENTS_TURN"]
    assert not [name for name, value in env.items() if "sk-ant-not-a-key" in value or claude.base_url in value]
