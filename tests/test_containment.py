"""Whatever a turn started and whatever dies first: no survivor, a true word about it, and a free slot.

The whole command as real processes, one turn that tries every shape for each death. The random mass is in
benchmarks/containment_whole.py. Serves spec:cc-agents.work-containment.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
from typing import Any

import pytest
from turns import ANSWER, living
from whole import (
    GONE_S,
    KILL,
    PATIENCE_S,
    SHAPES,
    WholeUser,
    by_signal,
    die,
    ended,
    kill,
    wait_for,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

STALL = {"stall": True}


# --- the turn ends --------------------------------------------------------------------------------------------


@pytest.mark.rule("rule.untilNoChildren")
def test_a_turn_that_completes_takes_everything_with_it_before_its_answer_is_told(whole_user: WholeUser) -> None:
    ran = whole_user.turn({"turn": [*whole_user.leaves(*SHAPES), *ANSWER[1:]]}).completed()
    whole_user.nothing_is_left()
    assert ran.outcome["processes_ended"] >= len(SHAPES)
    assert (ran.outcome["confirmed"], ran.outcome["final_text"]) == (True, "ANSWER")


@pytest.mark.rule("rule.untilNoChildren")
def test_a_codex_that_crashes_takes_everything_with_it(whole_user: WholeUser) -> None:
    ran = whole_user.turn({"turn": [*whole_user.leaves(*SHAPES), {"crash": {"signal": "SEGV"}}]})
    whole_user.nothing_is_left()
    ran.ended_as("failed", "app_server_exited", 9)
    assert "SIGSEGV" in ran.error["message"]
    assert ran.outcome["partial_text"] == "half"


@pytest.mark.rule("rule.guardedAppServer")
def test_five_turns_in_a_row_leave_nothing_each(whole_user: WholeUser) -> None:
    for _ in range(5):
        whole_user.turn(ANSWER).completed()
        whole_user.nothing_is_left()


@pytest.mark.rule("rule.guardedAppServer")
def test_the_app_server_has_a_group_and_the_guard_a_session_of_their_own(whole_user: WholeUser) -> None:
    with whole_user.running({"turn": [*whole_user.leaves("group"), STALL]}) as cli:
        whole_user.wait_for_shapes("group")
        app, guard = whole_user.app_server(), whole_user.guard()
        assert os.getpgid(app) == app
        assert len({os.getpgid(p) for p in (app, guard, cli.pid, os.getpid())}) == 4
        assert len({os.getsid(p) for p in (guard, cli.pid, os.getpid())}) == 3
        cli.terminate()
        whole_user.finish(cli)
    whole_user.nothing_is_left()


# --- the command is ended -------------------------------------------------------------------------------------


@pytest.mark.rule("rule.interruptConfirmed")
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda s: s.name)
def test_a_signal_to_the_command_ends_the_turn_and_all_of_it(whole_user: WholeUser, signum: signal.Signals) -> None:
    with whole_user.running({"turn": [*whole_user.leaves(*SHAPES), STALL]}) as cli:
        whole_user.wait_for_shapes(*SHAPES)
        cli.send_signal(signum)
        ran = whole_user.finish(cli)
    whole_user.nothing_is_left()
    ran.ended_as("interrupted", "interrupted", 128 + signum)
    assert (ran.outcome["partial_text"], ran.outcome["confirmed"]) == ("half", True)
    assert ran.outcome["processes_ended"] >= len(SHAPES)


@pytest.mark.rule("rule.interruptConfirmed")
def test_a_terminal_that_is_closed_ends_the_turn_and_all_of_it(whole_user: WholeUser) -> None:
    whole_user.plays({"turn": [*whole_user.leaves(*SHAPES), STALL]})
    ours, theirs = os.openpty()
    options: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), theirs)
    options["preexec_fn"] = lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    with ended(whole_user.start("run", "--json", "--", "do it", **options)) as cli:
        os.close(theirs)
        whole_user.wait_for_shapes(*SHAPES)
        os.close(ours)
        assert cli.wait(PATIENCE_S) == 128 + signal.SIGHUP
    whole_user.nothing_is_left()
    told = whole_user.status()
    assert (told["state"], told["status"], told["outcome"]["exit_code"]) == ("ended", "interrupted", 129)
    assert told["outcome"]["partial_text"] == "half"


@pytest.mark.rule("rule.lifelineEnds")
def test_a_command_that_is_killed_takes_everything_with_it_and_its_job_is_told_as_dead(whole_user: WholeUser) -> None:
    writes = whole_user.root / "written"
    steps = whole_user.leaves(*SHAPES)
    writer = {"spawn": {"shape": "setsid", "pid_file": str(whole_user.pid_file("writer")), "appends": str(writes)}}
    die(whole_user, [*steps[:-1], writer, steps[-1], STALL], (*SHAPES, "writer"), by_signal(KILL))
    wait_for(lambda: not whole_user.survivors() and not whole_user.slots_taken(), GONE_S)
    size = writes.stat().st_size
    told = whole_user.status()
    assert (told["state"], told["outcome"]) == ("died", None)
    assert told["thread"]
    assert writes.stat().st_size == size
    whole_user.nothing_is_left()


@pytest.mark.rule("rule.lifelineEnds")
def test_a_storm_of_new_processes_ends_with_the_command(whole_user: WholeUser) -> None:
    steps = whole_user.leaves("fork_storm", "clean_env")
    die(whole_user, [*steps, STALL], ("fork_storm", "clean_env"), by_signal(KILL))
    wait_for(lambda: not whole_user.survivors() and not whole_user.slots_taken(), 3 * GONE_S)
    whole_user.nothing_is_left()


ABOVE = """
import ctypes, subprocess, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
cli = subprocess.Popen(sys.argv[1:])
print(cli.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.rule("rule.lifelineEnds")
def test_below_another_subreaper_that_reaps_nothing_all_of_a_killed_command_ends_too(whole_user: WholeUser) -> None:
    whole_user.plays({"turn": [*whole_user.leaves(*SHAPES), STALL]})
    words = [sys.executable, "-m", "sidecar", "run", "--json", "do it"]
    how: dict[str, Any] = {
        "env": whole_user.env,
        "cwd": whole_user.work,
        "stdin": subprocess.PIPE,
        "stdout": subprocess.PIPE,
    }
    with ended(subprocess.Popen([sys.executable, "-c", ABOVE, *words], **how)) as above:
        assert above.stdout is not None
        cli = int(above.stdout.readline())
        whole_user.wait_for_shapes(*SHAPES)
        kill(cli)
        others = f"{above.pid} "
        wait_for(lambda: [s for s in whole_user.survivors() if not s.startswith(others)] == [], GONE_S)
        assert whole_user.slots_taken() == []
        above.communicate(timeout=PATIENCE_S)
    whole_user.nothing_is_left()


UNSHARE = ("unshare", "--pid", "--fork", "--mount-proc")


def no_namespaces() -> bool:
    try:
        return subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode != 0
    except FileNotFoundError:
        return True


@pytest.mark.skipif(no_namespaces(), reason="`unshare --pid` is not allowed here")
@pytest.mark.rule("rule.untilNoChildren")
def test_as_pid_1_of_a_container_the_command_ends_all_before_it_tells_the_outcome(whole_user: WholeUser) -> None:
    """The kernel ends a container with its pid 1: what counts is what was ended before."""
    whole_user.plays({"turn": [*whole_user.leaves(*SHAPES), *ANSWER[1:]]})
    words = [*UNSHARE, sys.executable, "-m", "sidecar", "run", "--json", "do it"]
    ran = subprocess.run(
        words, env=whole_user.env, cwd=whole_user.work, capture_output=True, timeout=PATIENCE_S, check=True
    )
    told = json.loads(ran.stdout)
    assert (told["status"], told["final_text"]) == ("completed", "ANSWER")
    assert told["processes_ended"] >= len(SHAPES)
    wait_for(lambda: not living(f"{whole_user.root}/"))  # by the environment: its pids are the container's own
