"""What is switched off, as arguments and as a thread's configuration.

Serves rule.mcpOff, rule.providerToolsOff, rule.hooksOff, rule.goalsOff, rule.secretsKept. On the real Codex, each
opened again when it is taken out: tests_live.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from adapters.codex import home_files, switches
from adapters.contract import MODES, Mode

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

NAMES = [
    "notes", "dot.srv", "a-b_c", "space srv", 'quo"te', "back\\slash", "päth/@x:1", "🎉", "line\nend", "end\n", "tab\t",
    "del\x7f", "nul\x00", "'", "", "=", "{}", "[x]", "#", "\u2028",
]  # fmt: skip


def as_toml(argv: list[str]) -> dict[str, Any]:
    """The flags as Codex reads them: a dotted key and a TOML value each, the tables merged."""
    assert argv[::2] == ["-c"] * (len(argv) // 2)
    whole: dict[str, Any] = {}
    for flag in argv[1::2]:
        merge(whole, tomllib.loads(flag))
    return whole


def merge(into: dict[str, Any], table: dict[str, Any]) -> None:
    for key, value in table.items():
        if isinstance(value, dict):
            merge(into.setdefault(key, {}), value)
        else:
            into[key] = value


@pytest.mark.rule("rule.mcpOff")
def test_each_server_is_off_under_its_exact_name() -> None:
    found = as_toml(switches.flags([], NAMES))
    assert found == {"mcp_servers": {name: {"enabled": False} for name in NAMES}}


@pytest.mark.rule("rule.mcpOff")
def test_no_server_means_no_flag() -> None:
    assert switches.flags([], []) == []
    assert "mcp_servers" not in switches.thread_config([], [])


@pytest.mark.rule("rule.mcpOff")
@pytest.mark.parametrize("network", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_flags_and_thread_configuration_say_the_same(mode: Mode, network: bool) -> None:
    off = switches.switches_for(mode, network=network)
    assert as_toml(switches.flags(off, NAMES)) == switches.thread_config(off, NAMES)


@pytest.mark.rule("rule.goalsOff")
@pytest.mark.parametrize("mode", MODES)
def test_apps_plugins_goals_and_endless_retries_are_off_in_every_mode(mode: Mode) -> None:
    features = switches.thread_config(switches.switches_for(mode, network=True), [])["features"]
    always = ("apps", "plugins", "goals", "unbounded_connection_retries")
    assert {name: features[name] for name in always} == dict.fromkeys(always, False)


@pytest.mark.rule("rule.hooksOff")
def test_hooks_notify_and_snapshot_are_off_in_a_sandbox_and_left_alone_in_yolo() -> None:
    def config(mode: Mode) -> dict[str, Any]:
        return switches.thread_config(switches.switches_for(mode, network=False), [])

    for mode in ("read-only", "write"):
        found = config(mode)
        assert (found["features"]["hooks"], found["features"]["shell_snapshot"], found["notify"]) == (False, False, [])
    yolo = config("yolo")
    assert "notify" not in yolo
    assert not {"hooks", "shell_snapshot"} & set(yolo["features"])


@pytest.mark.rule("rule.providerToolsOff")
@pytest.mark.rule("rule.secretsKept")
def test_tools_of_the_provider_and_secrets_follow_the_network() -> None:
    without = switches.thread_config(switches.switches_for("write", network=False), [])
    assert without["web_search"] == "disabled"
    assert without["features"]["image_generation"] is False
    assert without["shell_environment_policy"] == {"ignore_default_excludes": False}
    with_network = switches.thread_config(switches.switches_for("write", network=True), [])
    assert not {"web_search", "shell_environment_policy"} & set(with_network)
    assert "image_generation" not in with_network["features"]


@pytest.mark.parametrize("config", [{}, {"mcp_servers": None}, {"mcp_servers": []}, {"mcp_servers": "x"}])
def test_a_configuration_without_servers_has_none(config: dict[str, Any]) -> None:
    assert switches.configured_servers(config) == ()


def test_the_users_own_servers_are_read_and_a_broken_file_is_codexs_business(tmp_path: Path) -> None:
    assert home_files.user_servers(str(tmp_path)) == ()
    file = tmp_path / "config.toml"
    file.write_bytes(b'[mcp_servers.b]\n[mcp_servers."a.c"]\n')
    assert home_files.user_servers(str(tmp_path)) == ("a.c", "b")
    file.write_bytes(b'["\\u006dcp_serv\\u0065rs".b]\n')  # the same key, as TOML also lets one write it
    assert home_files.user_servers(str(tmp_path)) == ("b",)
    for broken in (b"[mcp_servers", b"\xff\xfe", b"mcp_servers = 5"):
        file.write_bytes(broken)
        assert home_files.user_servers(str(tmp_path)) == ()


@pytest.mark.rule("rule.secretsKept")
def test_the_environment_loses_claude_codes_variables_and_ours() -> None:
    kept = {"PATH": "p", "EDITOR": "vi", "OPENAI_API_KEY": "k", "MY_CLAUDE": "1", "XCC_AGENTS_X": "1"}
    lost = {"ANTHROPIC_API_KEY": "a", "CLAUDECODE": "1", "CLAUDE_X": "1", "CC_AGENTS_TURN": "t", "CC_AGENTS_MODEL": "m"}
    assert switches.environment({**kept, **lost}) == kept
