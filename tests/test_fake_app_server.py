"""The answers of the fake are true to the request, and its scenarios, recordings and shim are what they say.

Does not test the adapter. Serves spec:cc-agents.fakes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_client import INPUT, PATIENCE_S, TRANSCRIPTS, Fake, profile

from fake_app_server.scenario import DEFAULT_TEXT, Scenario, ScenarioError
from fake_app_server.shim import demo_scenario
from fake_app_server.tomlflags import read_flags

pytestmark = pytest.mark.rule("rule.fakeIsTrue")


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[Fake]:
    with Fake(tmp_path) as made:
        yield made


READ_ONLY = {"type": "readOnly", "networkAccess": False}


def writing(*roots: str, network: bool = False, tmp: bool = True) -> dict[str, Any]:
    flags = {"networkAccess": network, "excludeTmpdirEnvVar": not tmp, "excludeSlashTmp": not tmp}
    return {"type": "workspaceWrite", "writableRoots": list(roots), **flags}


def test_the_default_turn_comes_in_the_order_of_codex(fake: Fake) -> None:
    client = fake()
    client.turn(client.open())
    end = client.notice("turn/completed")
    methods = [m["method"] for m in client.received if "method" in m]
    assert methods[methods.index("turn/started") - 1 :] == [
        "thread/status/changed",
        "turn/started",
        *["item/started", "item/completed"],
        *["item/started", "item/agentMessage/delta", "item/completed"],
        "thread/tokenUsage/updated",
        "account/rateLimits/updated",
        "thread/status/changed",
        "turn/completed",
    ]
    assert [i["text"] for i in end["turn"]["items"]] == [DEFAULT_TEXT]
    assert "usage" not in json.dumps(end).lower()
    assert client.hang_up() == 0


def test_nothing_is_answered_before_initialize_and_a_second_one_is_refused(fake: Fake) -> None:
    client = fake()
    assert client.call("model/list") == {"code": -32600, "message": "Not initialized"}
    assert client.initialize()["userAgent"].startswith("tester/0.171.0 (")
    assert client.initialize()["message"] == "Already initialized"
    assert client.call("foo/bar")["message"].startswith("Invalid request: unknown variant `foo/bar`")


@pytest.mark.parametrize(
    ("params", "sandbox", "name"),
    [
        ({"sandbox": "read-only"}, READ_ONLY, None),
        ({"sandbox": "workspace-write"}, writing("/leak", network=True), None),
        ({"sandbox": "danger-full-access"}, {"type": "dangerFullAccess"}, None),
        ({"config": profile({"/x": "deny"})}, READ_ONLY, "p"),
        (
            {"config": profile({}, network={"enabled": True})},
            {"type": "readOnly", "networkAccess": True},
            "p",
        ),
        (
            {
                "config": profile(
                    {":workspace_roots": "write", ":tmpdir": "write", ":slash_tmp": "write", "/z": "write"}
                )
            },
            writing("/z"),
            "p",
        ),
        ({"config": profile({":workspace_roots": "write", "/w/ro": "read"})}, writing(tmp=False), "p"),
        (
            {"config": profile({"/b": "write", "/a": "write", "/": "deny"})},
            writing("/a", "/b", tmp=False),
            "p",
        ),
        ({"sandbox": "read-only", "config": profile({":workspace_roots": "write"})}, READ_ONLY, None),
        ({}, READ_ONLY, ":read-only"),
    ],
)
def test_the_sandbox_of_the_response_follows_from_the_request(
    fake: Fake, params: dict[str, Any], sandbox: Any, name: str | None
) -> None:
    leaky = {"writable_roots": ["/leak"], "network_access": True}
    client = fake({"config": {"sandbox_workspace_write": leaky}})
    client.initialize()
    answer = client.call("thread/start", {"cwd": "/w", "approvalPolicy": "never", **params})
    assert answer["sandbox"] == sandbox
    assert answer["activePermissionProfile"] == (name and {"id": name, "extends": None})
    assert (answer["approvalPolicy"], answer["cwd"]) == ("never", "/w")


def test_a_managed_layer_wins_over_the_request(fake: Fake) -> None:
    name = {"type": "legacyManagedConfigTomlFromFile", "file": "/etc/codex/managed_config.toml"}
    managed = {"approval_policy": "on-request", "mcp_servers": {"forced": {"command": "x", "enabled": True}}}
    client = fake({"layers": [{"name": name, "config": managed}]})
    client.initialize()
    off = {"mcp_servers": {"forced": {"enabled": False}}}
    assert client.call("thread/start", {"approvalPolicy": "never", "config": off})["approvalPolicy"] == "on-request"
    assert client.notice("mcpServer/startupStatus/updated")["name"] == "forced"
    assert client.call("config/read", {"includeLayers": True})["layers"][0]["name"] == name


def test_only_servers_that_are_still_on_say_that_they_start(fake: Fake) -> None:
    servers = {name: {"command": "true"} for name in ("by-flag", "in.table", "by-thread", "left")}
    flags = ["-c", 'mcp_servers={"in.table"={enabled=false}}', "-c", "mcp_servers.by-flag.enabled=false"]
    client = fake({"config": {"mcp_servers": servers}}, *flags)
    client.open(config={"mcp_servers": {"by-thread": {"enabled": False}}})
    client.call("account/read")
    states = [(s["name"], s["status"]) for s in client.said("mcpServer/startupStatus/updated")]
    assert states == [("left", "starting"), ("left", "ready")]


def test_a_server_that_nobody_configured_is_refused_as_codex_does(fake: Fake) -> None:
    client = fake(None, "-c", 'mcp_servers."a.b".enabled=false')
    assert client.process.wait(PATIENCE_S) == 1
    assert b'invalid transport\nin `mcp_servers."a`' in client.stderr.read()
    client = fake()
    client.initialize()
    refused = client.call("thread/start", {"config": {"mcp_servers": {"no": {"enabled": False}}}})
    assert refused["message"].startswith("failed to load configuration: invalid transport")


def test_a_later_table_flag_forgets_the_dotted_flags_before_it() -> None:
    dotted, table = ["-c", "mcp_servers.a.enabled=false"], ["-c", "mcp_servers={b={enabled=false}}"]
    assert sorted(read_flags([*table, *dotted])["mcp_servers"]) == ["a", "b"]
    assert sorted(read_flags([*dotted, *table])["mcp_servers"]) == ["b"]


def test_flags_are_read_as_toml_or_as_text() -> None:
    argv = ["-c", "a.b=false", "-c", "n=[]", "-c", 'w="disabled"', "-c", "t={x=1,'y z'={k=[1.5,\"s\"]}}"]
    assert read_flags([*argv, "-c", "plain=so it is"]) == {
        "a": {"b": False},
        "n": [],
        "w": "disabled",
        "t": {"x": 1, "y z": {"k": [1.5, "s"]}},
        "plain": "so it is",
    }


def test_the_catalog_hides_pages_and_can_be_replaced(fake: Fake) -> None:
    client = fake()
    client.initialize()
    shown = client.call("model/list")["data"]
    assert [m["id"] for m in shown if m["isDefault"]] == ["gpt-6.2-sol"]
    assert not any(m["hidden"] for m in shown)
    assert len(client.call("model/list", {"includeHidden": True})["data"]) == len(shown) + 1
    first = client.call("model/list", {"limit": 2})
    rest = client.call("model/list", {"cursor": first["nextCursor"]})
    assert first["data"] + rest["data"] == shown
    assert client.call("model/list", {"cursor": "zzz"})["message"] == "invalid cursor: zzz"
    client = fake({"models": ["first", {"id": "m", "supportedReasoningEfforts": ["low", "max"]}]})
    client.initialize()
    efforts = client.call("model/list")["data"][1]["supportedReasoningEfforts"]
    assert [e["reasoningEffort"] for e in efforts] == ["low", "max"]


@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        ({"turns": [[{"massage": 1}]]}, r"turns\[0\]\[0\]: unknown step"),
        ([{"msg": ["a", None], "colour": 1}], r"turn\[0\] msg: unknown key 'colour'"),
        ({"turn": [{"repeat": {"times": 1, "steps": [{"wait": {"hours": 1}}]}}]}, "unknown key 'hours'"),
        ({"modles": []}, "scenario: unknown key 'modles'"),
        ([{"done": "finished"}], "status is one of"),
        ({"on_eof": "maybe"}, "on_eof"),
    ],
)
def test_a_wrong_scenario_is_refused_by_name(scenario: Any, said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        Scenario(scenario)


def run_module(*argv: str, **env: str) -> subprocess.CompletedProcess[bytes]:
    root = str(Path(__file__).parent.parent)
    command = [sys.executable, "-m", "fake_app_server", *argv]
    given = {"PATH": os.environ["PATH"], "PYTHONPATH": root, **env}
    return subprocess.run(command, env=given, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S)


def test_the_module_takes_a_file_or_the_environment_and_refuses_a_bad_one(tmp_path: Path) -> None:
    file = tmp_path / "scenario.json"
    file.write_text('{"version": "0.99.0"}')
    assert run_module(str(file), "--version").stdout == b"codex-cli 0.99.0\n"
    assert run_module("--version", FAKE_APP_SERVER_SCENARIO=str(file)).stdout == b"codex-cli 0.99.0\n"
    assert run_module("--version", FAKE_APP_SERVER_SCENARIO='{"version": "0.98.0"}').stdout == b"codex-cli 0.98.0\n"
    assert run_module("--version").stdout == b"codex-cli 0.171.0\n"
    bad = run_module(FAKE_APP_SERVER_SCENARIO='[{"nonsense": 1}]')
    assert (bad.returncode, b"unknown step" in bad.stderr) == (64, True)
    absent = run_module(CODEX_HOME=str(tmp_path / "absent"))
    assert (absent.returncode, b"but that path does not exist" in absent.stderr) == (1, True)


def test_the_demo_says_plainly_that_no_model_was_asked(fake: Fake) -> None:
    client = fake(demo_scenario())
    client.turn(client.open())
    text = client.notice("turn/completed")["turn"]["items"][0]["text"]
    assert "no model was asked" in text
    assert not text.isascii()
    assert text.count("\n") > 3
    kinds = [i["item"]["type"] for i in client.said("item/completed")]
    assert kinds == ["userMessage", "agentMessage", "commandExecution", "commandExecution", "agentMessage"]


@pytest.mark.parametrize("name", ["happy_turn", "start_sequence_write", "approval_asked_declined"])
def test_a_recording_is_played_with_the_clients_ids_and_a_true_opening(fake: Fake, name: str) -> None:
    recording = TRANSCRIPTS / f"{name}.jsonl"
    client = fake({"replay": str(recording)})
    client.initialize()
    client.call("model/list")
    client.ask("config/read")
    opened = client.call("thread/start", {"cwd": "/w", "approvalPolicy": "never", "config": profile({})})
    assert (opened["cwd"], opened["activePermissionProfile"]["id"]) == ("/w", "p")
    client.ask("turn/start", {"threadId": opened["thread"]["id"], "input": INPUT})
    if "approval" in name:
        client.until(lambda m: "id" in m and "method" in m)
        client.write({"id": 0, "result": {"decision": "decline"}})
    client.notice("turn/completed")
    entries = [json.loads(line) for line in recording.read_text().splitlines()]
    expected = [e["msg"] for e in entries if e["dir"] == "in" and e["msg"].get("method") == "item/completed"]
    assert [m for m in client.received if m.get("method") == "item/completed"] == expected
