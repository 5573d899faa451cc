"""Running turns reached from another process: steer and interrupt, and who may.

Serves rule.steer, rule.threadResumes, rule.interruptConfirmed, rule.controlFromATurn.
"""

from __future__ import annotations

import json
import stat
import sys
from typing import Any

import pytest
from test_jobs import background, status, until
from turns import ANSWER, PATIENCE_S, ROOT, SILENCE, START, User, alive, ended, pids_in, wait_for


def text_of(params: dict[str, Any]) -> str:
    text: str = params["input"][0]["text"]
    return text


# --- steer ----------------------------------------------------------------------------------------------------


@pytest.mark.rule("rule.steer")
def test_a_steer_ends_when_codex_has_taken_it_and_is_in_the_events(user: User) -> None:
    go = user.root / "go"
    user.plays([*START, until(go), *ANSWER[1:]])
    job = background(user)
    text = "  use tabs, 漢字\n"
    ran = user.run("steer", job, text)
    assert (ran.code, ran.out) == (0, b""), ran.err
    (steered,) = user.asked("turn/steer")
    assert (text_of(steered), steered["expectedTurnId"]) == (text, status(user, job)["turn"])
    go.touch()
    assert user.run("wait", job).code == 0
    events = map(json.loads, user.run("events", job).out.splitlines())
    assert [e["text"] for e in events if e.get("state") == "steered"] == [text]


@pytest.mark.rule("rule.steer")
def test_a_steer_after_the_end_is_refused_and_hands_the_text_back(user: User) -> None:
    user.plays(ANSWER)
    job = user.run("run", "--json", "--", "x").outcome["job"]
    ran = user.run("steer", job, "-", stdin=b" late \n")
    assert (ran.code, ran.out) == (2, b" late \n")
    assert "no running turn" in ran.err
    assert user.asked("turn/steer") == []


@pytest.mark.rule("rule.threadResumes")
def test_a_steer_before_the_start_waits_for_it_and_then_names_the_running_turn(user: User) -> None:
    go = user.root / "go"
    user.plays([{"start": "reply"}, until(go), {"start": "started"}, {"wait": 0.2}, *ANSWER[1:]])
    with ended(user.start("run", "--json", "--", "x")) as turn:
        wait_for(lambda: user.asked("turn/start"))
        (folder,) = user.jobs()
        with ended(user.start("steer", folder.name, "use tabs")) as steering:
            wait_for(lambda: _heard(user, folder.name))
            assert user.asked("turn/steer") == []
            go.touch()
            assert steering.wait(PATIENCE_S) == 0
        user.finish(turn)
    methods = user.methods()
    assert methods.index("turn/steer") > methods.index("turn/start")
    assert text_of(user.asked("turn/steer")[0]) == "use tabs"


@pytest.mark.rule("rule.steer")
def test_a_steer_that_codex_refuses_comes_back_with_its_reason(user: User) -> None:
    go = user.root / "go"
    why = "expected active turn id `x` but found `y`"
    user.plays(
        {"turn": [*START, until(go), *ANSWER[1:]], "replies": {"turn/steer": {"error": {"code": -1, "message": why}}}}
    )
    job = background(user)
    ran = user.run("steer", job, "x")
    assert (ran.code, ran.out) == (2, b"x")
    assert why in ran.err
    go.touch()
    assert user.run("wait", job).code == 0


@pytest.mark.rule("rule.steer")
def test_a_steer_that_waits_when_the_turn_ends_is_answered_and_never_sent(user: User) -> None:
    go = user.root / "go"
    user.plays([{"start": "reply"}, until(go), {"err": ["serverOverloaded", False]}, {"done": "failed"}])
    with ended(user.start("run", "--json", "--", "x")) as turn:
        wait_for(lambda: user.asked("turn/start"))
        (folder,) = user.jobs()
        with ended(user.start("steer", folder.name, "use tabs")) as steering:
            wait_for(lambda: _heard(user, folder.name))
            go.touch()
            out, err = steering.communicate(timeout=PATIENCE_S)
        user.finish(turn)
    assert (steering.returncode, out) == (2, b"use tabs")
    assert b"ended" in err
    assert user.asked("turn/steer") == []


