"""Jobs that are left alone and found again: --background, status, wait, result, events, and owners that died.

Serves rule.background, rule.ownerGone, rule.recordsByRename. The fake is the codex; every command is a process.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from turns import ANSWER, PATIENCE_S, SILENCE, START, User, alive, ended, wait_for

FROM_CWD = {"item": {"type": "agentMessage", "text": "from $cwd", "phase": "final_answer"}}


def until(file: Path) -> dict[str, Any]:
    return {"wait": {"file": str(file)}}


def background(user: User, *words: str) -> str:
    ran = user.run("run", "--background", *words, "--", "do it")
    assert ran.code == 0, ran.err
    job = ran.out.decode().strip()
    assert job.startswith("j")
    return job


def status(user: User, job: str) -> dict[str, Any]:
    ran = user.run("status", "--json", job)
    assert ran.code == 0, ran.err
    found: dict[str, Any] = json.loads(ran.out)
    return found


def kill_owner(user: User, job: str) -> None:
    pid = status(user, job)["pid"]
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not alive(pid))
    wait_for(lambda: not (user.state / "jobs" / job / "processes.json").exists())


# --- background -----------------------------------------------------------------------------------------------


@pytest.mark.rule("rule.background")
def test_a_background_job_goes_on_when_its_caller_is_gone_and_wait_has_its_exit_code(user: User) -> None:
    go = user.root / "go"
    user.plays([*START, until(go), {"msg": ["ANSWER", "final_answer"]}, {"done": "completed"}])
    job = background(user, "--label", "mine")
    assert status(user, job)["state"] == "running"
    ran = user.run("result", job)
    assert (ran.code, ran.out) == (10, b"")
    go.touch()
    assert user.run("wait", job).code == 0
    assert user.run("result", job).out == b"ANSWER"
    told = status(user, job)
    assert (told["state"], told["status"], told["label"]) == ("ended", "completed", "mine")


@pytest.mark.rule("rule.background")
def test_a_background_job_holds_nothing_of_its_caller_and_is_in_a_session_of_its_own(user: User) -> None:
    go = user.root / "go"
    user.plays([*START, until(go), *ANSWER[1:]])
    ours, theirs = os.pipe()
    try:
        argv = ("run", "--background", "--", "do it")
        with ended(user.start(*argv, pass_fds=(theirs,))) as process:
            out, _ = process.communicate(timeout=PATIENCE_S)
    finally:
        os.close(theirs)
    job = out.decode().strip()
    assert os.read(ours, 1) == b""  # the last writer is gone although the job runs
    os.close(ours)
    pid = status(user, job)["pid"]
    assert os.getsid(pid) == pid != process.pid
    assert {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in (1, 2)} == {f"{user.state}/jobs/{job}/sidecar.log"}
    go.touch()
    assert user.run("wait", job).code == 0


@pytest.mark.rule("rule.background")
@pytest.mark.parametrize(
    ("words", "reason"),
    [(("--model", "nope"), "unknown_model"), (("--mode", "nope"), "bad_request")],
    ids=["by codex", "before anything"],
)
def test_a_refusal_of_a_background_job_is_said_at_once(user: User, words: tuple[str, ...], reason: str) -> None:
    ran = user.run("run", "--background", "--json", *words, "--", "do it")
    ran.ended_as("refused", reason, 2)
    assert "nope" in ran.err


@pytest.mark.rule("rule.background")
def test_a_background_job_that_waits_for_a_slot_is_known_as_queued_at_once(user: User) -> None:
    go = user.root / "go"
    user.env["CC_AGENTS_CAPS"] = "codex=1"
    user.plays([*START, until(go), *ANSWER[1:]])
    first, second = background(user), background(user)
    assert status(user, second)["state"] == "queued"
    shown = user.run("slots").out.decode()
    assert "1 of 1 taken" in shown
    assert f"waiting: {second}" in shown
    assert first in shown
    go.touch()
    assert user.run("wait", first, second).code == 0
    assert "0 of 1 taken" in user.run("slots").out.decode()


@pytest.mark.rule("rule.background")
@pytest.mark.parametrize(("signum", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)])
def test_a_signal_ends_a_background_job_as_it_ends_one_in_the_foreground(
    user: User, signum: signal.Signals, code: int
) -> None:
    user.plays(SILENCE)
    job = background(user)
    os.kill(status(user, job)["pid"], signum)
    assert user.run("wait", job).code == code
    told = status(user, job)["outcome"]
    assert (told["status"], told["confirmed"], told["exit_code"]) == ("interrupted", True, code)


# --- wait and events ------------------------------------------------------------------------------------------


@pytest.mark.rule("rule.background")
def test_wait_for_several_has_the_first_exit_code_that_is_not_zero_and_can_be_bounded(user: User) -> None:
    go = user.root / "go"
    user.plays(ANSWER)
    good = background(user)
    user.plays([*START, until(go), {"err": ["usageLimitExceeded", False]}, {"done": "failed"}])
    bad = background(user)
    assert user.run("wait", good).code == 0
    ran = user.run("wait", "--timeout", "0.2s", good, bad)
    assert ran.code == 10
    go.touch()
    ran = user.run("wait", "--json", good, bad)
    assert ran.code == 4
    assert [json.loads(line)["job"] for line in ran.out.splitlines()] == [good, bad]


@pytest.mark.rule("rule.background")
def test_events_are_the_journal_and_follow_goes_on_to_the_outcome(user: User) -> None:
    go = user.root / "go"
    user.plays([*START, {"msg": ["first", "commentary"]}, until(go), *ANSWER[1:]])
    job = background(user)
    with ended(user.start("events", "--follow", job)) as following:
        assert following.stdout is not None
        seen = [json.loads(following.stdout.readline())]
        while seen[-1].get("text") != "first":
            seen.append(json.loads(following.stdout.readline()))
        go.touch()
        seen += map(json.loads, following.stdout.read().splitlines())
    assert (seen[-1]["event"], seen[-1]["outcome"]["final_text"]) == ("outcome", "ANSWER")
    again = [json.loads(line) for line in user.run("events", job).out.splitlines()]
    assert again == seen
    assert {"begun", "item", "text_delta"} <= {e["event"] for e in seen}


# --- owners that died -----------------------------------------------------------------------------------------


@pytest.mark.rule("rule.ownerGone")
def test_the_answer_of_a_job_whose_sidecar_was_killed_comes_from_the_thread(user: User) -> None:
    said = [*START, {"msg": ["héllo 漢字\n", "final_answer"]}, {"usage": [{"inputTokens": 7}, None]}]
    silent = {"store": str(user.root / "threads"), "turn": [*said, {"done": "completed", "silent": True}, {"stall": 1}]}
    user.plays(silent)
    job = background(user)
    wait_for(lambda: any(e.get("event") == "usage" for e in _events(user, job)))
    kill_owner(user, job)
    told = status(user, job)
    assert (told["state"], bool(told["thread"])) == ("died", True)
    assert "gone" in told["reason"]
    shown = user.run("status", job).out.decode()
    assert "died" in shown
    assert told["thread"] in shown
    assert user.run("wait", job).code == 1
    ran = user.run("result", job)
    assert (ran.code, ran.out) == (0, "héllo 漢字\n".encode())
    outcome = json.loads(user.run("result", "--json", job).out)
    assert (outcome["status"], outcome["usage"]["input_tokens"]) == ("completed", 7)
    assert "thread/resume" not in user.methods()
    assert len(user.asked("turn/start")) == 1


@pytest.mark.rule("rule.ownerGone")
def test_of_a_killed_job_without_an_answer_only_the_partial_text_is_told(user: User) -> None:
    user.plays(
        {"store": str(user.root / "threads"), "turn": [*START, {"msg": ["half", None], "open": True}, {"stall": 1}]}
    )
    job = background(user)
    wait_for(lambda: any(e.get("event") == "text_delta" for e in _events(user, job)) or None)
    kill_owner(user, job)
    ran = user.run("result", job)
    assert (ran.code, ran.out) == (1, b"")
    ran = user.run("result", "--partial", job)
    assert (ran.code, ran.out) == (1, b"half")
    outcome = json.loads(user.run("result", "--json", job).out)
    assert (outcome["status"], outcome["error"]["reason"]) == ("failed", "sidecar_died")


@pytest.mark.rule("rule.ownerGone")
def test_a_thread_that_cannot_be_read_any_more_is_a_warning_and_no_answer(user: User) -> None:
    user.plays(SILENCE)
    job = background(user)
    kill_owner(user, job)
    user.codex_is("exit 3")
    ran = user.run("result", job)
    assert (ran.code, ran.out) == (1, b"")
    assert "could not be read" in ran.err
    assert "code 3" in ran.err


@pytest.mark.rule("rule.background")
def test_a_table_of_jobs_says_what_each_is_about(user: User) -> None:
    user.plays(ANSWER)
    for words in (["--label", "mine", "--", "x"], ["--", "Why does\n\x1b[2J this " + "fail " * 20]):
        assert user.run("run", *words).code == 0
    user.run("review", "--base", "main")
    shown = user.run("status").out.decode()
    reviewed, asked, labelled = [line.split(maxsplit=5)[5] for line in shown.splitlines()[1:]]
    assert labelled == "mine"
    assert asked.startswith("Why does  [2J this fail fail")
    assert asked.endswith("…")
    assert reviewed == "review against main"
    assert "\x1b" not in shown


@pytest.mark.rule("rule.recordsByRename")
def test_a_torn_record_is_named_and_hides_no_other(user: User) -> None:
    user.plays(ANSWER)
    jobs = [user.run("run", "--json", "--", "x").outcome["job"] for _ in range(3)]
    record = user.state / "jobs" / jobs[1] / "record.json"
    record.write_bytes(cut := record.read_bytes()[:40])
    ran = user.run("status")
    assert ran.code == 0
    assert all(job in ran.out.decode() for job in jobs)
    assert jobs[1] in ran.err
    assert "damaged" in ran.err
    assert user.run("result", jobs[1]).code == 2
    assert user.run("result", jobs[2]).out == b"ANSWER"
    assert record.read_bytes() == cut


@pytest.mark.rule("rule.recordsByRename")
def test_twenty_jobs_from_twenty_directories_are_all_found_from_anywhere(user: User) -> None:
    user.env["CC_AGENTS_CAPS"] = "codex=4"
    user.plays({"turn": [*START, FROM_CWD, {"done": "completed"}]})
    running: dict[str, subprocess.Popen[bytes]] = {}
    for n in range(20):
        folder = user.root / f"dir {n}"
        folder.mkdir()
        running[str(folder)] = user.start("run", "--background", "--", "x", cwd=folder)
    jobs = {}
    for folder, process in running.items():
        with ended(process):
            out, err = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, err
        jobs[out.decode().strip()] = folder
    assert user.run("wait", *jobs, cwd="/").code == 0
    listed = {j["job"]: j for j in json.loads(user.run("status", "--all", "--json", cwd="/").out)}
    assert {job: listed[job]["cwd"] for job in jobs} == jobs
    for job in jobs:
        final = (user.state / "jobs" / job / "final.txt").read_text()
        assert final == f"from {jobs[job]}"


def _events(user: User, job: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in user.run("events", job).out.splitlines()]
