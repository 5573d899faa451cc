"""The plugin's files as far as they need no Claude Code: manifests, agents, the two tables that must agree.

Serves spec:cc-agents.claude-code."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from plugin_server import PLUGIN
from turns import ROOT

from adapters.version import VERSION
from sidecar.config import Settings
from sidecar.outcome import EXIT_OF_KIND, EXIT_OF_REASON

SERVER = (PLUGIN / "servers" / "gpt_mcp.py").read_text(encoding="utf-8")
NAMES = (PLUGIN / "hooks" / "names.ts").read_text(encoding="utf-8")
AGENTS = sorted((PLUGIN / "agents").glob("*.md"))
SKILLS = sorted((PLUGIN / "skills").glob("*/SKILL.md"))


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def frontmatter(path: Path) -> dict[str, str]:
    """The keys between the first two fences. A fence inside a value would end them, and drop what follows."""
    empty, head, body = path.read_text(encoding="utf-8").split("---\n", 2)
    assert empty == ""
    assert "---" not in head
    assert body.strip()
    return dict(re.fullmatch(r"([a-z-]+): (.+)", line).groups() for line in head.splitlines())  # type: ignore[union-attr, misc]


manifest = read(PLUGIN / ".claude-plugin" / "plugin.json")
calls = load(PLUGIN / "servers" / "calls.py")
allow = load(PLUGIN / "hooks" / "allow.py")


@pytest.mark.rule("rule.cliFound")
def test_plugin_marketplace_and_command_have_one_version() -> None:
    (listed,) = read(ROOT / ".claude-plugin" / "marketplace.json")["plugins"]
    assert {manifest["version"], listed["version"], VERSION} == {VERSION}
    assert (ROOT / listed["source"]).resolve() == PLUGIN


@pytest.mark.rule("rule.cliFound")
def test_each_option_is_one_that_the_command_reads_and_reaches_the_server_too() -> None:
    options = set(manifest["userConfig"])
    assert options - {name for name, _ in Settings().items()} == {"cli"}
    env = manifest["mcpServers"]["gpt"]["env"]
    assert env == {f"CLAUDE_PLUGIN_OPTION_{name.upper()}": f"${{user_config.{name}}}" for name in options}
    assert all(option["default"] == "" for option in manifest["userConfig"].values())


@pytest.mark.rule("rule.fallbackTool")
@pytest.mark.parametrize("path", AGENTS, ids=lambda p: p.stem)
def test_an_agent_has_the_one_tool_that_carries_its_message(path: Path) -> None:
    found = frontmatter(path)
    assert found["name"] == path.stem
    tool = allow.TOOL_OF[f"cc-agents:{path.stem}"]
    assert found["tools"] == f"mcp__plugin_cc-agents_gpt__{tool}"
    assert tool in calls.VERBS
    assert f"`{tool}`" in path.read_text(encoding="utf-8")


@pytest.mark.rule("rule.agentIsReal")
def test_module_and_server_run_the_same_for_an_agent() -> None:
    found = re.findall(r"\[`\$\{PLUGIN\}:([\w-]+)`\]: (\[.+\]),", NAMES)
    assert {f"cc-agents:{name}": json.loads(words.replace("'", '"')) for name, words in found} == {
        agent: calls.VERBS[tool] for agent, tool in allow.TOOL_OF.items()
    }


@pytest.mark.rule("rule.agentIsReal")
@pytest.mark.parametrize("path", SKILLS, ids=lambda p: p.parent.name)
def test_a_command_is_only_for_people_and_runs_no_shell(path: Path) -> None:
    found = frontmatter(path)
    assert found["name"] == path.parent.name
    assert found["disable-model-invocation"] == "true"
    text = path.read_text(encoding="utf-8")
    assert "!`" not in text
    assert "Bash" not in text
    assert "$ARGUMENTS" in text
    if "allowed-tools" in found:
        tool = found["allowed-tools"].removeprefix("mcp__plugin_cc-agents_gpt__")
        assert f'tool("{tool}", ' in SERVER


@pytest.mark.rule("rule.answerNotRelayed")
def test_there_is_advice_for_every_kind_of_failure_and_for_the_reasons_with_a_code_of_their_own() -> None:
    advice = read(PLUGIN / "advice.json")
    assert set(advice["kind"]) == set(EXIT_OF_KIND)
    assert set(EXIT_OF_REASON) <= set(advice["reason"])


@pytest.mark.rule("rule.answerNotRelayed")
def test_the_report_of_a_failure_says_kind_message_advice_time_and_job() -> None:
    error = {"kind": "rate-limit", "reason": "rate_limit", "message": "too fast", "retry_at": 1_800_000_000}
    lines = calls.report({"status": "failed", "job": "j1", "error": error}).split("\n")
    assert lines[:2] == ["cc-agents: the GPT turn failed (rate-limit, rate_limit).", "too fast"]
    assert lines[2].endswith("Not before 2027-01-15 08:00:00 UTC.")
    assert "/cc-agents:status j1" in lines[3]
    refused = calls.report({"status": "refused", "error": {"message": "Run /cc-agents:setup install"}})
    assert refused == "cc-agents: the GPT turn was refused (other, cli_not_usable).\nRun /cc-agents:setup install"


@pytest.mark.rule("rule.identityIsThread")
def test_only_an_agent_of_ours_with_its_own_tool_is_allowed_and_given_its_id() -> None:
    call = {
        "agent_type": "cc-agents:gpt",
        "agent_id": "a1",
        "tool_name": "mcp__plugin_cc-agents_gpt__run",
        "tool_input": {"task": "t", "agent": "another"},
    }
    decided = allow.decision(call)
    assert (decided["permissionDecision"], decided["updatedInput"]) == ("allow", {"task": "t", "agent": "a1"})
    for other in (
        {"agent_type": None},
        {"agent_type": "general-purpose"},
        {"agent_id": ""},
        {"tool_name": "mcp__plugin_cc-agents_gpt__write"},
        {"tool_name": "Bash"},
    ):
        assert allow.decision({**call, **other}) is None
