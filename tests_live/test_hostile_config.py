"""The mode holds against a configuration that opens every way round it that is known, on the real codex.

What a turn came to is read off the file system, the sockets and what went to the model; not off what Codex says.
Each protection is taken out once (without.py), and the same attempt then has to succeed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests_live import hostile
from tests_live.hostile import CLAUDES, PROJECT_SET, SECRETS, SET, SIGN_IN, Tried, World, build, thread_without_sandbox, try_everything
from tests_live.homes import Home
from tests_live.responses_api import ScriptedModel

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
    assert not [tool for tool in tried.tools if "goal" in tool]
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
