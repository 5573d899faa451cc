"""Interrupts at every moment of a turn: asked of Codex where it would listen, and over only when nothing lives.

`interrupt JOB` from another process is in test_jobs_control.py. Serves rule.interruptConfirmed.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from turns import ANSWER, SILENCE, START, Ran, User, alive, pids_in
from whole import TESTS, WholeUser, ended, wait_for

from sidecar import paths

pytestmark = pytest.mark.rule("rule.interruptConfirmed")

INT, TERM = signal.SIGINT, signal.SIGTERM
PROMPT_S = 5.0  # far below the grace that a test gives, far above what an end takes
STALL = {"stall": True}
LONG = ("--grace", "60s")


@pytest.fixture
def user(whole_user: WholeUser) -> WholeUser:
    return whole_user


def interrupted_when(
    user: User, fact: Callable[[], Any], scenario: Any, *words: str, signum: int = INT, code: int = 130
) -> Ran:
    """The end of a turn that was interrupted as soon as the fact was true, and leaves nothing."""
    with user.running(scenario, *words) as cli:
        wait_for(fact)
        began = time.monotonic()
        cli.send_signal(signum)
        ran = user.finish(cli)
    assert time.monotonic() - began < PROMPT_S
    assert isinstance(user, WholeUser)
    assert (user.survivors(), user.slots_taken()) == ([], [])
    ran.ended_as("interrupted", "interrupted", code)
    record = json.loads((user.jobs()[-1] / "record.json").read_bytes())
    assert (record["state"], record["outcome"]["exit_code"]) == ("ended", code)
    return ran


def has_streamed(user: WholeUser, end: str) -> Callable[[], bool]:
    """Deltas that were read together are one event: the last of them ends it."""
    return lambda: f'{end}"'.encode() in user.said()


# --- before the turn ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["initialize", "model/list", "thread/start"])
def test_before_turn_start_nothing_is_submitted_any_more(user: WholeUser, method: str) -> None:
    ran = interrupted_when(user, lambda: method in user.methods(), {"replies": {method: "silence"}}, *LONG)
    assert user.asked("turn/start") == []
    assert user.asked("turn/interrupt") == []
    assert (ran.outcome["turn"], ran.outcome["confirmed"]) == (None, False)
    assert "interrupting (SIGINT)" in ran.err


@pytest.mark.parametrize("steps", [[STALL], [{"start": "reply"}, STALL]], ids=["unanswered", "answered"])
def test_before_turn_started_codex_is_not_asked_but_ended(user: WholeUser, steps: list[Any]) -> None:
    """It would refuse, and run on."""
    ran = interrupted_when(user, lambda: user.asked("turn/start"), steps, *LONG)
    assert user.asked("turn/interrupt") == []
    assert ran.outcome["confirmed"] is False
    assert ran.outcome["thread"]


def test_while_waiting_for_a_slot_no_codex_is_started(user: WholeUser) -> None:
    user.env["CC_AGENTS_CAPS"] = "codex=1"
    with user.running(SILENCE) as holder:
        wait_for(lambda: user.asked("turn/start"))
        with ended(user.start("run", "--json", "--", "another")) as cli:
            wait_for(lambda: len(user.jobs()) == 2 and b"waiting for a slot" in user.said())
            cli.send_signal(TERM)
            ran = user.finish(cli)
        ran.ended_as("interrupted", "interrupted", 143)
        assert (ran.outcome["confirmed"], ran.outcome["processes_ended"]) == (True, 0)
        assert len(user.asked("initialize")) == 1
        assert [h.pid for h in user.slots_taken()] == [holder.pid]
        holder.send_signal(TERM)
        user.finish(holder)


# --- in the turn ----------------------------------------------------------------------------------------------


def test_while_streaming_the_text_so_far_is_kept_as_partial(user: WholeUser) -> None:
    streams = [*START, {"msg": ["half of it", None], "deltas": ["half", " of"], "open": True}, STALL]
    ran = interrupted_when(user, has_streamed(user, " of"), streams, *LONG)
    assert ran.outcome["confirmed"] is True
    assert (ran.outcome["partial_text"], ran.outcome["final_text"]) == ("half of", "")
    (asked,) = user.asked("turn/interrupt")
    assert asked == {"threadId": ran.outcome["thread"], "turnId": ran.outcome["turn"]}


def test_in_a_command_its_children_in_the_background_are_gone_with_the_outcome(user: WholeUser) -> None:
    """Codex confirms an interrupt and lets them live."""
    steps = user.leaves("setsid", "double_fork", "ignore_term")
    steps = [*steps, {"command": {"run": "make watch", "open": True}}, STALL]
    ran = interrupted_when(user, lambda: b"make watch" in user.said(), steps, *LONG)
    assert (ran.outcome["confirmed"], ran.outcome["partial_text"]) == (True, "half")
    assert ran.outcome["processes_ended"] >= 3


def test_during_a_request_for_approval_the_request_is_declined_and_the_turn_ended(user: WholeUser) -> None:
    ask = {"method": "item/commandExecution/requestApproval", "params": {"itemId": "i", "command": "rm x"}}
    steps = [*START, {"ask": {**ask, "wait": False}}, STALL]
    ran = interrupted_when(user, lambda: b'"declined"' in user.said(), steps, *LONG)
    assert ran.outcome["confirmed"] is True
    assert [d["method"] for d in ran.outcome["declined"]] == [ask["method"]]


def test_an_interrupt_that_codex_never_confirms_ends_after_the_grace_and_says_so(user: WholeUser) -> None:
    scenario = {"turn": [*user.leaves("setsid"), STALL], "replies": {"turn/interrupt": {}}}
    ran = interrupted_when(user, lambda: b'"half"' in user.said(), scenario, "--grace", "0.3s")
    assert (ran.outcome["confirmed"], ran.outcome["partial_text"]) == (False, "half")
    assert ran.outcome["processes_ended"] >= 1


def test_an_interrupt_that_names_the_wrong_turn_is_tried_again_with_the_one_that_runs(user: WholeUser) -> None:
    refusal = {"code": -32600, "message": "expected active turn id `$turn` but found `another`"}
    second = {"method": "turn/interrupt", "params": {"turnId": "another"}}
    steps = [*START, {"expect": "turn/interrupt"}, {"reply": {"error": refusal}}, {"expect": second}]
    steps += [{"reply": {"result": {}}}, {"done": "interrupted"}]
    ran = interrupted_when(user, lambda: has_begun(user), steps, *LONG)
    assert [p["turnId"] for p in user.asked("turn/interrupt")] == [ran.outcome["turn"], "another"]
    assert ran.outcome["confirmed"] is True


def has_begun(user: WholeUser) -> bool:
    return b'"begun"' in user.said()


def test_a_turn_that_completes_before_the_word_reaches_it_is_told_as_completed(user: WholeUser) -> None:
    user.plays({"turn": [*START, STALL], "on_interrupt": [*ANSWER[1:]]})
    with ended(user.start("run", "--json", *LONG, "--", "do it")) as cli:
        wait_for(lambda: has_begun(user))
        cli.send_signal(INT)
        user.finish(cli).completed()


@pytest.mark.parametrize("first", [INT, TERM], ids=lambda s: s.name)
def test_a_second_wish_within_the_grace_ends_at_once(user: WholeUser, first: signal.Signals) -> None:
    steps = user.leaves("setsid", "ignore_term")
    scenario = {
        "turn": [*steps, STALL],
        "replies": {"turn/interrupt": {}},
        "ignore_signals": ["TERM"],
        "on_eof": "ignore",
    }
    with user.running(scenario, *LONG) as cli:
        user.wait_for_shapes("setsid", "ignore_term")
        cli.send_signal(first)
        wait_for(lambda: user.asked("turn/interrupt"))
        began = time.monotonic()
        cli.send_signal(INT)
        ran = user.finish(cli)
    assert time.monotonic() - began < PROMPT_S
    assert user.survivors() == []
    ran.ended_as("interrupted", "interrupted", 128 + first)
    assert (ran.outcome["confirmed"], ran.outcome["partial_text"]) == (False, "half")
    assert "ending at once (SIGINT)" in ran.err


# --- before there is a loop that could hear it ----------------------------------------------------------------


@pytest.mark.parametrize("signum", [INT, TERM, signal.SIGHUP], ids=lambda s: s.name)
def test_a_signal_while_the_rest_is_still_being_loaded_counts(user: WholeUser, signum: signal.Signals) -> None:
    """Codex has been started by then."""
    loading, go = user.root / "loading", user.root / "go"
    user.env.update(SLOW_MODULE="anyio", SLOW_LOADING=str(loading), SLOW_GO=str(go))
    user.entry = (str(TESTS / "cli_entry.py"), "slowly")
    with user.running(SILENCE) as cli:
        wait_for(loading.exists)
        guard = user.guard()
        cli.send_signal(signum)
        go.touch()
        ran = user.finish(cli)
    ran.ended_as("interrupted", "interrupted", 128 + signum)
    assert "interrupted" in ran.err
    assert user.asked("turn/start") == []
    assert not alive(guard)
    assert (user.survivors(), user.slots_taken()) == ([], [])


FACTS: dict[str, Callable[[WholeUser], Any]] = {
    "the job is made": lambda user: user.jobs(),
    "the slot is taken": lambda user: (user.root / "run" / "cc-agents" / "slots").exists(),
    "the guard has its record": lambda user: user.record(),
    "codex is asked": lambda user: user.methods(),
}


@pytest.mark.parametrize("fact", FACTS)
def test_an_interrupt_as_soon_as_something_was_made_leaves_nothing(user: WholeUser, fact: str) -> None:
    interrupted_when(user, lambda: FACTS[fact](user), SILENCE)


def test_an_interrupt_while_the_prompt_is_being_read_is_an_outcome_too(user: WholeUser) -> None:
    with ended(user.start("run", "--json", "-", stdin=subprocess.PIPE)) as cli:
        assert cli.stdin is not None
        cli.stdin.write(b"do")
        cli.stdin.flush()
        wait_for(lambda: unread(cli.stdin) == 0)
        cli.send_signal(INT)
        ran = user.finish(cli)
    ran.ended_as("interrupted", "interrupted", 130)
    assert (ran.outcome["job"], user.jobs()) == (None, [])


def unread(pipe: Any) -> int:
    """Bytes in a pipe that nobody has read."""
    return int(struct.unpack("i", fcntl.ioctl(pipe.fileno(), termios.FIONREAD, b"\0" * 4))[0])


def test_a_flood_of_signals_is_one_interrupt_and_one_outcome(user: WholeUser) -> None:
    with user.running({"turn": [*user.leaves("setsid"), STALL], "replies": {"turn/interrupt": {}}}, *LONG) as cli:
        user.wait_for_shapes("setsid")
        for signum in (TERM, INT, TERM, INT, signal.SIGHUP) * 5:
            with contextlib.suppress(ProcessLookupError):
                os.kill(cli.pid, signum)
        ran = user.finish(cli)
    assert ran.outcome["status"] == "interrupted"
    assert ran.code == ran.outcome["exit_code"] in (129, 130, 143)
    assert user.survivors() == []
    assert not any(map(alive, pids_in(user.pid_file("setsid"))))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_nohup_stays_nohup(user: WholeUser) -> None:
    go = user.root / "go"
    ignores = {"preexec_fn": lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)}
    user.plays([*START, {"wait": {"file": str(go)}}, *ANSWER[1:]])
    with ended(user.start("run", "--json", "--", "do it", **ignores)) as cli:
        wait_for(lambda: has_begun(user))
        cli.send_signal(signal.SIGHUP)
        go.touch()
        user.finish(cli).completed()


@pytest.mark.parametrize(("signum", "code"), [(INT, 130), (TERM, 143)])
def test_a_signal_ends_the_wait_for_a_thread_whose_last_turn_is_still_dying(
    user: WholeUser, signum: int, code: int
) -> None:
    user.plays({"turn": ANSWER})
    threads = Path(paths.runtime_dir(user.env)) / "threads"
    threads.mkdir(mode=0o700)
    lock = threads / "0a.lock"
    lock.write_text(json.dumps({"pid": 2**22 + 1, "start_time": 1}))  # no pid is as high: its holder is gone
    with open(lock, "rb+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with ended(user.start("run", "--json", "--resume", "0a", "--", "go")) as cli:
            wait_for(lambda: str(lock) in opened_by(cli.pid))
            began = time.monotonic()
            cli.send_signal(signum)
            ran = user.finish(cli)
    ran.ended_as("interrupted", "interrupted", code)
    assert time.monotonic() - began < PROMPT_S
    assert user.jobs() == []


def opened_by(pid: int) -> set[str]:
    """The files that a process has open at this moment."""
    found = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            found.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return found
