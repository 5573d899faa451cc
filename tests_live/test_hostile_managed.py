"""Configuration that outranks ours: managed files and requirements in /etc/codex, on the real codex.

They are laid over /etc in a mount namespace of the test's own; the machine stays as it is. Where no such namespace
can be had the tests fail, and say that this is untested.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests_live import hostile
from tests_live.homes import Home, write_config
from tests_live.hostile import World, outcome_of
from tests_live.responses_api import ScriptedModel, run_command, say

NAMESPACE_S = 20.0  # a copy of /etc takes a tenth of a second
NAMESPACE = ("unshare", "--mount", "--propagation", "private", *(() if os.geteuid() == 0 else ("--map-root-user",)))
# $0 is a copy of /etc with the files in it; the rest of the words is the command.
OVER_ETC = 'mount --bind "$0" /etc && exec "$@"'

Laid = Callable[[Mapping[str, str]], tuple[str, ...]]


@pytest.fixture
def over_etc(home: Home) -> Laid:
    """over_etc({"requirements.toml": text}): the words before a command that then finds these files in /etc/codex."""

    def lay(files: Mapping[str, str]) -> tuple[str, ...]:
        copy = home.root / "etc"
        subprocess.run(["cp", "-a", "/etc/.", str(copy)], check=False, capture_output=True, timeout=NAMESPACE_S)
        (copy / "codex").mkdir(exist_ok=True)
        for name, text in files.items():
            (copy / "codex" / name).write_text(text)
        words = (*NAMESPACE, "sh", "-c", OVER_ETC, str(copy))
        tried = subprocess.run([*words, "true"], check=False, capture_output=True, timeout=NAMESPACE_S)
        if tried.returncode != 0:
            pytest.fail(f"UNTESTED on this machine: managed configuration. {NAMESPACE}: {tried.stderr.decode()}")
        return words

    return lay


@pytest.fixture
def world(home: Home, model: ScriptedModel) -> World:
    made = hostile.bare(home, model)
    write_config(home, model.base_url)
    return made


def touch(world: World, name: str) -> str:
    return json.dumps(["touch", str(world.marks / name)])


def hook(world: World) -> str:
    return f"""\
[features]
hooks = true
[hooks]
managed_dir = "{world.marks}"
[[hooks.SessionStart]]
[[hooks.SessionStart.hooks]]
type = "command"
command = "touch {world.marks}/hook"
"""


def server(world: World) -> str:
    return hostile.server(world, "managed", "enabled = true\n")


# file, its text, the protections that have to be taken out for it to count, and the mark that shows that it does
OUTRANK = {
    "notify": ("managed_config.toml", lambda w: f"notify = {touch(w, 'notify')}\n", "outranking", "notify"),
    "a server": ("managed_config.toml", server, "outranking+server_watch", "mcp-managed"),
    "hooks": ("requirements.toml", hook, "outranking+hook_watch", "hook"),
    "the profile": (
        "managed_config.toml",
        lambda _: 'default_permissions = ":danger-full-access"\n',
        "read_back",
        "out",
    ),
}


def one_turn(
    codex: str, world: World, around: tuple[str, ...], *, mode: str = "read-only", without: str | None = None
) -> subprocess.CompletedProcess[bytes]:
    world.model.extend(run_command(f"env; touch {world.marks}/out"), say("done"))
    ran = hostile.cc_agents(world, codex, "run", "--json", "--mode", mode, "go", around=around, without=without)
    world.model.drop_rest()
    return ran


@pytest.mark.rule("rule.readBack")
@pytest.mark.rule("rule.hooksOff")
@pytest.mark.rule("rule.mcpOff")
@pytest.mark.parametrize("name", OUTRANK)
def test_what_outranks_the_mode_or_a_switch_is_refused_before_anything_starts(
    codex: str, world: World, over_etc: Laid, name: str
) -> None:
    file, text, protections, mark = OUTRANK[name]
    around = over_etc({file: text(world)})
    ran = one_turn(codex, world, around)
    assert (ran.returncode, outcome_of(ran)["error"]["reason"]) == (7, "mode_not_enforced"), outcome_of(ran)
    assert ("managed_config.toml" if "managed" in file else "requirements") in outcome_of(ran)["error"]["message"]
    assert (world.marked(), world.model.requests) == (set(), [])
    one_turn(codex, world, around, without=protections)
    assert mark in world.marked(), "the protection is not needed"


@pytest.mark.rule("rule.mcpOff")
@pytest.mark.rule("rule.hooksOff")
@pytest.mark.parametrize("name", ["a server", "hooks"])
def test_what_starts_all_the_same_ends_the_turn(codex: str, world: World, over_etc: Laid, name: str) -> None:
    file, text, _, _ = OUTRANK[name]
    ran = one_turn(codex, world, over_etc({file: text(world)}), without="outranking")
    outcome = outcome_of(ran)
    assert (ran.returncode, outcome["error"]["reason"]) == (7, "mode_not_enforced"), outcome
    assert "started although it was switched off" in outcome["error"]["message"]
    assert "out" not in world.marked()


REQUIREMENTS = {
    "an approval policy": (
        'approval_policy = "on-request"\n',
        "managed_config.toml",
        "write",
        "approval policy: asked never",
    ),
    "no write mode": (
        'allowed_sandbox_modes = ["read-only"]\n',
        "requirements.toml",
        "write",
        "sandbox: asked workspaceWrite",
    ),
    "a secret": ('[shell_environment_policy]\nset = { A_TOKEN = "t" }\n', "managed_config.toml", "write", "A_TOKEN"),
    "a feature": ("[features]\ngoals = true\n", "requirements.toml", "yolo", "features.goals stays on"),
}


@pytest.mark.rule("rule.readBack")
@pytest.mark.rule("rule.approvalsNever")
@pytest.mark.parametrize("name", REQUIREMENTS)
def test_a_policy_that_changes_what_was_asked_is_named(codex: str, world: World, over_etc: Laid, name: str) -> None:
    text, file, mode, said = REQUIREMENTS[name]
    ran = one_turn(codex, world, over_etc({file: text}), mode=mode)
    outcome = outcome_of(ran)
    assert (ran.returncode, outcome["error"]["reason"]) == (7, "mode_not_enforced"), outcome
    assert said in outcome["error"]["message"]
    assert world.model.requests == []


@pytest.mark.rule("rule.mcpOff")
@pytest.mark.parametrize("without", [None, "server_watch"], ids=["off", "taken out"])
def test_a_server_of_the_system_is_off_as_the_users_are(
    codex: str, world: World, over_etc: Laid, without: str | None
) -> None:
    around = over_etc({"config.toml": hostile.server(world, "system")})
    ran = one_turn(codex, world, around, without=without)
    assert outcome_of(ran)["status"] == "completed", outcome_of(ran)
    assert world.marked() == (set() if without is None else {"mcp-system"})


def test_the_machine_itself_has_no_configuration_of_these_tests(home: Home, over_etc: Laid) -> None:
    over_etc({"requirements.toml": "x = 1\n"})
    assert (
        not (Path("/etc/codex") / "requirements.toml").exists()
        or "x = 1" not in Path("/etc/codex/requirements.toml").read_text()
    )
