"""Where commands run and who else runs them: executors, sub-agents and their roles, memories, the old sandbox."""

from __future__ import annotations

import pytest

from tests_live import hostile
from tests_live.conftest import version
from tests_live.homes import Home, write_config
from tests_live.hostile import outcome_of
from tests_live.responses_api import ScriptedModel, offered_tools, run_command, say


@pytest.mark.rule("rule.profileTellsAll")
@pytest.mark.parametrize("without", [None, "executors"], ids=["refused", "taken out"])
def test_a_file_that_sends_commands_to_another_executor_is_refused(
    codex: str, home: Home, model: ScriptedModel, without: str | None
) -> None:
    program = home.root / "executor"
    program.write_text(f"#!/bin/sh\ntouch {home.root}/executed\nexec {codex} exec-server --listen stdio\n")
    program.chmod(0o700)
    write_config(home, model.base_url)
    (home.codex_home / "environments.toml").write_text(f'[[environments]]\nid = "x"\nprogram = "{program}"\n')
    model.extend(run_command("true"), say("done"))
    ran = hostile.cc_agents(home, codex, "run", "--json", "go", without=without)
    assert (home.root / "executed").exists() is (without is not None)
    if without is None:
        assert (ran.returncode, outcome_of(ran)["error"]["reason"]) == (7, "mode_not_enforced")
    model.drop_rest()


@pytest.mark.rule("rule.secretsKept")
@pytest.mark.parametrize("without", [None, "environment"], ids=["dropped", "taken out"])
def test_a_variable_that_sends_commands_to_another_executor_does_not_reach_codex(
    codex: str, home: Home, model: ScriptedModel, without: str | None
) -> None:
    write_config(home, model.base_url)
    model.extend(run_command("echo here > made"), say("done"))
    env = {"CODEX_EXEC_SERVER_URL": "ws://127.0.0.1:1", "CC_AGENTS_TURN": ""}
    hostile.cc_agents(home, codex, "run", "--json", "--mode", "write", "go", without=without, env=env, cwd=home.work)
    assert (home.work / "made").exists() is (without is None)
    model.drop_rest()


ROLE = """\
developer_instructions = "x"
notify = ["touch", "{marks}/notify"]
[shell_environment_policy]
ignore_default_excludes = true
"""


@pytest.mark.rule("rule.mcpOff")
@pytest.mark.parametrize("place", ["table", "folder"])
@pytest.mark.parametrize("without", [None, "roles+server_watch"], ids=["off", "taken out"])
def test_a_role_of_the_users_own_can_not_undo_what_is_off(
    codex: str, home: Home, model: ScriptedModel, without: str | None, place: str
) -> None:
    world = hostile.bare(home, model)
    role = ROLE.format(marks=world.marks) + hostile.server(world, "role")
    if place == "folder":
        (home.codex_home / "agents").mkdir()
        (home.codex_home / "agents" / "evil.toml").write_text(f'name = "evil"\ndescription = "e"\n{role}')
        write_config(home, model.base_url)
    else:
        (home.root / "evil.toml").write_text(role)
        write_config(home, model.base_url, f'[agents.evil]\ndescription = "e"\nconfig_file = "{home.root}/evil.toml"\n')
    model.extend(*[hostile.parent_or_child] * 12)
    ran = hostile.cc_agents(world, codex, "run", "--json", "go", without=without)
    assert outcome_of(ran)["status"] == "completed", outcome_of(ran)
    if without is None:
        assert "agents.enabled" in outcome_of(ran)["effective"]["switched_off"]
        assert any("evil" in w for w in outcome_of(ran)["warnings"])
        assert not [t for t in offered_tools(model.requests[0]) if "spawn_agent" in t]
        assert world.marked() == set()
    elif version(codex) < "0.150":  # a newer one takes only what it must from a role
        assert world.marked() == {"notify", "mcp-role"}
    model.drop_rest()


@pytest.mark.rule("rule.modes")
def test_a_sub_agent_has_the_sandbox_of_its_turn(codex: str, home: Home, model: ScriptedModel) -> None:
    world = hostile.bare(home, model)
    (home.codex_home / "rules").mkdir()
    (home.codex_home / "rules" / "default.rules").write_text(hostile.RULES)
    write_config(home, model.base_url, 'sandbox_mode = "danger-full-access"\n')
    tries = f"echo x > {world.marks}/child; touch {home.work}/child; true"
    model.extend(
        *[lambda body: hostile.parent_or_child(body, role=None, tries=(tries, f"touch {world.marks}/rule"))] * 14
    )
    ran = hostile.cc_agents(world, codex, "run", "--json", "--mode", "write", "go")
    assert outcome_of(ran)["status"] == "completed", outcome_of(ran)
    assert (home.work / "child").exists(), "the sub-agent did not run"
    assert world.marked() == set()
    model.drop_rest()


@pytest.mark.rule("rule.goalsOff")
@pytest.mark.parametrize("without", [None, "features.memories"], ids=["off", "taken out"])
def test_memories_do_no_work_of_their_own(codex: str, home: Home, model: ScriptedModel, without: str | None) -> None:
    write_config(home, model.base_url, "[features]\nmemories = true\n[memories]\ngenerate_memories = true\n")
    model.extend(*[say("done")] * 3)
    for _ in range(2):
        hostile.cc_agents(home, codex, "run", "--json", "--mode", "yolo", "go", without=without)
    made = [p for p in home.codex_home.iterdir() if p.is_dir() and p.name.startswith("memories")]
    assert bool(made) is (without is not None)
    model.drop_rest()


@pytest.mark.rule("rule.modes")
@pytest.mark.parametrize("without", [None, "features.use_legacy_landlock"], ids=["off", "taken out"])
def test_the_old_sandbox_that_can_not_deny_is_not_used(
    codex: str, home: Home, model: ScriptedModel, without: str | None
) -> None:
    write_config(home, model.base_url, "[features]\nuse_legacy_landlock = true\n")
    model.extend(run_command("echo x > made"), say("done"))
    hostile.cc_agents(home, codex, "run", "--json", "--mode", "write", "go", without=without, cwd=home.work)
    assert (home.work / "made").exists() is (without is None)
    model.drop_rest()