def _heard(user: User, job: str) -> bool:
    """Whether a question to that job's sidecar is open: a second connection beside the listening socket."""
    with open("/proc/net/unix", encoding="ascii") as table:
        return sum(line.rstrip().endswith(f"{job}.sock") for line in table) >= 2


@pytest.mark.rule("rule.steer")
def test_the_socket_is_private_and_works_below_a_folder_with_a_very_long_name(user: User) -> None:
    long = user.root / ("r" * 120)
    long.mkdir(mode=0o700)
    user.env["XDG_RUNTIME_DIR"] = str(long)
    go = user.root / "go"
    user.plays([*START, until(go), *ANSWER[1:]])
    job = background(user)
    socket = long / "cc-agents" / "control" / f"{job}.sock"
    assert stat.S_IMODE(socket.lstat().st_mode) == 0o600
    assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700
    assert user.run("steer", job, "x").code == 0
    go.touch()
    assert user.run("wait", job).code == 0
    assert not socket.exists()


ASK = """
import json, os, sys
from sidecar import control_socket
answer = control_socket.ask(sys.argv[1], sys.argv[2], {"do": "steer", "text": "rm"}, 30)
open(sys.argv[3], "w").write(json.dumps(answer))
"""


@pytest.mark.rule("rule.controlFromATurn")
def test_a_process_below_a_guard_may_steer_nothing_also_with_a_clean_environment(user: User) -> None:
    go, told = user.root / "go", user.root / "told"
    user.plays([*START, until(go), *ANSWER[1:]])
    job = background(user)
    runtime = user.root / "run" / "cc-agents"
    ask = f"cd {ROOT} && exec env -i {sys.executable} -c '{ASK}' {runtime} {job} {told}"
    user.codex_is(f"{ask}")
    ran = user.run("run", "--json", "--", "x")
    assert told.exists(), ran.err
    assert json.loads(told.read_text())["ok"] is False
    assert "turn may not" in told.read_text()
    assert user.asked("turn/steer") == []
    go.touch()
    assert user.run("wait", job).code == 0


# --- interrupt ------------------------------------------------------------------------------------------------


@pytest.mark.rule("rule.interruptConfirmed")
def test_interrupt_ends_the_other_process_with_130_and_says_that_codex_confirmed(user: User) -> None:
    with user.running(SILENCE) as turn:
        (folder,) = wait_for(user.jobs)
        wait_for(lambda: status(user, folder.name)["turn"])
        ran = user.run("interrupt", folder.name)
        assert ran.code == 0
        assert "confirmed by Codex" in ran.err
        user.finish(turn).ended_as("interrupted", "interrupted", 130)
    assert user.run("interrupt", folder.name).code == 2


@pytest.mark.rule("rule.interruptConfirmed")
def test_interrupt_says_so_when_codex_did_not_confirm_and_returns_when_all_is_dead(user: User) -> None:
    pids = user.root / "pids"
    scenario = {
        "turn": [*START, {"spawn": {"shape": "setsid", "pid_file": str(pids)}}, {"stall": True}],
        "replies": {"turn/interrupt": {}},
    }
    user.plays(scenario)
    job = background(user, "--grace", "0.3s")
    (sleep,) = wait_for(lambda: pids_in(pids))
    ran = user.run("interrupt", "--json", job)
    assert not alive(sleep)
    told = json.loads(ran.out)
    assert (ran.code, told["status"], told["confirmed"]) == (0, "interrupted", False)
    assert told["processes_ended"] >= 1
    assert "not confirmed" in ran.err
    assert status(user, job)["outcome"]["confirmed"] is False


@pytest.mark.rule("rule.interruptConfirmed")
def test_a_job_that_waits_for_a_slot_can_be_interrupted(user: User) -> None:
    user.env["CC_AGENTS_CAPS"] = "codex=1"
    user.plays(SILENCE)
    first, second = background(user), background(user)
    assert user.run("interrupt", second).code == 0
    assert status(user, second)["status"] == "interrupted"
    assert user.run("interrupt", first).code == 0
