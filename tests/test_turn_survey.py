"""What only the configuration itself tells, as a whole turn against the fake: refused, switched off, or told.

Serves rule.readBack, rule.hooksOff, rule.goalsOff, rule.secretsKept, rule.mcpOff, rule.saysWhatWasDone.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from turns import ANSWER, User

MANAGED = {"type": "legacyManagedConfigTomlFromFile", "file": "/etc/codex/managed_config.toml"}
WRITE, YOLO = ("--mode", "write"), ("--mode", "yolo")


def config_of(user: User) -> dict[str, Any]:
    found: dict[str, Any] = user.asked("thread/start")[-1]["config"]
    return found


@pytest.mark.rule("rule.readBack")
@pytest.mark.rule("rule.mcpOff")
@pytest.mark.parametrize("mode", [(), WRITE, YOLO])
def test_a_managed_server_that_is_on_is_refused_before_a_thread_is_opened(user: User, mode: tuple[str, ...]) -> None:
    servers = {"company": {"command": "x", "enabled": True}}
    scenario = {"layers": [{"name": MANAGED, "config": {"mcp_servers": servers}}], "turn": ANSWER}
    ran = user.turn(scenario, *mode).ended_as("refused", "mode_not_enforced", 7)
    assert "mcp_servers.company stays on" in ran.error["message"]
    assert "managed_config.toml" in ran.error["message"]
    assert not {"thread/start", "turn/start"} & set(user.methods())


@pytest.mark.rule("rule.hooksOff")
def test_hooks_that_requirements_run_are_refused_in_a_sandbox_and_left_alone_in_yolo(user: User) -> None:
    answer = {"requirements": {"hooks": {"SessionStart": [{"hooks": []}]}}}
    scenario = {"on": {"configRequirements/read": [{"reply": {"result": answer}}]}, "turn": ANSWER}
    ran = user.turn(scenario).ended_as("refused", "mode_not_enforced", 7)
    assert "SessionStart" in ran.error["message"]
    user.turn(scenario, *YOLO).completed()


@pytest.mark.rule("rule.hooksOff")
def test_a_hook_that_runs_all_the_same_ends_the_turn_but_not_in_yolo(user: User) -> None:
    run = {"method": "hook/started", "params": {"threadId": "x", "run": {"id": "h", "eventName": "preToolUse"}}}
    scenario = [{"start": True}, {"notify": run}, *ANSWER[1:]]
    ran = user.turn(scenario).ended_as("failed", "mode_not_enforced", 7)
    assert "a hook (preToolUse) started" in ran.error["message"]
    user.turn(scenario, *YOLO).completed()


@pytest.mark.rule("rule.goalsOff")
def test_a_thread_with_queued_messages_is_refused_as_busy(user: User) -> None:
    queued = [{"reply": {"result": {"data": [{"id": "q"}], "nextCursor": None}}}]
    scenario = {"known_threads": ["0a"], "on": {"thread/queue/list": queued}, "turn": ANSWER}
    user.turn(scenario, "--resume", "0a").ended_as("refused", "thread_busy", 2)
    assert "thread/resume" not in user.methods()
    assert user.asked("thread/queue/list") == [{"threadId": "0a"}]


@pytest.mark.rule("rule.goalsOff")
def test_a_codex_without_queues_can_be_resumed(user: User) -> None:
    unknown = [
        {"reply": {"error": {"code": -32600, "message": "Invalid request: unknown variant `thread/queue/list`"}}}
    ]
    scenario = {"known_threads": ["0a"], "on": {"thread/queue/list": unknown}, "turn": ANSWER}
    user.turn(scenario, "--resume", "0a").completed()


@pytest.mark.rule("rule.secretsKept")
@pytest.mark.rule("rule.saysWhatWasDone")
def test_secrets_that_the_configuration_sets_are_sent_empty_without_network(user: User) -> None:
    config = {"shell_environment_policy": {"set": {"X_TOKEN": "t", "EDITOR": "vi"}}}
    ran = user.turn({"config": config, "turn": ANSWER}).completed()
    assert config_of(user)["shell_environment_policy"]["set"] == {"X_TOKEN": ""}
    assert "shell_environment_policy.set.X_TOKEN" in ran.outcome["effective"]["switched_off"]
    user.turn({"config": config, "turn": ANSWER}, "--network").completed()
    assert "shell_environment_policy" not in config_of(user)


@pytest.mark.rule("rule.mcpOff")
def test_with_a_role_of_the_users_own_sub_agents_are_off_and_that_is_told(user: User) -> None:
    scenario = {"config": {"agents": {"evil": {"config_file": "x"}}}, "turn": ANSWER}
    ran = user.turn(scenario).completed()
    assert config_of(user)["agents"] == {"enabled": False}
    assert "agents.enabled" in ran.outcome["effective"]["switched_off"]
    assert ["evil" in w for w in ran.outcome["warnings"]] == [True]
    user.turn(scenario, *YOLO).completed()
    assert "agents" not in config_of(user)
    user.turn(ANSWER).completed()
    assert "agents" not in config_of(user)


@pytest.mark.rule("rule.profileTellsAll")
def test_a_file_that_names_another_executor_is_refused_and_nothing_is_started(user: User) -> None:
    (user.codex_home / "environments.toml").write_text('[[environments]]\nid = "dev"\nurl = "ws://dev"\n')
    ran = user.turn(ANSWER).ended_as("refused", "mode_not_enforced", 7)
    assert "environments.toml" in ran.error["message"]
    assert user.nothing_was_made()
    user.turn(ANSWER, *YOLO).completed()


@pytest.mark.rule("rule.profileTellsAll")
def test_a_thread_whose_commands_would_run_elsewhere_gets_no_turn(user: User) -> None:
    thread = {"id": "0b", "environments": [{"environmentId": "devbox", "cwd": "/"}]}
    ran = user.turn({"thread": {"thread": thread}, "turn": ANSWER}).ended_as("refused", "mode_not_enforced", 7)
    assert "where commands run: asked local, Codex answered devbox" in ran.error["message"]


@pytest.mark.rule("rule.saysWhatWasDone")
def test_what_was_added_is_told_by_the_outcome_and_by_check(user: User) -> None:
    ran = user.turn(ANSWER).completed()
    runtime = user.root / "run" / "cc-agents"
    added = ran.outcome["effective"]["added"]
    assert added == [f"unreadable {user.codex_home / 'auth.json'}", f"unreadable {runtime}"]
    checked = json.loads(user.run("check", "--json", "x").out)
    assert checked["effective"]["added"] == added


@pytest.mark.rule("rule.directories")
def test_a_write_turn_in_a_linked_worktree_is_told_how_a_commit_works(user: User) -> None:
    own = user.root / "main" / ".git" / "worktrees" / "wt"
    own.mkdir(parents=True)
    (own / "commondir").write_text("../..\n")
    (user.work / ".git").write_text(f"gitdir: {own}\n")
    ran = user.turn(ANSWER, *WRITE).completed()
    words = f"--add-dir {user.root}/main/.git --add-dir {own}"
    assert any(w.endswith(words) for w in ran.outcome["warnings"])
    assert not any("worktree" in w for w in user.turn(ANSWER, *WRITE, *words.split()).completed().outcome["warnings"])


@pytest.mark.rule("rule.codexVersions")
def test_a_newer_codex_is_told_once(user: User) -> None:
    warnings = user.turn({"version": "9.0.0", "turn": ANSWER}).completed().outcome["warnings"]
    assert ["9.0.0" in w for w in warnings] == [True]


@pytest.mark.rule("rule.codexVersions")
def test_the_refusal_of_an_old_codex_has_the_command_that_updates_it(user: User) -> None:
    unknown = [{"reply": {"error": {"code": -32600, "message": "unknown variant `configRequirements/read`"}}}]
    scenario = {"version": "0.144.0", "on": {"configRequirements/read": unknown}, "turn": ANSWER}
    ran = user.turn(scenario).ended_as("refused", "codex_too_old", 2)
    assert "npm install -g @openai/codex@latest" in ran.error["message"]


@pytest.mark.rule("rule.saysWhatWasDone")
def test_a_codex_that_does_not_know_the_requirements_gets_its_turn_and_it_is_told(user: User) -> None:
    unknown = [{"reply": {"error": {"code": -32600, "message": "unknown variant `configRequirements/read`"}}}]
    ran = user.turn({"on": {"configRequirements/read": unknown}, "turn": ANSWER}).completed()
    assert any("did not tell the requirements" in warning for warning in ran.outcome["warnings"])
