"""`cc-agents batch`: each line its own outcome, none run twice, and an exit code that says whether all completed.

Serves rule.batch. The fake is the codex; its answer tells which directory it was asked in.
"""

from __future__ import annotations

import json
import os
import pty
import signal
from pathlib import Path
from typing import Any

import pytest
from schemas import valid
from test_jobs import FROM_CWD, until
from turns import ANSWER, PATIENCE_S, START, User, ended, wait_for

from fake_app_server.shim import write_shim

pytestmark = pytest.mark.rule("rule.batch")

ECHO = [*START, FROM_CWD, {"done": "completed"}]


def write(user: User, *requests: Any) -> Path:
    path = user.root / "batch.jsonl"
    path.write_text("\n".join(r if isinstance(r, str) else json.dumps(r) for r in requests) + "\n", encoding="utf-8")
    return path


def outcomes(out: bytes) -> dict[int, dict[str, Any]]:
    lines = [json.loads(line) for line in out.splitlines()]
    assert len({line["line"] for line in lines}) == len(lines)
    return {line["line"]: line["outcome"] for line in lines}


def folders(user: User, count: int) -> list[str]:
    made = [user.root / f"dir {n}" for n in range(count)]
    for folder in made:
        folder.mkdir(exist_ok=True)
    return [str(folder) for folder in made]


def test_each_line_has_its_own_outcome_and_a_refused_one_disturbs_no_other(user: User) -> None:
    user.plays(ECHO)
    where = folders(user, 6)
    good = [{"prompt": "x", "cwd": folder, "label": f"n{n}"} for n, folder in enumerate(where)]
    path = write(user, *good[:3], "", {"prompt": "x", "model": "nope"}, "{torn", {"promt": "x"}, *good[3:])
    ran = user.run("batch", str(path))
    told = outcomes(ran.out)
    assert ran.code == 1
    assert all(valid("outcome", outcome) for outcome in told.values())
    assert [told[n]["final_text"] for n in (1, 2, 3, 8, 9, 10)] == [f"from {folder}" for folder in where]
    completed = {n: o for n, o in told.items() if o["status"] == "completed"}
    assert [o["effective"]["cwd"] for _, o in sorted(completed.items())] == where
    refused = {n: o["error"]["reason"] for n, o in told.items() if o["status"] == "refused"}
    assert refused == {5: "unknown_model", 6: "bad_request", 7: "bad_request"}
    assert "9 of 9 done (3 refused)" in ran.err
    labels = {json.loads(line)["line"]: json.loads(line)["label"] for line in ran.out.splitlines()}
    assert (labels[1], labels[5], labels[10]) == ("n0", None, "n5")


def test_all_completed_is_exit_code_0_and_a_second_run_runs_nothing_again(user: User) -> None:
    user.plays(ANSWER)
    path = write(user, {"prompt": "x"}, {"prompt": "x"}, {"prompt": "y"})  # two equal lines are two requests
    first = user.run("batch", str(path))
    assert first.code == 0
    assert len(user.asked("turn/start")) == 3
    again = user.run("batch", str(path))
    assert (again.code, outcomes(again.out)) == (0, outcomes(first.out))
    assert len(user.asked("turn/start")) == 3
    assert user.run("batch", "--fresh", str(path)).code == 0
    assert len(user.asked("turn/start")) == 6


def test_after_a_crash_only_what_was_not_finished_runs_again(user: User) -> None:
    user.env["CC_AGENTS_CAPS"] = "codex=2"
    where = folders(user, 3)
    gate = user.root / "go"
    store = {"store": str(user.root / "threads")}
    slow = write_shim(user.root / "slow", scenario={**store, "turn": [*START, until(gate), *ANSWER[1:]]}, log=user.log)
    fast = user.plays({**store, "turn": ANSWER})
    user.codex_is(f'case "$PWD" in *"dir 1") exec {slow} "$@";; esac; exec {fast} "$@"')
    path = write(user, *({"prompt": "x", "cwd": folder} for folder in where))
    with ended(user.start("batch", str(path))) as process:
        assert process.stdout is not None
        done = [json.loads(process.stdout.readline()) for _ in range(2)]
        wait_for(lambda: len(user.asked("turn/start")) == 3)
        process.kill()
        process.wait(PATIENCE_S)
    gate.touch()
    ran = user.run("batch", str(path))
    told = outcomes(ran.out)
    assert (ran.code, {o["status"] for o in told.values()}) == (0, {"completed"})
    for line in done:
        assert told[line["line"]]["job"] == line["outcome"]["job"]
    assert len(user.asked("turn/start")) == 4  # the one that the crash cut was begun anew


