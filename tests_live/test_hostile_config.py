"""The mode holds against a configuration that opens every way round it that is known, on the real codex.

What a turn came to is read off the file system, the sockets and what went to the model; not off what Codex says.
Each protection is taken out once (without.py), and the same attempt then has to succeed.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests_live import hostile
from tests_live.conftest import version
from tests_live.homes import Home, write_config
from tests_live.hostile import (
    CLAUDES,
    PROJECT_SET,
    SECRETS,
    SET,
    SIGN_IN,
    Tried,
    World,
    build,
    outcome_of,
    thread_without_sandbox,
    try_everything,
)
from tests_live.responses_api import ScriptedModel, offered_tools, run_command, say, user_texts

READ, WRITE, NETWORK, YOLO = ("read-only",), ("write",), ("write", "--network"), ("yolo",)
READ_NETWORK = ("read-only", "--network")
TEMPORARY = {"tmp", "slash-tmp"}
EVERYWHERE = TEMPORARY | {"work", "extra", "project", "repository", "home", "codex", "config"}
GOAL = ("thread/goal/set", {"objective": "go on for ever", "status": "active"})
ALL_SECRETS = {**SECRETS, **SET, **PROJECT_SET}


@pytest.fixture
def world(home: Home, model: ScriptedModel, codex: str) -> World:
    return build(home, model, codex)


def leaked(tried: Tried, values: dict[str, str]) -> set[str]:
    return {name for name, value in values.items() if value in tried.told}


# --- everything at once ----------------------------------------------------------------------------------------

MODES = [
    pytest.param(READ, set(), set(), id="read-only"),
    pytest.param(READ_NETWORK, set(), {"tcp"}, id="read-only with network"),
    pytest.param(WRITE, TEMPORARY | {"work"}, set(), id="write"),
    pytest.param(NETWORK, TEMPORARY | {"work"}, {"tcp"}, id="write with network"),
]


@pytest.mark.rule("rule.modes")
@pytest.mark.rule("rule.execRulesClosed")
@pytest.mark.rule("rule.profileTellsAll")
@pytest.mark.rule("rule.hooksOff")
@pytest.mark.rule("rule.mcpOff")
@pytest.mark.rule("rule.secretsKept")
@pytest.mark.rule("rule.approvalsNever")
@pytest.mark.rule("rule.resumeSendsAgain")
@pytest.mark.parametrize("how", ["fresh", "resumed"])
@pytest.mark.parametrize(("mode", "wrote", "hits"), MODES)
def test_no_way_round_a_sandboxed_mode_is_open(
    codex: str, world: World, mode: tuple[str, ...], wrote: set[str], hits: set[str], how: str
) -> None:
    words = ("--mode", *mode)
    if how == "resumed":
        words = (*words, "--resume", thread_without_sandbox(world, codex, GOAL))
    tried = try_everything(world, codex, *words)
    assert (tried.outcome["status"], tried.code) == ("completed", 0), tried.outcome
    assert (tried.marks, tried.wrote, tried.hits) == (set(), wrote, hits)
    assert SIGN_IN not in tried.told
    assert leaked(tried, CLAUDES) == set()
    if "tcp" not in hits:
        assert leaked(tried, ALL_SECRETS) == set()
        assert not [tool for tool in tried.tools if "web" in tool or "image_gen" in tool]
    assert tried.requests == hostile.STEPS, "a goal goes on by itself"
    if how == "fresh":
        assert not [tool for tool in tried.tools if "goal" in tool]  # a resumed history tells of the old ones
    off = set(tried.outcome["effective"]["switched_off"])
    assert {f"mcp_servers.{name}" for name in (*hostile.SERVERS, "parent", "here")} <= off


@pytest.mark.rule("rule.modes")
@pytest.mark.rule("rule.mcpOff")
@pytest.mark.rule("rule.hooksOff")
def test_yolo_leaves_hooks_rules_and_environment_alone_and_no_server_starts(codex: str, world: World) -> None:
    tried = try_everything(world, codex, "--mode", "yolo")
    assert tried.code == 0, tried.outcome
    assert tried.wrote == EVERYWHERE
    assert tried.hits == {"tcp", "unix"}
    assert {"write", "rule", "patched", "typed", "hook", "notify", "rc"} == tried.marks
    assert leaked(tried, SECRETS) == set(SECRETS)
    assert leaked(tried, CLAUDES) == set()


# --- each protection is needed ---------------------------------------------------------------------------------

Opened = Callable[[Tried], bool]


def mark(*names: str) -> Opened:
    return lambda tried: set(names) <= tried.marks


def wrote(*names: str) -> Opened:
    return lambda tried: set(names) <= tried.wrote


def hit(name: str) -> Opened:
    return lambda tried: name in tried.hits


def told(values: dict[str, str]) -> Opened:
    return lambda tried: bool(leaked(tried, values))


NEEDED = [
    pytest.param("profile", READ, mark("rule"), id="the profile, against exec rules in read-only"),
    pytest.param("profile", WRITE, wrote("extra"), id="the profile, against writable_roots"),
    pytest.param("profile", WRITE, hit("tcp"), id="the profile, against network_access"),
    pytest.param("denied", READ, mark("rule"), id="the denied paths, against exec rules"),
    pytest.param("denied", READ, lambda tried: SIGN_IN in tried.told, id="the denied sign-in"),
    pytest.param("private", NETWORK, hit("unix"), id="our sockets denied, with network"),
    pytest.param("features.hooks+hook_watch", READ, mark("hook"), id="hooks"),
    pytest.param("features.hooks", READ, lambda tried: tried.code == 7, id="a hook that runs ends the turn"),
    pytest.param("notify", READ, mark("notify"), id="notify"),
    pytest.param("features.shell_snapshot", READ, mark("rc"), id="the shell snapshot"),
    pytest.param("servers", READ, lambda tried: tried.code == 7, id="a server that starts ends the turn"),
    pytest.param("server_watch", READ, mark("mcp-evil", "mcp-dot.srv", "mcp-a_b@c:d-e"), id="servers, by their names"),
    pytest.param("server_watch", READ, mark("mcp-parent", "mcp-here"), id="servers of a project"),
    pytest.param("environment", YOLO, told(CLAUDES), id="Claude Code's variables"),
    pytest.param(
        "shell_environment_policy.ignore_default_excludes", READ, told(SECRETS), id="secrets of the environment"
    ),
    pytest.param("set_secrets", READ, told(SET), id="secrets that the user's configuration sets"),
    pytest.param("set_secrets", READ, told(PROJECT_SET), id="secrets that a project's configuration sets"),
]


@pytest.mark.rule("rule.execRulesClosed")
@pytest.mark.rule("rule.profileTellsAll")
@pytest.mark.rule("rule.hooksOff")
@pytest.mark.rule("rule.mcpOff")
@pytest.mark.rule("rule.secretsKept")
@pytest.mark.parametrize(("protection", "mode", "opened"), NEEDED)
def test_without_its_protection_the_way_round_is_open(
    codex: str, world: World, protection: str, mode: tuple[str, ...], opened: Opened
) -> None:
    tried = try_everything(world, codex, "--mode", *mode, without=protection)
    assert opened(tried), (tried.outcome["error"], tried.marks, tried.wrote, tried.hits)


@pytest.mark.rule("rule.goalsOff")
@pytest.mark.parametrize("without", [None, "features.goals"], ids=["kept", "taken out"])
def test_a_thread_with_an_active_goal_starts_no_turn_by_itself(codex: str, world: World, without: str | None) -> None:
    thread = thread_without_sandbox(world, codex, GOAL)
    begun = len(world.model.requests)
    world.model.extend(*[say("a turn")] * 200)
    hostile.cc_agents(world, codex, "run", "--json", "--resume", thread, "go", without=without)
    texts = [" ".join(user_texts(r)) for r in world.model.requests[begun:]]
    assert (len(texts) > 1 or "go" not in texts[0].split()) is (without is not None)
    world.model.drop_rest()


@pytest.mark.rule("rule.resumeSendsAgain")
def test_a_resume_that_sends_nothing_again_would_have_no_mode(codex: str, world: World) -> None:
    """The user's configuration says danger-full-access; Codex itself keeps nothing of the thread's."""
    thread = thread_without_sandbox(world, codex)
    tried = try_everything(world, codex, "--mode", "read-only", "--resume", thread, without="resent")
    assert wrote("extra", "home")(tried), tried.outcome


@pytest.mark.rule("rule.goalsOff")
@pytest.mark.parametrize("without", [None, "queue"], ids=["kept", "taken out"])
def test_a_thread_with_queued_messages_is_refused_as_busy(codex: str, world: World, without: str | None) -> None:
    if version(codex) < "0.150":
        pytest.skip("this Codex has no queues")
    queued = {"clientUserMessageId": "m", "input": [{"type": "text", "text": "QUEUED"}]}
    thread = thread_without_sandbox(world, codex, ("thread/queue/add", queued), experimental=True)
    begun = len(world.model.requests)
    world.model.extend(*[say("a turn")] * 20)
    ran = hostile.cc_agents(world, codex, "run", "--json", "--resume", thread, "go", without=without)
    texts = [" ".join(user_texts(r)) for r in world.model.requests[begun:]]
    if without is None:
        assert (outcome_of(ran)["error"]["reason"], texts) == ("thread_busy", [])
    else:
        assert any("QUEUED" in text for text in texts)
    world.model.drop_rest()


# --- the provider's tools --------------------------------------------------------------------------------------


@pytest.mark.rule("rule.providerToolsOff")
@pytest.mark.parametrize(
    ("words", "without", "offered"),
    [(READ, None, False), (READ_NETWORK, None, True), (READ, "web_search", True)],
    ids=["without network", "with network", "taken out"],
)
def test_web_search_is_offered_only_with_the_network(
    codex: str, home: Home, model: ScriptedModel, words: tuple[str, ...], without: str | None, offered: bool
) -> None:
    model.extend(say("done"))
    write_config(home, model.base_url, 'web_search = "live"\n', model="gpt-5.5")
    ran = hostile.cc_agents(home, codex, "run", "--json", "--mode", *words, "go", without=without)
    assert outcome_of(ran)["status"] == "completed", ran.stderr
    assert ("web_search" in offered_tools(model.requests[0])) is offered


# --- folders that decide about later turns -----------------------------------------------------------------------

LATER = (
    ".codex/rules/x.rules", ".codex/config.toml", ".config/cc-agents/config.toml", ".local/state/cc-agents/jobs/x",
    ".claude/settings.json", ".claude.json", "run/cc-agents/x", "code/.codex/config.toml",
)  # fmt: skip


@pytest.fixture
def at_home(home: Home, model: ScriptedModel) -> Home:
    """Everything of a user below their home directory, as it is by default."""
    below = home.home
    made = {"codex_home": ".codex", "config": ".config", "state": ".local/state", "runtime": "run", "work": "."}
    for folder in (".codex", ".config/cc-agents", ".local/state", ".claude", "run", "code"):
        (below / folder).mkdir(parents=True, mode=0o700, exist_ok=True)
    (below / "run").chmod(0o700)
    moved = dataclasses.replace(home, **{name: (below / path).resolve() for name, path in made.items()})
    (below / ".claude.json").write_text("{}")
    write_config(moved, model.base_url)
    return moved


def write_all(home: Home, *more: str) -> str:
    """Tries to make each of LATER: in its place, and by moving what it lies in out of the way."""
    lines = [f"cd {home.home}"]
    for path in (*LATER, "notes.txt", *more):
        lines.append(f"mkdir -p {os.path.dirname(path) or '.'} 2>/dev/null; echo turn > {path} 2>/dev/null")
    for top in (".config", ".local", ".claude", ".codex", "run", ".local/state"):
        lines.append(
            f"mv {top} {top}-old 2>/dev/null && mkdir -p {top}/cc-agents && echo turn > {top}/cc-agents/config.toml"
        )
    return "\n".join([*lines, "true"])


def made_by_the_turn(home: Home) -> set[str]:
    found = set()
    for folder, _, files in os.walk(home.home):
        for name in files:
            path = Path(folder, name)
            if path.stat().st_size == 5 and path.read_text() == "turn\n":
                found.add(str(path.relative_to(home.home)))
    return found


@pytest.mark.rule("rule.futureTurnsProtected")
@pytest.mark.parametrize("without", [None, "kept", "pins"], ids=["kept", "none is kept", "the way to it is not pinned"])
@pytest.mark.parametrize("signed_in", [True, False], ids=["signed in", "with a key"])
def test_a_write_turn_in_the_home_directory_can_not_decide_about_later_turns(
    codex: str, at_home: Home, model: ScriptedModel, without: str | None, signed_in: bool
) -> None:
    if signed_in:
        (at_home.codex_home / "auth.json").write_text(json.dumps({"OPENAI_API_KEY": SIGN_IN}))
    elif without is not None:
        pytest.skip("the same mounts")
    model.extend(run_command(write_all(at_home)), say("done"))
    ran = hostile.cc_agents(at_home, codex, "run", "--json", "--mode", "write", "go", without=without, cwd=at_home.home)
    assert outcome_of(ran)["status"] == "completed", outcome_of(ran)
    made = made_by_the_turn(at_home)
    assert "notes.txt" in made
    if without is None:
        assert made == {"notes.txt"}
    elif without == "kept":
        assert {".codex/config.toml", ".claude/settings.json", ".config/cc-agents/config.toml"} <= made
    else:
        assert ".config/cc-agents/config.toml" in made


@pytest.mark.rule("rule.futureTurnsProtected")
@pytest.mark.parametrize("without", [None, "kept"], ids=["kept", "taken out"])
def test_what_is_missing_of_them_can_not_be_made(
    codex: str, at_home: Home, model: ScriptedModel, without: str | None
) -> None:
    (at_home.home / ".claude.json").unlink()
    (at_home.home / ".claude").rmdir()
    (at_home.home / ".config" / "cc-agents").rmdir()
    model.extend(run_command(write_all(at_home)), say("done"))
    ran = hostile.cc_agents(at_home, codex, "run", "--json", "--mode", "write", "go", without=without, cwd=at_home.home)
    assert outcome_of(ran)["status"] == "completed", outcome_of(ran)
    made = made_by_the_turn(at_home)
    assert (made == {"notes.txt"}) is (without is None), made


@pytest.mark.rule("rule.futureTurnsProtected")
@pytest.mark.parametrize("without", [None, "tmpdir+kept"], ids=["replaced", "taken out"])
def test_a_tmpdir_that_holds_codexs_home_does_not_make_it_writable(
    codex: str, home: Home, model: ScriptedModel, without: str | None
) -> None:
    write_config(home, model.base_url)
    (home.codex_home / "auth.json").write_text("{}")
    model.extend(run_command(f"echo x > {home.codex_home}/more; echo x > $TMPDIR/here; true"), say("done"))
    env = {"TMPDIR": str(home.codex_home)}
    ran = hostile.cc_agents(home, codex, "run", "--json", "--mode", "write", "go", without=without, env=env)
    assert outcome_of(ran)["status"] == "completed", outcome_of(ran)
    assert (home.codex_home / "more").exists() is (without is not None)
    Path("/tmp/here").unlink(missing_ok=True)


@pytest.mark.rule("rule.futureTurnsProtected")
def test_a_codex_home_behind_a_link_works_and_is_denied_all_the_same(
    codex: str, home: Home, model: ScriptedModel
) -> None:
    write_config(home, model.base_url)
    (home.codex_home / "auth.json").write_text(json.dumps({"OPENAI_API_KEY": SIGN_IN}))
    real = home.codex_home.rename(home.root / "elsewhere")
    home.codex_home.symlink_to(real)
    model.extend(run_command(f"cat {home.codex_home}/auth.json {real}/auth.json; echo x > {real}/more"), say("done"))
    ran = hostile.cc_agents(home, codex, "run", "--json", "--mode", "write", "go")
    assert outcome_of(ran)["status"] == "completed", outcome_of(ran)
    assert SIGN_IN not in json.dumps(model.requests[1].body)
    assert not (real / "more").exists()


@pytest.mark.rule("rule.directories")
def test_a_link_named_codex_in_the_project_is_refused_by_name_before_codex_starts(
    codex: str, home: Home, model: ScriptedModel
) -> None:
    write_config(home, model.base_url)
    (home.work / ".codex").symlink_to(home.root)
    ran = hostile.cc_agents(home, codex, "run", "--json", "--mode", "write", "go", cwd=home.work)
    assert (ran.returncode, outcome_of(ran)["job"]) == (2, None)
    assert str(home.work / ".codex") in outcome_of(ran)["error"]["message"]
    model.extend(run_command("true"), say("done"))
    ran = hostile.cc_agents(
        home, codex, "run", "--json", "--mode", "write", "go", without="refused_folders", cwd=home.work
    )
    told = outcome_of(ran)["status"] == "refused" or "crosses writable symlink" in json.dumps(model.requests[-1].body)
    assert told, "then Codex's sandbox can hold it by now"
    model.drop_rest()


@pytest.mark.rule("rule.directories")
def test_a_commit_in_a_linked_worktree_works_with_the_words_of_the_warning(
    codex: str, home: Home, model: ScriptedModel
) -> None:
    git = "git -c user.name=a -c user.email=a@b"
    script = (
        f"git init -q 'main repo' && cd 'main repo' && {git} commit -q --allow-empty -m x && git worktree add -q ../wt"
    )
    subprocess.run(["sh", "-ec", script], cwd=home.root, check=True, env=home.environ(), capture_output=True)
    write_config(home, model.base_url)
    worktree = home.root / "wt"
    commit = run_command(f"cd {worktree} && echo x > f && git add f && {git} commit -qm two")

    def turn(*words: str) -> list[str]:
        model.extend(commit, say("done"))
        ran = hostile.cc_agents(home, codex, "run", "--json", "--mode", "write", *words, "go", cwd=worktree)
        warnings: list[str] = outcome_of(ran)["warnings"]
        return [w for w in warnings if "worktree" in w]

    (warning,) = turn()
    assert not (home.root / "main repo" / ".git" / "refs" / "heads" / "two").exists()
    assert count_commits(worktree) == 1
    assert turn(*shlex.split(warning.partition("configuration: ")[2])) == []
    assert count_commits(worktree) == 2


def count_commits(folder: Path) -> int:
    listed = subprocess.run(["git", "rev-list", "HEAD"], cwd=folder, check=True, capture_output=True)
    return len(listed.stdout.splitlines())


# --- where commands run, and who runs them -----------------------------------------------------------------------


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
