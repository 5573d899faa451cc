"""Installing the plugin in the real Claude Code, its commands, and finding the cc-agents command.

Serves spec:cc-agents.claude-code."""

from __future__ import annotations

import json
import re
import subprocess

import pytest

from adapters.version import VERSION
from tests_live.claude_code import Desk, wait_for
from tests_live.messages_api import ScriptedClaude, Turn, says, tool_result, uses
from tests_live.test_claude_code import SILENCE, answers, asks, jobs


@pytest.mark.rule("rule.agentIsReal")
@pytest.mark.parametrize("name", ["plugin", "market"])
def test_the_manifests_validate_strictly(desk: Desk, name: str) -> None:
    ran = desk.run("plugin", "validate", "--strict", str({"plugin": desk.plugin, "market": desk.market}[name]))
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.rule("rule.agentIsReal")
def test_installed_from_the_marketplace_folder_the_agents_work(desk: Desk) -> None:
    for words in (
        ["marketplace", "add", str(desk.market)],
        ["install", "cc-agents@cc-agents", "--config", "effort=high"],
    ):
        ran = desk.run("plugin", *words)
        assert ran.returncode == 0, ran.stdout + ran.stderr
    desk.plays(answers("ANSWER"))
    with ScriptedClaude(main=asks("go")) as claude:
        said = desk.session(claude, installed=True)
    assert said.reports() == ["ANSWER"]
    assert [asked.actor for asked in claude.asked] == ["main", "main"]


@pytest.mark.rule("rule.agentIsReal")
def test_the_commands_answer_without_a_model(desk: Desk) -> None:
    desk.plays(answers("THE ANSWER"))
    with ScriptedClaude() as claude:
        assert desk.session(claude, "/cc-agents:ask go").result == "THE ANSWER"
        job = jobs(desk)[0]["job"]
        lines = [f"result {job}", f"interrupt {job}", "status", 'status "$(touch x)"']
        result, ended, status, refused = desk.commands(claude, *(f"/cc-agents:{line}" for line in lines))
    assert job in status
    assert "THE ANSWER" in result
    assert "no running turn" in ended
    assert "takes a job" in refused
    assert not (desk.home.work / "x").exists()
    assert claude.asked == []


@pytest.mark.rule("rule.agentIsReal")
def test_the_interrupt_command_ends_a_job_at_work(desk: Desk) -> None:
    desk.plays(SILENCE)
    with ScriptedClaude() as claude:
        begun = [str(desk.cli), "run", "--background", "--", "long"]
        job = subprocess.run(
            begun, cwd=desk.home.work, env=desk.environ(None), capture_output=True, check=True, text=True
        )
        wait_for(lambda: desk.asked("turn/start"))
        said = desk.session(claude, f"/cc-agents:interrupt {job.stdout.strip()}")
    assert "interrupted" in said.result
    assert [job["status"] for job in jobs(desk)] == ["interrupted"]
    assert claude.asked == []


@pytest.mark.rule("rule.cliFound")
@pytest.mark.parametrize("modules", [True, False], ids=["modules", "no modules"])
def test_setup_says_what_doctor_says_and_every_option_has_arrived(desk: Desk, modules: bool) -> None:
    desk.plays(None)
    codex = desk.env.pop("CC_AGENTS_CODEX_BIN")
    options = {
        "model": "gpt-5.5",
        "effort": "high",
        "caps": "codex=3",
        "writable_dirs": str(desk.home.root),
        "timeout": "2h",
        "idle_timeout": "7m",
        "codex_bin": codex,
        "cli": str(desk.cli),
    }
    assert set(options) == set(json.loads((desk.plugin / ".claude-plugin" / "plugin.json").read_text())["userConfig"])
    main: list[Turn] = [[uses("mcp__plugin_cc-agents_gpt__setup")], lambda body: [says(tool_result(body))]]
    with ScriptedClaude(main=[] if modules else main) as claude:
        said = desk.session(claude, "/cc-agents:setup", modules=modules, options=options).result
    assert f"cc-agents {VERSION}: {desk.cli}" in said
    told = set(re.findall(r"option +(\w+) = .* \(CLAUDE_PLUGIN_OPTION_\w+\)", said))
    assert told == set(options) - {"cli"}, said
    assert "idle_timeout = 420 s (CLAUDE_PLUGIN_OPTION_IDLE_TIMEOUT)" in said
    assert "eady" in said.splitlines()[-1]
    assert claude.asked == [] or not modules


@pytest.mark.rule("rule.fallbackTool")
def test_without_modules_a_command_shows_what_its_tool_says(desk: Desk) -> None:
    desk.plays(answers("THE ANSWER"))
    main: list[Turn] = [[uses("mcp__plugin_cc-agents_gpt__status")], lambda body: [says(tool_result(body))]]
    with ScriptedClaude(main=main) as claude:
        said = desk.session(claude, "/cc-agents:status", "--permission-mode", "default", modules=False)
    assert "no jobs" in said.result
    assert said.denied == 0


@pytest.mark.rule("rule.cliFound")
def test_a_missing_command_is_told_with_the_one_command_that_installs_it(desk: Desk) -> None:
    desk.cli.unlink()
    with ScriptedClaude(main=asks("go")) as claude:
        report = desk.session(claude).reports()[0]
        setup = desk.session(claude, "/cc-agents:setup").result
    for text in (report, setup):
        assert "/cc-agents:setup install" in text
    assert claude.of("relay") == []


@pytest.mark.rule("rule.cliFound")
def test_another_version_is_refused_with_both_versions_named(desk: Desk) -> None:
    other = desk.home.root / "other"
    other.write_text("#!/bin/sh\necho cc-agents 9.8.7\n")
    other.chmod(0o755)
    with ScriptedClaude(main=asks("go")) as claude:
        report = desk.session(claude, options={"cli": str(other)}).reports()[0]
    version = json.loads((desk.plugin / ".claude-plugin" / "plugin.json").read_text())["version"]
    assert "9.8.7" in report
    assert version in report
