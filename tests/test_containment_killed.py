"""When the guard is killed or stopped, alone or with the command: who ends the rest, and what is told.

Also the way of macOS, and the controls which show that these tests can fail. Serves spec:cc-agents.work-containment
(rule.guardKilled, rule.secondSubreaper, rule.markOfLimits, rule.stoppedGuard, rule.polling).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from serve_client import serve
from turns import ANSWER, alive, pids_in
from whole import (
    GONE_S,
    KILL,
    PATIENCE_S,
    SHAPES,
    STOP,
    TESTS,
    Death,
    WholeUser,
    app_server_stopped,
    both_killed,
    by_signal,
    die,
    guard_killed,
    guard_stopped,
    kill,
    reaped,
    wait_for,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

STALL = {"stall": True}


# --- the guard is killed --------------------------------------------------------------------------------------


@pytest.mark.rule("rule.guardKilled")
@pytest.mark.rule("rule.secondSubreaper")
def test_when_the_guard_is_killed_the_sidecar_ends_all_and_says_what_happened(whole_user: WholeUser) -> None:
    with whole_user.running({"turn": [*whole_user.leaves(*SHAPES), STALL]}) as cli:
        whole_user.wait_for_shapes(*SHAPES)
        guard_killed(whole_user, cli)
        ran = whole_user.finish(cli)
    whole_user.nothing_is_left()
    ran.ended_as("failed", "app_server_exited", 9)
    assert "guard" in ran.error["message"]
    assert "SIGKILL" in ran.error["message"]
    assert (ran.outcome["partial_text"], ran.outcome["confirmed"]) == ("half", False)
    assert ran.outcome["processes_ended"] >= 4  # the kernel hangs up on a stopped group when its leader is gone


@pytest.mark.rule("rule.secondSubreaper")
def test_a_process_that_hid_just_before_the_guard_was_killed_is_ended_all_the_same(whole_user: WholeUser) -> None:
    """Born after the last look of the guard: it is in no record, has no marker and no parent."""
    whole_user.entry = (str(TESTS / "cli_entry.py"), "without_record")
    with whole_user.running({"turn": [*whole_user.leaves("clean_env", "double_fork"), STALL]}) as cli:
        whole_user.wait_for_shapes("clean_env", "double_fork")
        guard_killed(whole_user, cli)
        ran = whole_user.finish(cli)
    assert whole_user.survivors() == []
    ran.ended_as("failed", "app_server_exited", 9)
    assert ran.outcome["processes_ended"] >= 2


@pytest.mark.rule("rule.secondSubreaper")
def test_in_serve_a_killed_guard_ends_its_own_turn_and_no_other(whole_user: WholeUser) -> None:
    go = whole_user.root / "go"
    whole_user.env["CC_AGENTS_CAPS"] = "codex=2"
    whole_user.plays(
        {"turn": [*whole_user.leaves("clean_env", "double_fork"), {"wait": {"file": str(go)}}, *ANSWER[1:]]}
    )
    with serve(whole_user) as client:
        first = client.run(prompt="x")
        client.until(lambda: half(client.events(first)))
        left = [pid for shape in ("clean_env", "double_fork") for pid in pids_in(whole_user.pid_file(shape))]
        second = client.run(prompt="x")
        client.until(lambda: half(client.events(second)))
        folder = next(path for path in whole_user.jobs() if path.name == first)
        kill(json.loads((folder / "processes.json").read_bytes())["guard"]["pid"])
        outcome = client.outcome(first)
        assert (outcome["status"], outcome["error"]["reason"]) == ("failed", "app_server_exited")
        assert not any(map(alive, left))
        others = {pid for shape in ("clean_env", "double_fork") for pid in pids_in(whole_user.pid_file(shape))} - set(
            left
        )
        assert len(others) == 2
        assert all(map(alive, others))
        go.touch()
        assert client.outcome(second)["final_text"] == "ANSWER"
        assert not any(map(alive, others))
        assert client.hang_up() == 0
    whole_user.nothing_is_left()


def half(events: list[dict[str, Any]]) -> bool:
    return any(e["event"] == "item" and e.get("text") == "half" for e in events)


@pytest.mark.rule("rule.guardKilled")
@pytest.mark.rule("rule.markOfLimits")
def test_when_both_are_killed_at_once_reap_ends_the_rest_and_no_one_else(whole_user: WholeUser) -> None:
    stranger = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True)
    try:
        die(whole_user, [*whole_user.leaves(*SHAPES), STALL], SHAPES, both_killed)
        assert len(whole_user.survivors()) >= 3
        reuse(whole_user, stranger.pid)
        (told,) = json.loads(whole_user.run("reap", "--json").out)
        assert (told["turn"], told["problem"]) == (whole_user.jobs()[-1].name, None)
        assert told["ended"] >= 3
        assert stranger.poll() is None
    finally:
        stranger.communicate(timeout=PATIENCE_S)
    whole_user.nothing_is_left()
    assert whole_user.status()["state"] == "died"


def reuse(whole_user: WholeUser, pid: int) -> None:
    """The record names that pid too, as if the number had been given again."""
    path = whole_user.jobs()[-1] / "processes.json"
    record = json.loads(path.read_bytes())
    record["groups"].append({"pid": pid, "pgid": pid, "sid": pid, "start_time": 1})
    path.write_text(json.dumps(record))


@pytest.mark.rule("rule.guardKilled")
def test_when_both_are_killed_at_once_the_next_turn_ends_the_rest(whole_user: WholeUser) -> None:
    die(whole_user, [*whole_user.leaves(*SHAPES), STALL], SHAPES, both_killed)
    whole_user.turn(ANSWER).completed()
    whole_user.nothing_is_left()


@pytest.mark.rule("rule.guardKilled")
def test_when_both_are_killed_at_once_the_next_batch_ends_the_rest(whole_user: WholeUser, tmp_path: Path) -> None:
    die(whole_user, [*whole_user.leaves(*SHAPES), STALL], SHAPES, both_killed)
    whole_user.plays(ANSWER)
    requests = tmp_path / "requests.jsonl"
    requests.write_text(json.dumps({"prompt": "do it"}) + "\n")
    assert whole_user.run("batch", str(requests)).code == 0
    whole_user.nothing_is_left()


# --- stopped --------------------------------------------------------------------------------------------------


@pytest.mark.rule("rule.stoppedGuard")
@pytest.mark.parametrize("death", [guard_stopped, app_server_stopped])
def test_a_guard_or_a_codex_that_was_stopped_holds_up_no_end(whole_user: WholeUser, death: Death) -> None:
    cli = die(whole_user, [*whole_user.leaves(*SHAPES), STALL], SHAPES, death, "--grace", "0.3s")
    whole_user.nothing_is_left()
    assert cli.returncode == 143
    told = whole_user.status()
    assert (told["status"], told["outcome"]["partial_text"]) == ("interrupted", "half")


@pytest.mark.rule("rule.stoppedGuard")
def test_a_stopped_guard_of_a_killed_command_goes_on_when_reap_finds_it(whole_user: WholeUser) -> None:
    def death(whole_user: WholeUser, cli: subprocess.Popen[bytes]) -> None:
        kill(whole_user.guard(), signum=STOP)
        kill(cli.pid)

    die(whole_user, [*whole_user.leaves(*SHAPES), STALL], SHAPES, death)
    assert len(whole_user.survivors()) >= len(SHAPES)
    assert whole_user.slots_taken() != []
    reaped(whole_user)
    whole_user.nothing_is_left()


# --- the ways without a subreaper -----------------------------------------------------------------------------

FOLLOWED = ("group", "setsid", "nohup", "ignore_term", "stopped")


@pytest.mark.rule("rule.polling")
@pytest.mark.parametrize("signum", [signal.SIGTERM, KILL], ids=lambda s: s.name)
def test_the_way_of_macos_ends_what_its_looks_have_seen(whole_user: WholeUser, signum: signal.Signals) -> None:
    whole_user.entry = (str(TESTS / "cli_entry.py"), "as_macos")
    with whole_user.running({"turn": [*whole_user.leaves(*FOLLOWED), STALL]}) as cli:
        whole_user.wait_for_shapes(*FOLLOWED)
        wait_for(lambda: seen(whole_user))
        cli.send_signal(signum)
        cli.communicate(timeout=PATIENCE_S)
        assert cli.returncode == (143 if signum != KILL else -KILL)
    wait_for(lambda: not whole_user.survivors() and not whole_user.slots_taken(), GONE_S)


@pytest.mark.rule("rule.polling")
def test_the_way_of_macos_ends_by_record_and_marker_what_a_killed_guard_leaves(whole_user: WholeUser) -> None:
    whole_user.entry = (str(TESTS / "cli_entry.py"), "as_macos")
    with whole_user.running({"turn": [*whole_user.leaves(*FOLLOWED, "double_fork"), STALL]}) as cli:
        whole_user.wait_for_shapes(*FOLLOWED, "double_fork")
        guard_killed(whole_user, cli)
        ran = whole_user.finish(cli)
    assert whole_user.survivors() == []
    ran.ended_as("failed", "app_server_exited", 9)
    assert "guard" in ran.error["message"]


def seen(whole_user: WholeUser) -> bool:
    groups = (whole_user.record() or {"groups": []})["groups"]
    return {os.getpgid(pid) for s in FOLLOWED for pid in pids_in(whole_user.pid_file(s))} <= {g["pgid"] for g in groups}


@pytest.mark.rule("rule.untilNoChildren")
def test_the_control_without_a_subreaper_leaves_survivors(whole_user: WholeUser) -> None:
    whole_user.entry = (str(TESTS / "cli_entry.py"), "without_subreaper")
    die(whole_user, [*whole_user.leaves("clean_env"), STALL], ("clean_env",), by_signal(KILL))
    (pid,) = pids_in(whole_user.pid_file("clean_env"))
    wait_for(lambda: not whole_user.slots_taken())
    assert alive(pid)
    kill(pid)


@pytest.mark.rule("rule.guardKilled")
def test_the_control_without_record_and_marks_leaves_survivors(whole_user: WholeUser) -> None:
    die(whole_user, [*whole_user.leaves("setsid"), STALL], ("setsid",), both_killed)
    (pid,) = pids_in(whole_user.pid_file("setsid"))
    whole_user.entry = (str(TESTS / "cli_entry.py"), "without_record")
    reaped(whole_user)
    assert alive(pid)
    kill(pid)
