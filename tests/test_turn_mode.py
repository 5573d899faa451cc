"""The mode is sent whole, read back from Codex, and ends the turn before it begins where it doesn't hold.

Serves rule.modes, rule.readBack, rule.mcpOff, rule.saysWhatWasDone, rule.directories. On the real sandbox: tests_live.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from peer import Codex, converse, done, message, opened, started
from turns import ANSWER, User

from adapters.contract import Mode

WRITE, YOLO = ("--mode", "write"), ("--mode", "yolo")
TEMPORARY = {":workspace_roots", ":tmpdir", ":slash_tmp"}


def profile_of(params: dict[str, Any]) -> dict[str, Any]:
    config = params["config"]
    found: dict[str, Any] = config["permissions"][config["default_permissions"]]
    return found


def writable(params: dict[str, Any]) -> set[str]:
    """But for what lies on the way to something that is kept: it is writable as part of another (/tmp, here)."""
    files = profile_of(params)["filesystem"]
    kept = [path for path, kind in files.items() if kind != "write"]
    return {p for p, kind in files.items() if kind == "write" and not any(k.startswith(f"{p}/") for k in kept)}


@pytest.mark.rule("rule.modes")
def test_read_only_asks_for_nothing_writable_and_no_network(user: User) -> None:
    ran = user.turn(ANSWER).completed()
    (params,) = user.asked("thread/start")
    assert "sandbox" not in params, "it would win over the profile"
    assert params["approvalPolicy"] == "never"
    assert writable(params) == set()
    assert "network" not in profile_of(params)
    effective = ran.outcome["effective"]
    assert (effective["mode"], effective["sandbox"]["type"], effective["network"]) == ("read-only", "readOnly", False)


@pytest.mark.rule("rule.modes")
@pytest.mark.rule("rule.extraWritableFolders")
def test_write_asks_for_exactly_the_directory_the_added_and_the_temporary_folders(user: User) -> None:
    lib, cache = user.root / "lib", user.home / "cache"
    lib.mkdir()
    cache.mkdir()
    user.env["CC_AGENTS_WRITABLE_DIRS"] = "~/cache"
    ran = user.turn(ANSWER, *WRITE, "--add-dir", str(lib)).completed()
    (params,) = user.asked("thread/start")
    assert params["cwd"] == str(user.work)
    assert writable(params) == TEMPORARY | {str(lib), str(cache)}
    assert "network" not in profile_of(params)
    effective = ran.outcome["effective"]
    assert set(effective["writable_roots"]) == {str(user.work), str(lib), str(cache)}
    assert (effective["sandbox"]["type"], effective["network"]) == ("workspaceWrite", False)


@pytest.mark.rule("rule.extraWritableFolders")
def test_the_users_extra_folders_do_not_count_in_read_only(user: User) -> None:
    (user.home / "cache").mkdir()
    user.env["CC_AGENTS_WRITABLE_DIRS"] = "~/cache"
    user.turn(ANSWER).completed()
    assert writable(user.asked("thread/start")[0]) == set()


@pytest.mark.rule("rule.modes")
def test_the_network_is_there_only_when_it_was_asked_for(user: User) -> None:
    ran = user.turn(ANSWER, *WRITE, "--network").completed()
    assert profile_of(user.asked("thread/start")[0])["network"] == {"enabled": True}
    assert ran.outcome["effective"]["network"] is True


@pytest.mark.rule("rule.modes")
@pytest.mark.rule("rule.yoloStated")
def test_yolo_has_no_sandbox_and_must_be_stated(user: User) -> None:
    ran = user.turn(ANSWER, *YOLO).completed()
    (params,) = user.asked("thread/start")
    assert (params["sandbox"], "permissions" in params["config"]) == ("danger-full-access", False)
    assert ran.outcome["effective"]["sandbox"] == {"type": "dangerFullAccess"}
    user.env["CC_AGENTS_MODE"] = "yolo"
    refused = user.turn(ANSWER)
    refused.ended_as("refused", "bad_option", 2)


@pytest.mark.rule("rule.modes")
def test_the_users_own_configuration_of_the_sandbox_does_not_count(user: User) -> None:
    roots = {"network_access": True, "writable_roots": ["/srv/extra"]}
    config = {"sandbox_mode": "danger-full-access", "sandbox_workspace_write": roots, "approval_policy": "on-request"}
    ran = user.turn({"config": config, "turn": ANSWER}, *WRITE).completed()
    assert "/srv/extra" not in ran.outcome["effective"]["sandbox"]["writableRoots"]
    assert ran.outcome["effective"]["approval_policy"] == "never"


@pytest.mark.rule("rule.resumeSendsAgain")
def test_a_resume_sends_the_mode_and_every_switch_again(user: User) -> None:
    user.turn({"known_threads": ["0a"], "turn": ANSWER}, "--resume", "0a").completed()
    user.turn(ANSWER).completed()
    resumed, fresh = user.asked("thread/resume")[0], user.asked("thread/start")[0]

    def plain(params: dict[str, Any]) -> dict[str, Any]:
        config = {**params["config"], "permissions": profile_of(params)}
        config.pop("default_permissions")
        return {**params, "config": config}

    given = plain(resumed)
    assert given.pop("threadId") == "0a"
    assert given.pop("excludeTurns") is True
    assert given == plain(fresh)


LIES: dict[str, tuple[Mode, dict[str, Any], str]] = {
    "write became read-only": ("write", {"sandbox": {"type": "readOnly", "networkAccess": False}}, "sandbox: asked"),
    "read-only became danger": (
        "read-only",
        {"sandbox": {"type": "dangerFullAccess"}},
        "Codex answered dangerFullAccess",
    ),
    "no sandbox is named": ("read-only", {"sandbox": None}, "Codex answered nothing"),
    "an external sandbox": ("read-only", {"sandbox": {"type": "externalSandbox"}}, "externalSandbox"),
    "the network is on": ("read-only", {"sandbox": {"type": "readOnly", "networkAccess": True}}, "network: asked off"),
    "the network is not named": ("read-only", {"sandbox": {"type": "readOnly"}}, "network: asked off"),
    "a root more": (
        "write",
        {"sandbox": {"type": "workspaceWrite", "writableRoots": ["/srv/extra"], "networkAccess": False}},
        "/srv/extra",
    ),
    "roots that are no list": (
        "write",
        {"sandbox": {"type": "workspaceWrite", "writableRoots": "/", "networkAccess": False}},
        "writable folders",
    ),
    "another approval policy": ("read-only", {"approvalPolicy": "on-request"}, "approval policy: asked never"),
    "a granular approval policy": ("read-only", {"approvalPolicy": {"granular": {"rules": True}}}, "approval policy"),
    "another profile": ("read-only", {"activePermissionProfile": {"id": "users"}}, "permission profile"),
    "no profile": ("read-only", {"activePermissionProfile": None}, "permission profile"),
    "another directory": ("read-only", {"cwd": "/usr"}, "directory: asked"),
    "yolo became read-only": ("yolo", {"sandbox": {"type": "readOnly", "networkAccess": False}}, "sandbox: asked"),
}


@pytest.mark.rule("rule.readBack")
@pytest.mark.parametrize(("mode", "answered", "said"), LIES.values(), ids=LIES)
async def test_what_codex_answers_otherwise_ends_it_before_the_turn(
    tmp_path: Path, mode: Mode, answered: dict[str, Any], said: str
) -> None:
    codex = Codex([started(), message("A"), done()], answers={"thread/start": lambda p: {**opened(p), **answered}})
    ending = await converse(codex, mode=mode, cwd=str(tmp_path))
    assert ending.error is not None
    assert (ending.status, ending.error.reason) == ("refused", "mode_not_enforced")
    assert said in ending.error.message
    assert codex.asked("turn/start") == []


@pytest.mark.rule("rule.readBack")
@pytest.mark.rule("rule.exitCodes")
def test_a_mode_that_does_not_hold_has_an_exit_code_of_its_own(user: User) -> None:
    scenario = {"thread": {"sandbox": {"type": "readOnly", "networkAccess": False}}, "turn": ANSWER}
    ran = user.turn(scenario, *WRITE).ended_as("refused", "mode_not_enforced", 7)
    assert "sandbox: asked workspaceWrite, Codex answered readOnly" in ran.error["message"]
    assert "turn/start" not in user.methods()


@pytest.mark.rule("rule.readBack")
def test_a_resume_that_answers_with_more_access_is_refused_too(user: User) -> None:
    scenario = {"known_threads": ["0a"], "thread": {"sandbox": {"type": "dangerFullAccess"}}, "turn": ANSWER}
    user.turn(scenario, "--resume", "0a").ended_as("refused", "mode_not_enforced", 7)
    assert "turn/start" not in user.methods()


@pytest.mark.rule("rule.readBack")
def test_a_managed_policy_is_named_with_the_layer_that_says_it(user: User) -> None:
    name = {"type": "legacyManagedConfigTomlFromFile", "file": "/etc/codex/managed_config.toml"}
    scenario = {"layers": [{"name": name, "config": {"approval_policy": "on-request"}}], "turn": ANSWER}
    ran = user.turn(scenario).ended_as("refused", "mode_not_enforced", 7)
    assert "managed_config.toml: approval_policy" in ran.error["message"]


@pytest.mark.rule("rule.mcpOff")
def test_every_configured_server_is_switched_off_by_name_and_the_list_is_told(user: User) -> None:
    names = ["notes", "dot.srv", 'quo"te', "space srv", "päth/@x:1"]
    servers = {name: {"command": "true"} for name in names}
    ran = user.turn({"config": {"mcp_servers": servers}, "turn": ANSWER}).completed()
    sent = user.asked("thread/start")[0]["config"]["mcp_servers"]
    assert sent == {name: {"enabled": False} for name in names}
    assert {f"mcp_servers.{name}" for name in names} <= set(ran.outcome["effective"]["switched_off"])
    assert ran.outcome["warnings"] == []


@pytest.mark.rule("rule.mcpOff")
def test_the_users_own_servers_are_off_on_the_command_line_already(user: User) -> None:
    (user.codex_home / "config.toml").write_text('[mcp_servers.notes]\ncommand="x"\n[mcp_servers."dot.srv"]\nurl="u"\n')
    scenario = {"config": {"mcp_servers": {n: {"command": "x"} for n in ("notes", "dot.srv")}}, "turn": ANSWER}
    user.turn(scenario).completed()
    argv = user.logged("start")[0]["argv"]
    assert 'mcp_servers={"dot.srv"={enabled=false},notes={enabled=false}}' in argv
    for switch in ("features.apps=false", "features.plugins=false"):
        assert argv[argv.index(switch) - 1] == "-c"


@pytest.mark.rule("rule.mcpOff")
@pytest.mark.parametrize("status", ["starting", "ready"])
def test_a_server_that_starts_all_the_same_ends_the_turn(user: User, status: str) -> None:
    news = {"method": "mcpServer/startupStatus/updated", "params": {"name": "stranger", "status": status}}
    ran = user.turn([{"start": True}, {"notify": news}, {"wait": 0.2}, *ANSWER[1:]])
    ran.ended_as("failed", "mode_not_enforced", 7)
    assert "stranger" in ran.error["message"]
    assert ran.outcome["final_text"] == ""


@pytest.mark.rule("rule.mcpOff")
def test_a_server_that_starts_before_the_turn_ends_it_too(user: User) -> None:
    news = {"method": "mcpServer/startupStatus/updated", "params": {"name": "early", "status": "starting"}}
    scenario = {"on": {"thread/start": [{"notify": news}, {"reply": {"default": True}}]}, "turn": ANSWER}
    user.turn(scenario).ended_as("failed", "mode_not_enforced", 7)


@pytest.mark.rule("rule.mcpOff")
def test_a_server_that_failed_to_start_is_a_warning_and_no_error_of_sign_in(user: User) -> None:
    params = {"name": "codex_apps", "status": "failed", "error": "401 Unauthorized: please log in"}
    news = {"notify": {"method": "mcpServer/startupStatus/updated", "params": params}}
    ran = user.turn([{"start": True}, news, *ANSWER[1:]]).completed()
    assert any("codex_apps" in w for w in ran.outcome["warnings"])


@pytest.mark.rule("rule.directories")
def test_a_directory_of_any_name_works_and_is_told(user: User) -> None:
    odd = user.root / "pröj ekt" / "数据 dir"
    odd.mkdir(parents=True)
    ran = user.turn(ANSWER, *WRITE, "--cwd", str(odd)).completed()
    assert ran.outcome["effective"]["cwd"] == str(odd)
    assert user.logged("start")[0]["cwd"] == str(odd)
    assert user.asked("thread/start")[0]["cwd"] == str(odd)


@pytest.mark.rule("rule.directories")
@pytest.mark.rule("rule.refusedEarly")
def test_a_directory_that_is_missing_or_a_file_is_refused_and_nothing_is_started(user: User) -> None:
    (user.work / "notes.txt").touch()
    for name, said in (("gone", "does not exist"), ("notes.txt", "is not a folder")):
        ran = user.turn(ANSWER, "--cwd", str(user.work / name)).ended_as("refused", "bad_request", 2)
        assert said in ran.error["message"]
    assert user.nothing_was_made()


@pytest.mark.rule("rule.directories")
def test_a_directory_is_made_real_before_codex_sees_it(user: User) -> None:
    (user.root / "link").symlink_to(user.work)
    ran = user.turn(ANSWER, "--cwd", str(user.root / "link")).completed()
    assert ran.outcome["effective"]["cwd"] == str(user.work)


@pytest.mark.rule("rule.saysWhatWasDone")
def test_the_outcome_says_which_codex_it_was(user: User) -> None:
    ran = user.turn({"version": "0.150.3", "turn": ANSWER}).completed()
    assert ran.outcome["effective"]["codex"] == {"path": str(user.root / "bin" / "codex"), "version": "0.150.3"}


@pytest.mark.rule("rule.codexVersions")
@pytest.mark.parametrize(
    ("version", "code"), [("0.130.0", 2), ("0.144.9", 2), ("0.145.0", 0), ("0.171.0", 0), ("9.0.0", 0)]
)
def test_a_codex_that_is_too_old_is_refused_by_its_version(user: User, version: str, code: int) -> None:
    ran = user.turn({"version": version, "turn": ANSWER})
    assert ran.code == code
    if code:
        ran.ended_as("refused", "codex_too_old", 2)
        assert version in ran.error["message"]
        assert "0.145.0" in ran.error["message"]
        assert "thread/start" not in user.methods()
