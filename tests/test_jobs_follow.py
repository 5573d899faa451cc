"""Threads that are gone on with, what dead turns leave, jobs that are too old, starts that collide.

Serves rule.followUp, rule.threadResumes, rule.guardKilled, rule.pruned, rule.startsCollide.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from test_jobs import background, status, until
from test_jobs_control import text_of
from turns import ANSWER, PATIENCE_S, SILENCE, START, User, alive, ended, pids_in, wait_for

THREADS = [f"0199aaaa-0000-7000-8000-00000000000{n}" for n in range(3)]


# --- follow-up ------------------------------------------------------------------------------------------------


@pytest.mark.rule("rule.followUp")
@pytest.mark.rule("rule.threadResumes")
def test_any_job_can_be_followed_up_in_the_mode_it_had(user: User) -> None:
    extra = user.root / "extra"
    extra.mkdir()
    store = {"store": str(user.root / "threads")}
    jobs = []
    for n, thread in enumerate(THREADS):
        user.plays({**store, "thread_id": thread, "turn": ANSWER})
        mode = ("--mode", "write", "--add-dir", str(extra)) if n == 0 else ()
        jobs.append(user.run("run", "--json", *mode, "--", "x").completed().outcome["job"])
    user.plays({**store, "turn": ANSWER})
    ran = user.run("follow-up", "--json", jobs[0], " go on\n", cwd=user.root).completed()
    assert ran.outcome["thread"] == THREADS[0]
    assert ran.outcome["effective"]["mode"] == "write"
    assert str(extra) in ran.outcome["effective"]["writable_roots"]
    assert ran.outcome["effective"]["cwd"] == str(user.work)
    assert ran.outcome["effective"]["model"]["source"] == f"job {jobs[0]}"
    (resumed,) = user.asked("thread/resume")
    assert (resumed["threadId"], resumed["cwd"]) == (THREADS[0], str(user.work))
    assert text_of(user.asked("turn/start")[-1]) == " go on\n"
    told = user.run("follow-up", "--json", "--mode", "read-only", jobs[0], "x").completed().outcome
    assert (told["effective"]["mode"], told["effective"]["writable_roots"]) == ("read-only", [])
    last = user.run("follow-up", "--json", "--last", "x").completed().outcome
    assert last["thread"] == THREADS[0]  # the newest job here is the follow-up itself
    by_thread = user.run("run", "--json", "--resume", THREADS[1], "--", "x").completed().outcome
    assert by_thread["thread"] == THREADS[1]
    by_job = user.run("run", "--json", "--resume", jobs[2], "--", "x").completed().outcome
    assert by_job["thread"] == THREADS[2]


@pytest.mark.rule("rule.yoloStated")
def test_a_follow_up_of_a_yolo_job_has_to_state_yolo_again(user: User) -> None:
    user.plays({"store": str(user.root / "threads"), "turn": ANSWER})
    job = user.run("run", "--json", "--mode", "yolo", "--", "x").completed().outcome["job"]
    ran = user.run("follow-up", "--json", job, "more")
    ran.ended_as("refused", "bad_request", 2)
    assert "--mode yolo" in ran.err
    assert user.asked("thread/resume") == []
    again = user.run("follow-up", "--json", "--mode", "yolo", job, "more").completed()
    assert again.outcome["effective"]["sandbox"]["type"] == "dangerFullAccess"
    in_header = user.run("follow-up", "--json", job, "---\nmode: read-only\n---\nmore").completed()
    assert in_header.outcome["effective"]["mode"] == "read-only"


@pytest.mark.rule("rule.followUp")
def test_a_thread_in_use_is_refused_with_the_job_that_has_it_also_one_that_is_new(user: User) -> None:
    go = user.root / "go"
    store = {"store": str(user.root / "threads")}
    user.plays({**store, "turns": [[*START, until(go), *ANSWER[1:]]]})
    job = background(user)
    ran = user.run("follow-up", "--json", job, "more")
    ran.ended_as("refused", "thread_busy", 2)
    assert f"job {job}" in ran.err
    before = len(user.jobs())
    assert before == 1
    go.touch()
    assert user.run("wait", job).code == 0
    user.run("follow-up", "--json", job, "more").completed()


@pytest.mark.rule("rule.followUp")
def test_after_a_kill_the_next_turn_on_the_thread_starts_when_the_old_one_is_gone(user: User) -> None:
    pids = user.root / "pids"
    store = {"store": str(user.root / "threads")}
    spawn = {"spawn": {"shape": "ignore_term", "pid_file": str(pids)}}
    user.plays({**store, "turn": [*START, spawn, {"stall": True}]})
    job = background(user)
    (sleep,) = wait_for(lambda: pids_in(pids))
    user.plays({**store, "turn": ANSWER})
    os.kill(status(user, job)["pid"], signal.SIGKILL)
    with ended(user.start("follow-up", "--json", job, "more")) as following:
        ran = user.finish(following)
    ran.completed()
    assert not alive(sleep)
    starts = [s["pid"] for s in user.logged("start")]
    assert len(starts) == 2
    assert ran.outcome["thread"] == status(user, job)["thread"]


@pytest.mark.rule("rule.followUp")
@pytest.mark.parametrize("thread", ["0199aaaa-0000-7000-8000-0000000000ff", "no-uuid", "ü/../x"])
def test_a_thread_that_codex_does_not_know_is_an_error_and_never_a_new_thread(user: User, thread: str) -> None:
    user.plays({"store": str(user.root / "threads"), "turn": ANSWER})
    ran = user.run("run", "--json", "--resume", thread, "--", "x")
    ran.ended_as("refused", "thread_unknown", 2)
    assert "thread/start" not in user.methods()
    assert "turn/start" not in user.methods()


@pytest.mark.rule("rule.followUp")
def test_a_job_without_a_thread_and_a_folder_without_a_job_cannot_be_followed(user: User) -> None:
    user.run("follow-up", "--json", "--last", "x").ended_as("refused", "thread_unknown", 2)
    user.run("follow-up", "--json", "j000", "x").ended_as("refused", "job_unknown", 2)
    user.run("follow-up", "--json").ended_as("refused", "bad_request", 2)
    user.plays(ANSWER)
    refused = user.run("run", "--json", "--model", "nope", "--", "x").ended_as("refused", "unknown_model", 2)
    ran = user.run("follow-up", "--json", refused.outcome["job"], "x")
    ran.ended_as("refused", "thread_unknown", 2)


@pytest.mark.rule("rule.threadResumes")
def test_the_usage_of_a_follow_up_is_its_own_and_not_the_total_of_the_thread(user: User) -> None:
    store = {"store": str(user.root / "threads")}
    user.plays({**store, "turn": [*START, {"usage": [{"inputTokens": 1000, "totalTokens": 1000}, None]}, *ANSWER[1:]]})
    job = user.run("run", "--json", "--", "x").completed().outcome["job"]
    user.plays({**store, "turn": [*START, {"usage": [{"inputTokens": 1300, "totalTokens": 1300}, None]}, *ANSWER[1:]]})
    told = user.run("follow-up", "--json", job, "x").completed().outcome
    assert told["usage"]["total_tokens"] == 300


# --- reap -----------------------------------------------------------------------------------------------------


def leave_survivor(user: User) -> tuple[str, int]:
    """A job whose sidecar and guard were both killed, and the process that it left."""
    pids = user.root / "pids"
    user.plays([*START, {"spawn": {"shape": "setsid", "pid_file": str(pids)}}, {"stall": True}])
    job = background(user)
    (sleep,) = wait_for(lambda: pids_in(pids))
    record = wait_for(lambda: _record_with(user, job, sleep))
    os.kill(record["guard"]["pid"], signal.SIGSTOP)
    os.kill(status(user, job)["pid"], signal.SIGKILL)
    os.kill(record["guard"]["pid"], signal.SIGKILL)
    wait_for(lambda: not alive(record["guard"]["pid"]))
    assert alive(sleep)
    return job, sleep


def _record_with(user: User, job: str, pid: int) -> dict[str, Any] | None:
    record: dict[str, Any] = json.loads((user.state / "jobs" / job / "processes.json").read_text())
    return record if any(g["pid"] == pid for g in record["groups"]) else None


@pytest.mark.rule("rule.guardKilled")
def test_reap_ends_what_a_dead_turn_has_left_and_says_how_many(user: User) -> None:
    job, sleep = leave_survivor(user)
    socket = user.root / "run" / "cc-agents" / "control" / f"{job}.sock"
    assert socket.exists()
    ran = user.run("reap")
    assert ran.code == 0
    assert f"{job}: 1 processes ended" in ran.out.decode()
    assert not alive(sleep)
    assert not socket.exists()
    assert "nothing was left" in user.run("reap").out.decode()


@pytest.mark.rule("rule.guardKilled")
def test_the_next_turn_ends_what_a_dead_one_has_left(user: User) -> None:
    _, sleep = leave_survivor(user)
    go = user.root / "go"
    user.plays([*START, until(go), *ANSWER[1:]])
    job = background(user)
    wait_for(lambda: not alive(sleep))
    go.touch()
    assert user.run("wait", job).code == 0


@pytest.mark.rule("rule.guardKilled")
def test_reap_leaves_running_turns_and_processes_of_other_stores_alone(user: User) -> None:
    user.plays(SILENCE)
    job = background(user)
    other = subprocess.Popen(["sleep", "60"], env={**user.env, "CC_AGENTS_TURN": "j1m8p3fdagn591"})
    try:
        assert "nothing was left" in user.run("reap").out.decode()
        assert other.poll() is None
        assert status(user, job)["state"] == "running"
        assert user.run("interrupt", job).code == 0
    finally:
        other.kill()
        other.wait(PATIENCE_S)


# --- pruning --------------------------------------------------------------------------------------------------


@pytest.mark.rule("rule.pruned")
def test_old_jobs_go_by_number_and_never_one_that_runs(user: User) -> None:
    user.plays(SILENCE)
    running = background(user)
    user.env["CC_AGENTS_KEEP_COUNT"] = "2"
    user.plays(ANSWER)
    jobs = [user.run("run", "--json", "--", "x").completed().outcome["job"] for _ in range(4)]
    left = {Path(folder).name for folder in user.jobs()}
    assert left == {running, *jobs[-2:]}
    assert user.run("interrupt", running).code == 0


# --- starts that collide --------------------------------------------------------------------------------------

BUSY = "Error: failed to initialize sqlite state runtime under /home/ada/.codex: database is locked"


@pytest.mark.rule("rule.startsCollide")
def test_a_start_that_found_the_database_locked_is_tried_again_before_any_turn(user: User) -> None:
    user.plays(ANSWER)
    fake, once = user.env["CC_AGENTS_CODEX_BIN"], user.root / "once"
    user.codex_is(f'[ -e {once} ] || {{ : >{once}; echo "{BUSY}" >&2; exit 1; }}\nexec {fake} "$@"')
    ran = user.run("run", "--json", "--", "x").completed()
    assert ran.outcome["final_text"] == "ANSWER"
    assert len(user.asked("turn/start")) == 1
    assert "starting it again" in ran.err
    once.unlink()
    assert user.run("models").code == 0


@pytest.mark.rule("rule.startsCollide")
def test_a_database_that_stays_locked_is_told_after_a_bounded_number_of_tries(user: User) -> None:
    tries = user.root / "tries"
    user.codex_is(f'echo x >>{tries}; echo "{BUSY}" >&2; exit 1')
    ran = user.run("run", "--json", "--", "x")
    ran.ended_as("failed", "app_server_exited", 9)
    assert "database is locked" in ran.error["message"]
    assert tries.read_text().count("x") == 5


@pytest.mark.rule("rule.startsCollide")
def test_any_other_early_exit_is_not_tried_again(user: User) -> None:
    tries = user.root / "tries"
    user.codex_is(f'echo x >>{tries}; echo "Error loading configuration" >&2; exit 1')
    user.run("run", "--json", "--", "x").ended_as("failed", "app_server_exited", 9)
    assert tries.read_text().count("x") == 1
