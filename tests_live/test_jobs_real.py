"""Jobs on the real codex with the scripted model: background, steer, interrupt, follow-up, recovery, review, starts.

The `home` fixture adds to every test here that no process of a turn is alive when it has ended.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests_live.conftest import CHECKOUT, TURN_S, CcAgents, WriteConfig
from tests_live.homes import Home
from tests_live.responses_api import ScriptedModel, say, silence, step, tokens, user_texts

THREAD_UNKNOWN = "0199aaaa-0000-7000-8000-0000000000ff"
AT_ONCE = 8


def wait_for(fact: Callable[[], Any]) -> Any:
    end = time.monotonic() + TURN_S
    while not (found := fact()):
        assert time.monotonic() < end, "it never became true"
        time.sleep(0.02)
    return found


def background(cc_agents: CcAgents, *words: str) -> str:
    ran = cc_agents("run", "--background", *words)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.decode().strip()


def status(cc_agents: CcAgents, job: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(cc_agents("status", "--json", job).stdout)
    return told


@pytest.mark.rule("rule.steer")
@pytest.mark.rule("rule.background")
def test_a_background_job_is_steered_and_the_model_sees_the_text(
    home: Home, model: ScriptedModel, write_config: WriteConfig, cc_agents: CcAgents
) -> None:
    go = threading.Event()
    model.extend(step(silence(go), say("half", phase="commentary")), say("steered"))
    write_config(home, model)
    job = background(cc_agents, "go")
    model.wait_for_requests(1)
    ran = cc_agents("steer", job, "use tabs")
    assert ran.returncode == 0, ran.stderr
    go.set()
    assert cc_agents("wait", job).returncode == 0
    assert cc_agents("result", job).stdout == b"steered"
    assert any("use tabs" in user_texts(request) for request in model.requests)


@pytest.mark.rule("rule.interruptConfirmed")
def test_interrupt_of_a_background_job_is_confirmed_by_codex(
    home: Home, model: ScriptedModel, write_config: WriteConfig, cc_agents: CcAgents
) -> None:
    model.extend(silence())
    write_config(home, model)
    job = background(cc_agents, "go")
    model.wait_for_requests(1)
    told = json.loads(cc_agents("interrupt", "--json", job).stdout)
    assert (told["status"], told["confirmed"]) == ("interrupted", True)
    assert cc_agents("wait", job).returncode == 130


@pytest.mark.rule("rule.followUp")
@pytest.mark.rule("rule.threadResumes")
def test_a_follow_up_goes_on_with_the_thread_in_its_mode_and_counts_its_own_usage(
    home: Home, model: ScriptedModel, write_config: WriteConfig, cc_agents: CcAgents
) -> None:
    model.extend(step(say("one"), usage=tokens(5000)), step(say("two"), usage=tokens(700, output=30)))
    write_config(home, model)
    first = json.loads(cc_agents("run", "--json", "--mode", "write", "the first").stdout)
    ran = cc_agents("follow-up", "--json", first["job"], "the second", cwd=home.root)
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    assert (told["thread"], told["final_text"]) == (first["thread"], "two")
    assert (told["effective"]["mode"], told["effective"]["cwd"]) == ("write", str(home.work))
    assert told["effective"]["sandbox"]["type"] == "workspaceWrite"
    assert told["usage"]["total_tokens"] == 730
    assert {"the first", "the second"} <= set(user_texts(model.requests[1]))


@pytest.mark.rule("rule.followUp")
def test_a_busy_thread_names_its_job_and_an_unknown_one_is_an_error(
    home: Home, model: ScriptedModel, write_config: WriteConfig, cc_agents: CcAgents
) -> None:
    model.extend(silence())
    write_config(home, model)
    job = background(cc_agents, "go")
    ran = cc_agents("follow-up", "--json", job, "more")
    assert json.loads(ran.stdout)["error"]["reason"] == "thread_busy"
    assert job.encode() in ran.stderr
    assert cc_agents("interrupt", job).returncode == 0
    ran = cc_agents("run", "--json", "--resume", THREAD_UNKNOWN, "more")
    assert (ran.returncode, json.loads(ran.stdout)["error"]["reason"]) == (2, "thread_unknown")
    assert len(model.requests) == 1


@pytest.mark.rule("rule.ownerGone")
def test_what_codex_finished_is_recovered_after_a_kill_and_what_it_did_not_is_partial(
    home: Home, model: ScriptedModel, write_config: WriteConfig, cc_agents: CcAgents, codex: str
) -> None:
    model.extend(step(say("half way", phase="commentary"), silence()), say("after"))
    write_config(home, model)
    job = background(cc_agents, "go")
    wait_for(lambda: b"half way" in cc_agents("events", job).stdout)
    told = status(cc_agents, job)
    os.kill(told["pid"], signal.SIGKILL)
    wait_for(lambda: status(cc_agents, job)["state"] == "died")
    ran = cc_agents("result", "--partial", job)
    assert (ran.returncode, ran.stdout) == (1, b"half way"), ran.stderr
    ran = cc_agents("follow-up", "--json", job, "go on")
    assert ran.returncode == 0, ran.stderr
    done = json.loads(ran.stdout)
    assert (done["thread"], done["final_text"]) == (told["thread"], "after")
    _forget_the_end(home, done["job"])
    ran = cc_agents("result", done["job"])
    assert (ran.returncode, ran.stdout) == (0, b"after"), ran.stderr
    assert b"recovered" in ran.stderr


def _forget_the_end(home: Home, job: str) -> None:
    """As if its sidecar had been killed when Codex had completed the turn, and before it wrote anything of that."""
    folder = home.state / "cc-agents" / "jobs" / job
    record = json.loads((folder / "record.json").read_text())
    record.pop("outcome")
    (folder / "record.json").write_text(json.dumps({**record, "state": "running", "status": None}))
    (folder / "final.txt").unlink()
    lines = (folder / "events.ndjson").read_bytes().splitlines(keepends=True)
    (folder / "events.ndjson").write_bytes(b"".join(line for line in lines if b'"outcome"' not in line))


@pytest.mark.rule("rule.startsCollide")
def test_many_first_starts_at_once_on_a_fresh_codex_home_all_complete(
    home: Home, model: ScriptedModel, write_config: WriteConfig, codex: str
) -> None:
    model.extend(*(say("hi") for _ in range(AT_ONCE)))
    write_config(home, model)
    environ = home.environ(CC_AGENTS_CODEX_BIN=codex, CC_AGENTS_CAPS=f"codex={AT_ONCE}", PYTHONPATH=str(CHECKOUT))
    argv = [sys.executable, "-m", "sidecar", "run", "--json", "go"]
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    running = [subprocess.Popen(argv, env=environ, cwd=home.work, **pipes) for _ in range(AT_ONCE)]
    told = [json.loads(process.communicate(timeout=2 * TURN_S)[0]) for process in running]
    assert [outcome["status"] for outcome in told] == ["completed"] * AT_ONCE, told


@pytest.mark.rule("rule.review")
def test_codex_reviews_uncommitted_changes_and_changes_against_a_base(
    home: Home, model: ScriptedModel, write_config: WriteConfig, cc_agents: CcAgents
) -> None:
    _repository(home.work)
    finding = {
        "findings": [],
        "overall_correctness": "patch is correct",
        "overall_explanation": "Nothing is wrong here.",
        "overall_confidence_score": 0.9,
    }
    model.extend(*[say(json.dumps(finding))] * 2)
    write_config(home, model)
    for words in ((), ("--base", "main")):
        ran = cc_agents("review", "--json", *words)
        assert ran.returncode == 0, ran.stderr
        told = json.loads(ran.stdout)
        assert "Nothing is wrong here." in told["final_text"]
        assert told["effective"]["sandbox"]["type"] == "readOnly"
        assert told["usage"] is None  # Codex tells none of a review: null, and never a made-up 0
        assert b'"begun"' in cc_agents("events", told["job"]).stdout


def _repository(folder: Path) -> None:
    def git(*words: str) -> None:
        who = {
            "GIT_AUTHOR_NAME": "a",
            "GIT_AUTHOR_EMAIL": "a@b",
            "GIT_COMMITTER_NAME": "a",
            "GIT_COMMITTER_EMAIL": "a@b",
        }
        env = {"PATH": os.environ["PATH"], "HOME": str(folder), **who}
        subprocess.run(["git", *words], cwd=folder, env=env, check=True, capture_output=True, timeout=TURN_S)

    git("init", "-b", "main")
    (folder / "a.txt").write_text("one\n")
    git("add", ".")
    git("commit", "-m", "one")
    git("switch", "-c", "topic")
    (folder / "a.txt").write_text("two\n")
    git("commit", "-am", "two")
    (folder / "b.txt").write_text("new\n")
