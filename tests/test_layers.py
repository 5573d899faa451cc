"""What layers and requirements say of our switches. Serves rule.readBack, rule.mcpOff, rule.hooksOff."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from adapters.codex import home_files, switches
from adapters.codex.layers import folders_of, layers_that_say, outranking

MANAGED = {"type": "legacyManagedConfigTomlFromFile", "file": "/etc/codex/managed_config.toml"}
OURS: dict[str, Any] = {"name": {"type": "sessionFlags"}, "config": {"features": {"hooks": False}}}
OFF = switches.switches_for("write", network=False)


def said(config: dict[str, Any], requirements: dict[str, Any] | None = None, secrets: bool = True) -> list[str]:
    above = [{"name": MANAGED, "config": config}, OURS, {"name": {"type": "user"}, "config": {"notify": ["x"]}}]
    return outranking(above, requirements or {}, OFF, ["notes", "dot.srv"], secrets=secrets)


@pytest.mark.rule("rule.readBack")
def test_layers_are_named_by_kind_and_file_and_ours_is_left_out() -> None:
    layers: list[dict[str, Any]] = [
        {"name": {"type": "sessionFlags"}, "config": {"sandbox_mode": "x"}},
        {"name": {"type": "user", "file": "/c.toml"}, "config": {"sandbox_mode": "x", "model": "m", "tui": {}}},
        {"name": {"type": "project", "dotCodexFolder": "/p/.codex"}, "config": {"approval_policy": None}},
        {"name": "odd", "config": {"permissions": {}}},
        {"name": None, "config": 5},
        {},
    ]
    assert layers_that_say(layers) == ["user /c.toml: sandbox_mode, model", "odd: permissions"]


@pytest.mark.rule("rule.mcpOff")
@pytest.mark.parametrize("name", ["notes", "dot.srv"])
def test_a_managed_server_that_says_it_is_on_can_not_be_switched_off(name: str) -> None:
    (found,) = said({"mcp_servers": {name: {"command": "x", "enabled": True}}})
    assert found.startswith(f"mcp_servers.{name} stays on: ")
    assert "managed_config.toml" in found
    assert said({"mcp_servers": {name: {"command": "x"}}}) == []
    assert said({"mcp_servers": {name: {"command": "x", "enabled": False}}}) == []


@pytest.mark.rule("rule.hooksOff")
@pytest.mark.parametrize("switch", OFF, ids=lambda s: s.key)
def test_a_managed_layer_that_says_otherwise_outranks_each_switch(switch: switches.Switch) -> None:
    def layer(value: Any) -> dict[str, Any]:
        for part in reversed(switch.key.split(".")):
            value = {part: value}
        return dict(value)

    assert [f for f in said(layer("other")) if f.startswith(f"{switch.key} stays on")]
    assert said(layer(switch.value)) == []


@pytest.mark.rule("rule.secretsKept")
def test_a_managed_layer_that_gives_a_secret_to_every_command_is_told() -> None:
    config = {"shell_environment_policy": {"set": {"COMPANY_TOKEN": "t", "EDITOR": "vi"}}}
    (found,) = said(config)
    assert "COMPANY_TOKEN" in found
    assert said(config, secrets=False) == []


@pytest.mark.rule("rule.hooksOff")
def test_requirements_that_run_hooks_or_keep_a_feature_on_are_told() -> None:
    hooks = {"SessionStart": [{"hooks": []}], "Stop": [], "managedDir": "/x"}
    requirements = {"hooks": hooks, "featureRequirements": {"goals": True, "apps": False, "elsewhere": True}}
    found = said({}, requirements)
    assert found[0].startswith("features.goals stays on: ")
    assert len(found) == 2
    assert "SessionStart" in found[1]
    yolo = switches.switches_for("yolo", network=True)
    assert outranking([], {"hooks": hooks}, yolo, [], secrets=False) == []


@pytest.mark.rule("rule.readBack")
def test_layers_below_ours_do_not_outrank_and_odd_ones_do_no_harm() -> None:
    below = [OURS, {"name": {"type": "user"}, "config": {"features": {"hooks": True}}}]
    assert outranking(below, {}, OFF, [], secrets=True) == []
    off = {"name": MANAGED, "config": {"features": {"hooks": True}}, "disabledReason": "x"}
    assert outranking([off, OURS], {}, OFF, [], secrets=True) == []
    odd: list[dict[str, Any]] = [
        {},
        {"name": 5, "config": 5},
        {"config": {"features": 5, "mcp_servers": {"n": 1}}},
        OURS,
    ]
    assert (
        outranking(odd, {"hooks": 5, "featureRequirements": 5}, [s for s in OFF if "." in s.key], ["n"], secrets=True)
        == []
    )


@pytest.mark.rule("rule.mcpOff")
def test_the_users_own_roles_are_found_in_tables_and_in_the_folder_of_each_layer(tmp_path: Path) -> None:
    project = tmp_path / "p" / ".codex"
    (tmp_path / "home" / "agents" / "deep").mkdir(parents=True)
    (project / "agents").mkdir(parents=True)
    (tmp_path / "home" / "agents" / "deep" / "found.toml").touch()
    (tmp_path / "home" / "agents" / "notes.md").touch()
    (project / "agents" / "linked").symlink_to(tmp_path)
    layers: list[dict[str, Any]] = [
        {"name": {"type": "project", "dotCodexFolder": str(project)}},
        {"name": {"type": "user", "file": str(tmp_path / "home" / "config.toml")}},
        {"name": {"type": "sessionFlags"}},
        {"name": 5},
    ]
    where = folders_of(layers, str(tmp_path / "home"))
    assert where == [str(tmp_path / "home"), str(project)]
    config = {"agents": {"evil": {"config_file": "x"}, "max_threads": 3, "enabled": True}}
    assert switches.roles(config, where) == ("evil", "found", "linked")
    for none in ({}, {"agents": None}, {"agents": 5}):
        assert switches.roles(none, []) == ()


@pytest.mark.rule("rule.secretsKept")
def test_a_secret_that_the_configuration_sets_is_sent_empty(tmp_path: Path) -> None:
    config = {"shell_environment_policy": {"set": {"A_TOKEN": "t", "my.secret": "s", "apiKey": "k", "EDITOR": "vi"}}}
    names = switches.secret_settings(config)
    assert names == ("A_TOKEN", "apiKey", "my.secret")
    sent = switches.without(switches.thread_config(OFF, []), names)["shell_environment_policy"]
    assert sent == {"ignore_default_excludes": False, "set": dict.fromkeys(names, "")}
    for none in ({}, {"shell_environment_policy": 5}, {"shell_environment_policy": {"set": 5}}):
        assert switches.secret_settings(none) == ()


@pytest.mark.rule("rule.profileTellsAll")
def test_a_file_of_other_executors_is_found(tmp_path: Path) -> None:
    file = tmp_path / "environments.toml"
    assert home_files.other_executors(str(tmp_path)) is None
    file.write_text('default = "local"\n')
    assert home_files.other_executors(str(tmp_path)) is None
    for text in ('[[environments]]\nid = "dev"\nurl = "ws://dev"\n', "broken [", "environments = 5"):
        file.write_text(text)
        assert home_files.other_executors(str(tmp_path)) == str(file)
