"""One whole chain: the real Claude Code, the plugin, the real codex, and a scripted model at both ends."""

from __future__ import annotations

import pytest

from tests_live.claude_code import Desk
from tests_live.conftest import WriteConfig
from tests_live.messages_api import ScriptedClaude
from tests_live.responses_api import ScriptedModel, run_command, say, tool_outputs, user_texts
from tests_live.test_claude_code import asks, jobs


@pytest.mark.rule("rule.agentIsReal")
@pytest.mark.rule("rule.answerNotRelayed")
@pytest.mark.rule("rule.nothingLeaks")
def test_a_task_goes_through_claude_code_and_codex_and_the_answer_comes_back_exactly(
    desk: Desk, codex: str, model: ScriptedModel, write_config: WriteConfig
) -> None:
    write_config(desk.home, model)
    desk.env["CC_AGENTS_CODEX_BIN"] = codex
    answer, prompt = "  Two files:\n\n- a\n- b\t漢字\n", "Which files\n are “here”?"
    model.extend(run_command("env; touch written; ls"), say(answer))
    (desk.home.work / "a").touch()
    with ScriptedClaude(main=asks(prompt)) as claude:
        said = desk.session(claude)
    assert said.reports() == [answer], said.result
    assert user_texts(model.requests[0])[-1] == prompt
    (seen,) = tool_outputs(model.requests[1])
    assert not [line for line in seen.splitlines() if line.startswith(("ANTHROPIC", "CLAUDE"))]
    assert not (desk.home.work / "written").exists()
    assert [asked.actor for asked in claude.asked] == ["main", "main"]
    outcome = jobs(desk)[0]["outcome"]
    assert f"subagent_tokens: {outcome['usage']['total_tokens']}" in said.result
