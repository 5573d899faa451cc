"""The whole chain: the real Claude Code, the plugin, the real codex, and a scripted model at both ends."""

from __future__ import annotations

import json
import shlex
import subprocess

import pytest

from tests_live.claude_code import Desk
from tests_live.messages_api import ScriptedClaude, Turn, asks_agent
from tests_live.responses_api import ScriptedModel, http_error, run_command, say, tool_outputs, user_texts
from tests_live.test_claude_code import asks, jobs


@pytest.mark.rule("rule.agentIsReal")
@pytest.mark.rule("rule.answerNotRelayed")
@pytest.mark.rule("rule.nothingLeaks")
def test_a_task_goes_through_claude_code_and_codex_and_the_answer_comes_back_exactly(
    codex_desk: Desk, model: ScriptedModel
) -> None:
    answer, prompt = "  Two files:\n\n- a\n- b\t漢字\n", "Which files\n are “here”?"
    model.extend(run_command("env; touch written; ls"), say(answer))
    (codex_desk.home.work / "a").touch()
    with ScriptedClaude(main=asks(prompt)) as claude:
        said = codex_desk.session(claude)
    assert said.reports() == [answer], said.result
    assert user_texts(model.requests[0])[-1] == prompt
    (seen,) = tool_outputs(model.requests[1])
    assert not [line for line in seen.splitlines() if line.startswith(("ANTHROPIC", "CLAUDE"))]
    assert not (codex_desk.home.work / "written").exists()
    assert [asked.actor for asked in claude.asked] == ["main", "main"]
    outcome = jobs(codex_desk)[0]["outcome"]
    assert f"subagent_tokens: {outcome['usage']['total_tokens']}" in said.result


LIMITS = {"error": {"type": "rate_limit_exceeded", "code": "rate_limit_exceeded", "message": "Slow down."}}
OUTCOMES = [
    ("rate-limit", http_error(429, LIMITS), "asked too often"),
    ("quota", http_error(429, {"error": {"type": "usage_limit_reached", "message": "No more."}}), "used up"),
    ("capacity", http_error(503, {"error": {"code": "server_is_overloaded", "message": "Busy."}}), "overloaded"),
    ("auth", http_error(401, {"error": {"message": "Who are you?"}}), "codex login"),
]


@pytest.mark.rule("rule.answerNotRelayed")
def test_each_kind_of_failure_reaches_the_report_with_what_to_do(codex_desk: Desk, model: ScriptedModel) -> None:
    model.extend(*(answer for _, answer, _ in OUTCOMES))
    calls: list[Turn] = [[asks_agent(kind)] for kind, _, _ in OUTCOMES]
    with ScriptedClaude(main=calls) as claude:
        reports = codex_desk.session(claude).reports()
    assert len(reports) == len(OUTCOMES)
    for report, (kind, _, advice) in zip(reports, OUTCOMES, strict=True):
        assert report.startswith(f"cc-agents: the GPT turn failed ({kind}, ")
        assert advice in report
    assert {asked.actor for asked in claude.asked} == {"main"}


@pytest.mark.rule("rule.agentIsReal")
def test_the_reviewer_reviews_what_is_not_committed_and_says_what_codex_found(
    codex_desk: Desk, model: ScriptedModel
) -> None:
    changed = codex_desk.home.work / "stats.py"
    changed.write_text("old\n")
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-C", str(codex_desk.home.work)]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], check=True, env=codex_desk.home.environ())
    changed.write_text("new\n")
    findings = {"findings": [], "overall_correctness": "patch is correct", "overall_confidence_score": 0.9}
    model.extend(run_command("git diff"), say(json.dumps({**findings, "overall_explanation": "Nothing is wrong."})))
    with ScriptedClaude() as claude:
        said = codex_desk.session(claude, "/cc-agents:review")
    assert said.result == "Nothing is wrong."
    assert "staged, unstaged, and untracked" in user_texts(model.requests[0])[-1]
    assert "+new" in tool_outputs(model.requests[1])[0]
    assert claude.asked == []
    assert [job["mode"] for job in jobs(codex_desk)] == ["read-only"]


@pytest.mark.rule("rule.noRecursion")
def test_a_turn_that_starts_claude_code_or_our_command_gets_no_turn_of_its_own(
    codex_desk: Desk, model: ScriptedModel
) -> None:
    """With one slot: a turn inside the turn would wait for it for ever."""
    codex_desk.env["CC_AGENTS_CAPS"] = "codex=1"
    with ScriptedClaude(main=asks("---\nmode: yolo\n---\ngo")) as claude:
        own = codex_desk.environ(claude)
        named = ("PATH", "CLAUDE_CONFIG_DIR", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "DISABLE_AUTOUPDATER")
        words = ["env", *(f"{name}={own[name]}" for name in named)]  # of which Codex has kept nothing
        command = shlex.join([*words, "cc-agents", "run", "go"])
        nested = shlex.join([*words, codex_desk.claude, "-p", "go", "--plugin-dir", str(codex_desk.plugin)])
        for line in (command, nested):
            model.extend(run_command(f"{line} </dev/null", yield_time_ms=60_000))
        model.extend(say("DONE"))
        said = codex_desk.session(claude)
    assert said.reports() == ["DONE"]
    by_command, by_claude = tool_outputs(model.requests[-1])
    assert "Do the work in this turn" in by_claude
    for output in (by_command, by_claude):
        assert "inside a turn" in output
    assert len(model.requests) == 3
    assert len(jobs(codex_desk)) == 1