def test_a_failed_line_stays_failed_until_it_is_asked_for_again(user: User) -> None:
    user.plays([*START, {"err": ["usageLimitExceeded", False]}, {"done": "failed"}])
    path = write(user, {"prompt": "x", "label": "the one"})
    ran = user.run("batch", str(path))
    assert ran.code == 1
    assert "line 1 (the one): failed: quota" in ran.err
    user.plays(ANSWER)
    assert user.run("batch", str(path)).code == 1
    assert user.run("batch", "--retry-failed", str(path)).code == 0


def test_a_signal_ends_the_turns_of_a_batch_and_they_run_again_next_time(user: User) -> None:
    go = user.root / "go"
    user.env["CC_AGENTS_CAPS"] = "codex=1"
    user.plays([*START, until(go), *ANSWER[1:]])
    path = write(user, {"prompt": "x"}, {"prompt": "y"}, {"prompt": "z"})
    with ended(user.start("batch", str(path))) as process:
        wait_for(lambda: user.asked("turn/start"))
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert [json.loads(line)["outcome"]["status"] for line in out.splitlines()] == ["interrupted"]
    go.touch()
    ran = user.run("batch", str(path))
    assert (ran.code, len(outcomes(ran.out))) == (0, 3)


def test_never_more_turns_at_once_than_there_are_slots(user: User) -> None:
    user.env["CC_AGENTS_CAPS"] = "codex=2"
    mark = {"spawn": {"shape": "group", "seconds": 30, "pid_file": str(user.root / "pids")}}
    user.plays([*START, mark, {"wait": 0.05}, *ANSWER[1:]])
    path = write(user, *({"prompt": str(n)} for n in range(6)))
    most = 0
    with ended(user.start("batch", str(path))) as process:
        while process.poll() is None:
            taken = json.loads(user.run("slots", "--json").out)["slots"]
            most = max(most, *(len(key["taken"]) for key in taken))
        assert process.returncode == 0
    assert most <= 2


def test_a_file_that_another_process_works_on_is_refused(user: User) -> None:
    go = user.root / "go"
    user.plays([*START, until(go), *ANSWER[1:]])
    path = write(user, {"prompt": "x"})
    with ended(user.start("batch", str(path))) as process:
        wait_for(lambda: user.asked("turn/start"))
        ran = user.run("batch", str(path))
        assert ran.code == 2
        assert "another process" in ran.err
        go.touch()
        process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0
    assert user.run("batch", str(user.root / "missing")).code == 2


def test_on_a_terminal_the_progress_is_one_line_that_is_rewritten(user: User) -> None:
    user.plays([*START, {"usage": [{"inputTokens": 1000, "outputTokens": 50}, None]}, *ANSWER[1:]])
    path = write(user, {"prompt": "x"}, {"prompt": "y"})
    ours, theirs = pty.openpty()
    try:
        with ended(user.start("batch", str(path), stderr=theirs, env={"TERM": "xterm"})) as process:
            os.close(theirs)
            shown = b""
            while data := _read(ours):
                shown += data
            process.communicate(timeout=PATIENCE_S)
    finally:
        os.close(ours)
    assert process.returncode == 0
    assert b"\r\x1b[K[##########" in shown
    assert b"2 of 2 done, 2,100 tokens" in shown.replace(b"\r\n", b"\n").splitlines()[-1]
    assert shown.count(b"\n") == 1


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, 65536)
    except OSError:  # the last process has closed the terminal
        return b""
