"""The schema that the installed codex prints holds for the fake, for what we send, and for our refusals.

So the fake cannot drift from the real one, and a request of the server that is new is seen here first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from adapters.codex.methods import SERVER_REQUESTS, UNREAD_NOTIFICATIONS, refusal_for
from fake_app_server.shim import write_shim
from tests_live.conftest import CcAgents, WriteConfig, version
from tests_live.homes import Home, open_home
from tests_live.protocol import Protocol
from tests_live.responses_api import ScriptedModel, patch, run_command, say
from tests_live.tee import read_logs, write_tee

pytestmark = pytest.mark.rule("rule.fakeIsTrue")

NEWEST = (0, 171)  # the version whose names our tables use; older ones know fewer

# Every kind of thing that the fake knows how to say in one turn.
TURN: list[dict[str, Any]] = [
    {"start": True},
    {"user_message": True},
    {"msg": ["looking", "commentary"], "deltas": ["look", "ing"]},
    {"command": {"run": "ls", "output": "a\n", "exit": 0}},
    {"command": {"run": "false", "output": "", "exit": 1, "status": "failed"}},
    {"usage": [1000, 1000]},
    {"rate_limits": True},
    {"err": ["serverOverloaded", True]},
    {"msg": ["ANSWER", "final_answer"]},
    {"usage": [1600, 600]},
    {"idle": True},
    {"done": "completed"},
]
FAILED_TURN: list[dict[str, Any]] = [
    {"start": True},
    {"user_message": True},
    {"err": ["usageLimitExceeded", False]},
    {"done": "failed", "error": "usageLimitExceeded"},
]
AT = {"threadId": "T", "turnId": "U", "itemId": "i", "startedAtMs": 0}
ASKED = {
    "item/commandExecution/requestApproval": {**AT, "command": "ls"},
    "item/fileChange/requestApproval": AT,
}


@pytest.fixture(scope="session")
def protocols() -> Iterator[Callable[[str], Protocol]]:
    """The schemas of one codex, generated once."""
    with ExitStack() as stack:

        @cache
        def of(codex: str) -> Protocol:
            home = stack.enter_context(open_home())
            return Protocol(codex, home.root / "schema", home.environ())

        yield of


@pytest.fixture
def protocol(codex: str, protocols: Callable[[str], Protocol]) -> Protocol:
    return protocols(codex)


@dataclass(frozen=True, slots=True, kw_only=True)
class Between:
    """An executable between cc-agents and its app-server, and what went through it: a pair a process."""

    path: Path
    folder: Path

    @classmethod
    def put(cls, home: Home, argv: list[str]) -> Between:
        made = cls(path=home.root / "codex-between", folder=home.root / "conversations")
        write_tee(made.path, made.folder, argv)
        return made

    @property
    def env(self) -> dict[str, str]:
        return {"CC_AGENTS_CODEX_BIN": str(self.path)}

    def ours(self) -> list[str]:
        return [method for to, _ in read_logs(self.folder) for method in said(to)]

    def theirs(self) -> list[str]:
        return [method for _, back in read_logs(self.folder) for method in said(back)]

    def problems(self, protocol: Protocol) -> list[str]:
        return [found for pair in read_logs(self.folder) for found in protocol.problems(*pair)]


def said(lines: list[bytes]) -> list[str]:
    return [message["method"] for message in map(json.loads, lines) if "method" in message]


def is_newest(codex: str) -> bool:
    return tuple(map(int, version(codex).split(".")[:2])) >= NEWEST


def test_every_request_that_codex_can_make_is_refused_by_the_table(codex: str, protocol: Protocol) -> None:
    if is_newest(codex):
        assert set(SERVER_REQUESTS) == set(protocol.server_requests)
    for method in protocol.server_requests:  # an older one may have had more: those get an error, never silence
        refusal = refusal_for(method)
        assert (refusal.result is None) != (refusal.error is None)


@pytest.mark.parametrize("method", sorted(SERVER_REQUESTS))
def test_a_refusal_has_the_shape_that_codex_expects(protocol: Protocol, method: str) -> None:
    refusal = SERVER_REQUESTS[method]
    if refusal.result is None:
        assert refusal.error, f"{method} is neither answered nor refused"
    else:
        assert protocol.answer_problems(protocol.server_requests[method], refusal.result, method) == []


def test_the_notifications_that_we_switch_off_exist(codex: str, protocol: Protocol) -> None:
    if not is_newest(codex):
        pytest.skip("the names are those of the newest version")
    assert set(UNREAD_NOTIFICATIONS) <= set(protocol.server_notifications)


def test_the_schema_finds_what_is_wrong(protocol: Protocol) -> None:
    ours = [
        b'{"id":1,"method":"turn/start","params":{"threadId":"t"}}',
        b'{"id":2,"method":"turn/start","params":{"threadId":"t","input":[],"modle":"m"}}',
    ]
    theirs = [b'{"method":"turn/completed","params":{"threadId":"t"}}', b'{"id":1,"result":{}}', b'{"id":9}']
    found = protocol.problems(ours, theirs)
    assert [line.split(":")[0] for line in found] == [
        "turn/start",
        "turn/start",
        "turn/completed",
        "answer to turn/start",
        "Server answers an id that nobody asked",
    ]


@pytest.mark.parametrize("mode", ["read-only", "write", "yolo"])
def test_what_cc_agents_and_the_real_codex_say_to_each_other_is_in_the_schema(
    codex: str,
    home: Home,
    model: ScriptedModel,
    write_config: WriteConfig,
    cc_agents: CcAgents,
    protocol: Protocol,
    mode: str,
) -> None:
    model.extend(
        run_command("echo hi"),
        patch("*** Begin Patch\n*** Add File: f\n+x\n*** End Patch"),
        say("done"),
        say("again"),
    )
    write_config(home, model, '[mcp_servers.one]\ncommand = "true"\n')
    between = Between.put(home, [codex])
    first = cc_agents("run", "--mode", mode, "--json", "go", env=between.env)
    assert first.returncode == 0, first.stderr
    thread = json.loads(first.stdout)["thread"]
    second = cc_agents("run", "--mode", mode, "--resume", thread, "go on", env=between.env)
    assert second.stdout == b"again"
    assert {"thread/start", "thread/resume", "turn/start"} <= set(between.ours())
    assert between.theirs().count("turn/completed") == 2
    assert between.problems(protocol) == []


def fake_says(codex: str, home: Home, cc_agents: CcAgents, scenario: Mapping[str, Any]) -> Between:
    """A turn with the fake in the place of codex, heard from between."""
    if not is_newest(codex):
        pytest.skip("the fake answers like the newest version")
    between = Between.put(home, [str(write_shim(home.root / "fake", scenario=dict(scenario)))])
    cc_agents("run", "go", env=between.env)
    assert "turn/completed" in between.theirs()
    return between


@pytest.mark.parametrize(
    "scenario",
    [{}, {"turn": TURN}, {"turn": FAILED_TURN}],
    ids=["the default turn", "all kinds of items", "a failed turn"],
)
def test_what_the_fake_says_is_in_the_schema(
    codex: str,
    home: Home,
    cc_agents: CcAgents,
    protocol: Protocol,
    scenario: Mapping[str, Any],
) -> None:
    assert fake_says(codex, home, cc_agents, scenario).problems(protocol) == []


def test_what_the_fake_asks_and_we_answer_is_in_the_schema(
    codex: str, home: Home, cc_agents: CcAgents, protocol: Protocol
) -> None:
    asked = [{"ask": {"method": method, "params": params}} for method, params in ASKED.items()]
    scenario = {"turn": [*TURN[:2], *asked, *TURN[2:]], "thread_id": "T", "turn_id": "U"}
    between = fake_says(codex, home, cc_agents, scenario)
    assert set(ASKED) <= set(between.theirs())
    assert between.problems(protocol) == []
