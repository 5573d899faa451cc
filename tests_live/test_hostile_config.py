"""The mode holds against a configuration that opens every way round it that is known, on the real codex.

What a turn came to is read off the file system, the sockets and what went to the model; not off what Codex says.
Each protection is taken out once (without.py), and the same attempt then has to succeed.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests_live import hostile
from tests_live.attempts import STEPS, Tried, try_everything
from tests_live.conftest import version
from tests_live.homes import Home, write_config
from tests_live.hostile import (
    CLAUDES,
    PROJECT_SET,
    SECRETS,
    SET,
    SIGN_IN,
    World,
    build,
    outcome_of,
    thread_without_sandbox,
)
from tests_live.responses_api import ScriptedModel, offered_tools, say, user_texts

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
    assert tried.requests == STEPS, "a goal goes on by itself"
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


ODD_NAMES = "servers, by odd names"
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
    pytest.param("server_watch", READ, mark("mcp-evil"), id="servers"),
    pytest.param("server_watch", READ, mark("mcp-dot.srv", "mcp-a_b@c:d-e"), id=ODD_NAMES),
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
    codex: str,
    world: World,
    protection: str,
    mode: tuple[str, ...],
    opened: Opened,
    request: pytest.FixtureRequest,
) -> None:
    if ODD_NAMES in request.node.name and version(codex) < "0.150":
        pytest.skip("this Codex starts no server of such a name")
    tried = try_everything(world, codex, "--mode", *mode, without=protection)
    assert opened(tried), (tried.outcome["error"], tried.marks, tried.wrote, tried.hits)


@pytest.mark.rule("rule.goalsOff")
@pytest.mark.parametrize("without", [None, "features.goals"], ids=["kept", "taken out"])
def test_a_thread_with_an_active_goal_starts_no_turn_by_itself(codex: str, world: World, without: str | None) -> None:
    thread = thread_without_sandbox(world, codex, GOAL)
    begun = len(world.model.requests)
    world.model.extend(*[say("a turn")] * 200)
    # without the switch 0.145 never ends it
    hostile.cc_agents(world, codex, "run", "--json", "--timeout", "8s", "--resume", thread, "go", without=without)
    texts = [" ".join(user_texts(r)) for r in world.model.requests[begun:]]
    told = any(GOAL[1]["objective"] in text or "thread goal" in text for text in texts)
    assert told is (without is not None), "the model is asked to go on with the goal"
    assert without is not None or len(texts) == 1
    world.model.drop_rest()


@pytest.mark.rule("rule.resumeSendsAgain")
def test_a_resume_that_sends_nothing_again_would_have_no_mode(codex: str, world: World) -> None:
    """The user's configuration says danger-full-access; Codex itself keeps nothing of the thread's."""
    thread = thread_without_sandbox(world, codex)
    tried = try_everything(world, codex, "--mode", "read-only", "--resume", thread, without="resent+server_watch")
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
