"""The plugin in the terminal of the real Claude Code, as a person uses it. Serves spec:cc-agents.claude-code."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from typing import Any

import pytest

from adapters.version import VERSION
from tests_live.claude_code import CHECKOUT, Desk, wait_for
from tests_live.messages_api import ScriptedClaude, Turn, asks_agent, needs, says, sends, texts
from tests_live.responses_api import ScriptedModel, say
from tests_live.terminal import DOWN, ENTER, ESC, at_a_terminal
from tests_live.test_claude_code import START, jobs

WORK: list[dict[str, Any]] = [*START, {"msg": ["Looking around.", "commentary"]}, {"command": "rg parse"}]
ANSWER: list[dict[str, Any]] = [{"msg": ["THE ANSWER", "final_answer"]}, {"done": "completed"}]


def said_by_claude(desk: Desk) -> list[str]:
    """The texts of the main conversation, as Claude Code has kept them."""
    transcripts = desk.config.glob("projects/*/*.jsonl")
    rows = [json.loads(line) for path in transcripts for line in path.read_text().split("\n")[:-1]]
    blocks = [b for row in rows if row["type"] == "assistant" for b in row["message"]["content"]]
    return [block["text"] for block in blocks if block["type"] == "text"]


@pytest.mark.rule("rule.agentIsReal")
@pytest.mark.rule("rule.answerNotRelayed")
def test_the_answer_to_the_ask_command_is_shown_as_it_is_and_no_claude_model_is_asked(desk: Desk) -> None:
    go = desk.home.root / "go"
    desk.plays([*WORK, {"wait": {"file": str(go)}}, *ANSWER])
    with ScriptedClaude() as claude, at_a_terminal(desk, claude) as terminal:
        terminal.types("/cc-agents:ask  why  is it so?")
        terminal.shows("Running in the background as @cc-agents-ask")
        terminal.shows("running: rg parse")
        go.touch()
        terminal.shows("cc-agents:gpt says: THE ANSWER")
        wait_for(lambda: said_by_claude(desk) == ["cc-agents:gpt says:\n\nTHE ANSWER"])
    assert desk.prompts() == ["why  is it so?"]
    assert claude.asked == []


@pytest.mark.rule("rule.agentIsReal")
@pytest.mark.rule("rule.identityIsThread")
def test_the_agents_view_tells_what_its_turn_does_and_takes_a_message_word_for_word(desk: Desk) -> None:
    go = desk.home.root / "go"
    desk.plays([*WORK, {"wait": {"file": str(go)}}, *ANSWER])
    main = [[asks_agent("first", background=True)], [says("waiting")]]
    with (
        ScriptedClaude(main=main) as claude,
        at_a_terminal(desk, claude) as terminal,
    ):
        terminal.types("go")
        terminal.shows("running: rg parse")
        terminal.keys(DOWN, DOWN, ENTER)
        terminal.shows("Message @cc-agents:gpt")
        terminal.shows("Looking around.")
        terminal.shows("running: rg parse")
        go.touch()
        terminal.shows("THE ANSWER")
        terminal.types("and  the “second” $(x)?")
        wait_for(lambda: len(desk.prompts()) == 2)
        wait_for(lambda: [job["state"] for job in jobs(desk)] == ["ended", "ended"])
    assert desk.prompts() == ["first", "and  the “second” $(x)?"]
    (resumed,) = desk.asked("thread/resume")
    assert resumed["threadId"] == desk.asked("turn/start")[0]["threadId"]


@pytest.mark.rule("rule.answerNotRelayed")
def test_what_claude_has_asked_an_agent_of_the_ask_command_claude_hears(desk: Desk) -> None:
    desk.plays([*WORK, *ANSWER])
    main: list[Turn] = [
        [says("never: the first word of the conversation is the answer that is shown")],
        [needs("SendMessage")],
        lambda body: [sends(re.findall(r'"agentId":"(\w+)"', "\n".join(texts(body)))[0], "second")],
        [says("SENT")],
        [says("CLAUDE HAS HEARD")],
    ]
    with ScriptedClaude(main=main) as claude, at_a_terminal(desk, claude) as terminal:
        terminal.types("/cc-agents:ask first")
        terminal.shows("cc-agents:gpt says: THE ANSWER")
        terminal.types("ask it more")
        terminal.shows("CLAUDE HAS HEARD")
    assert desk.prompts() == ["first", "second"]
    assert "<result>THE ANSWER</result>" in texts(claude.asked[-1].body)[-1]


@pytest.mark.rule("rule.escStops")
def test_esc_in_the_agents_view_ends_the_turn_and_is_told_as_no_failure(desk: Desk) -> None:
    desk.plays([*WORK, {"stall": True}])
    with ScriptedClaude() as claude, at_a_terminal(desk, claude) as terminal:
        terminal.types("/cc-agents:ask long")
        terminal.shows("running: rg parse")
        terminal.keys(DOWN, DOWN, ENTER)
        terminal.shows("Message @cc-agents-ask")
        terminal.keys(ESC)  # the rows are left; the next one is for the agent
        terminal.shows("esc to stop")
        terminal.keys(ESC)
        wait_for(lambda: jobs(desk)[0]["state"] == "ended")
        terminal.shows("Interrupted")
        assert "the GPT turn" not in terminal.screen
    assert jobs(desk)[0]["outcome"]["status"] == "interrupted"
    assert claude.asked == []


@pytest.mark.rule("rule.agentIsReal")
@pytest.mark.rule("rule.cliFound")
def test_the_three_lines_of_the_readme_and_then_a_task(codex_desk: Desk, model: ScriptedModel) -> None:
    """With an empty home, no cc-agents on PATH, the real codex, and pip as this machine reaches its registry."""
    codex_desk.env |= pip_settings()
    codex_desk.env["PATH"] = f"{codex_desk.environ(None)['PATH']}:{sys.base_prefix}/bin"  # a Python with venv is needed
    codex_desk.cli.unlink()
    model.extend(say("THE ANSWER"))
    source = codex_desk.home.root / "source"
    shutil.copytree(CHECKOUT, source, ignore=shutil.ignore_patterns(".git", ".venv*", "__pycache__", ".*_cache"))
    with ScriptedClaude() as claude, at_a_terminal(codex_desk, claude, plugin=False) as terminal:
        terminal.types(f"/plugin marketplace add {source}")
        terminal.shows("Added marketplace: cc-agents")
        terminal.shows("Reloaded: ")  # keys that are pressed before go nowhere
        terminal.types("/plugin install cc-agents@cc-agents")
        terminal.shows("Install for you (user scope)")
        terminal.keys(ENTER)
        terminal.shows("Plugin options")
        terminal.keys(ESC)
        terminal.shows("Plugin is now active.")
        terminal.types("/cc-agents:setup")
        terminal.shows("the cc-agents command is not installed. Run /cc-agents:setup install, once")
        terminal.types("/cc-agents:setup install")
        terminal.shows("Ready for turns")
        terminal.types("/cc-agents:ask why")
        terminal.shows("cc-agents:gpt says: THE ANSWER")
    (made,) = codex_desk.config.glob("plugins/data/cc-agents-*/cli-*/bin/cc-agents")
    ran = subprocess.run([made, "--version"], env=codex_desk.home.environ(), capture_output=True, text=True, check=True)
    assert ran.stdout == f"cc-agents {VERSION}\n"
    assert [job["status"] for job in jobs(codex_desk)] == ["completed"]
    assert claude.asked == []


def pip_settings() -> dict[str, str]:
    """How pip reaches its registry is the machine's business: as .ci/run passes it on."""
    kept = ("PIP_", "SSL_CERT_")
    return {k: v for k, v in os.environ.items() if k.startswith(kept) or k.lower().endswith("_proxy")}
