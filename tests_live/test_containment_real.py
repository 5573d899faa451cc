"""The real codex in yolo, whose commands leave group, session, parent and environment: nothing outlives the turn.

Each death on the machine itself; then below another subreaper and in containers without an init. The `home` fixture
adds that no process with its home is alive. Serves spec:cc-agents.work-containment.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sidecar import slots
from tests_live import escapes
from tests_live.conftest import WriteConfig
from tests_live.escapes import FACT_S, SHAPES, argv, environ, kill, outcome, record, running, survivors, wait_for
from tests_live.homes import Home, alive_in
from tests_live.responses_api import ScriptedModel, run_command, say

GONE_S = 5.0  # from a kill -9 to the last process; 250 ms on a machine of one's own
YOLO = ("--mode", "yolo")
Process = subprocess.Popen[bytes]


@pytest.fixture
def leaving(home: Home, model: ScriptedModel, write_config: WriteConfig) -> Home:
    """A model that asks for the command, and answers when it is done."""
    model.extend(run_command(escapes.leave(home, then=escapes.until_told(home))), say("done"))
    write_config(home, model)
    return home


def all_born(home: Home) -> bool:
    return len(escapes.pids(home)) == len(SHAPES)


def slots_taken(home: Home) -> list[slots.Holder]:
    return slots.holders(str(home.runtime / "cc-agents"), "codex")


def guard_of(home: Home) -> int:
    return int(wait_for(lambda: record(home))["guard"]["pid"])


# --- each death -----------------------------------------------------------------------------------------------


@pytest.mark.rule("rule.untilNoChildren")
def test_a_turn_that_completes_leaves_nothing(codex: str, leaving: Home) -> None:
    with running(leaving, codex, *YOLO) as cli:
        wait_for(lambda: all_born(leaving))
        escapes.tell(leaving)
        told = outcome(cli)
    assert survivors(leaving) == []
    assert (told["status"], told["final_text"]) == ("completed", "done")
    assert told["processes_ended"] >= 3
    assert slots_taken(leaving) == []


@pytest.mark.rule("rule.interruptConfirmed")
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda s: s.name)
def test_a_signal_is_confirmed_by_codex_and_leaves_nothing(codex: str, leaving: Home, signum: int) -> None:
    with running(leaving, codex, *YOLO) as cli:
        wait_for(lambda: all_born(leaving))
        cli.send_signal(signum)
        told = outcome(cli)
    assert survivors(leaving) == []
    assert (told["status"], told["confirmed"], cli.returncode) == ("interrupted", True, 128 + signum)
    assert slots_taken(leaving) == []


@pytest.mark.rule("rule.lifelineEnds")
def test_a_killed_sidecar_leaves_nothing(codex: str, leaving: Home) -> None:
    with running(leaving, codex, *YOLO) as cli:
        wait_for(lambda: all_born(leaving))
        cli.kill()
        cli.communicate(timeout=FACT_S)
    wait_for(lambda: not survivors(leaving) and not slots_taken(leaving), GONE_S)


@pytest.mark.rule("rule.guardKilled")
@pytest.mark.rule("rule.secondSubreaper")
def test_a_killed_guard_leaves_nothing(codex: str, leaving: Home) -> None:
    with running(leaving, codex, *YOLO) as cli:
        wait_for(lambda: all_born(leaving))
        kill(guard_of(leaving))
        told = outcome(cli)
    assert survivors(leaving) == []
    assert (told["status"], told["error"]["reason"], cli.returncode) == ("failed", "app_server_exited", 9)
    assert "SIGKILL" in told["error"]["message"]
    assert told["thread"]


@pytest.mark.rule("rule.guardKilled")
@pytest.mark.rule("rule.markOfLimits")
def test_both_killed_at_once_leave_nothing_to_the_next_command(codex: str, leaving: Home) -> None:
    with running(leaving, codex, *YOLO) as cli:
        wait_for(lambda: all_born(leaving))
        guard = guard_of(leaving)
        kill(guard, signum=signal.SIGSTOP)  # it must not see the sidecar die
        kill(cli.pid, guard)
        cli.communicate(timeout=FACT_S)
    wait_for(lambda: not escapes.lives(guard))
    assert {"setsid", "double_fork", "clean_env"} <= set(survivors(leaving))
    reap = subprocess.run(argv("reap"), env=environ(leaving, codex), cwd=leaving.work, timeout=FACT_S, check=True)
    assert reap.returncode == 0
    assert survivors(leaving) == []
    assert slots_taken(leaving) == []


# --- other places ---------------------------------------------------------------------------------------------

# What is above cc-agents there: it reaps nothing. It kills what it is told to kill, then prints who lives on.
ABOVE = """
import ctypes, json, os, subprocess, sys, time
from tests_live import escapes
from tests_live.homes import Home
from pathlib import Path
death, root, codex = sys.argv[1:]
names = ("home", "codex_home", "config", "state", "runtime", "tmp", "work")
home = Home(root=Path(root), **{n: Path(root, n) for n in names})
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
with escapes.running(home, codex, "--mode", "yolo") as cli:
    escapes.wait_for(lambda: len(escapes.pids(home)) == len(escapes.SHAPES))
    guard = escapes.record(home)["guard"]["pid"]
    if death == "itself": escapes.tell(home)
    if death == "both killed": escapes.kill(guard, signum=19)
    if death in ("killed", "both killed"): escapes.kill(cli.pid)
    if death in ("guard killed", "both killed"): escapes.kill(guard)
    cli.communicate(timeout=60)
if death == "both killed":
    escapes.wait_for(lambda: not escapes.lives(guard))
    subprocess.run(escapes.argv("reap"), env=escapes.environ(home, codex), cwd=root, check=True, stdout=2)
until = time.monotonic() + (5 if death == "killed" else 0)
while (left := escapes.survivors(home)) and time.monotonic() < until: time.sleep(0.005)
print(json.dumps([left, cli.returncode, os.getpid()]), flush=True)
"""
CODES = {"itself": 0, "killed": -9, "guard killed": 9, "both killed": -9}
UNSHARE = ("unshare", "--pid", "--fork", "--mount-proc")


def no_namespaces() -> bool:
    return subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode != 0


in_a_namespace = pytest.mark.skipif(no_namespaces(), reason="`unshare --pid` is not allowed here")


@pytest.mark.rule("rule.untilNoChildren")
@pytest.mark.parametrize("death", CODES)
@pytest.mark.parametrize("before", [(), pytest.param(UNSHARE, marks=in_a_namespace)], ids=["subreaper", "pid 1"])
def test_below_a_subreaper_or_an_init_that_reaps_nothing_each_death_leaves_nothing(
    codex: str, leaving: Home, before: tuple[str, ...], death: str
) -> None:
    """With `unshare` that parent is pid 1 of a container."""
    command = [*before, sys.executable, "-c", ABOVE, death, str(leaving.root), codex]
    ran = subprocess.run(command, env=environ(leaving, codex), timeout=2 * FACT_S, capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr.decode()
    left, code, pid = json.loads(ran.stdout)
    assert (left, code) == ([], CODES[death])
    assert (pid == 1) == bool(before)


def told_itself(home: Home, unshare: Process) -> None:
    escapes.tell(home)


def terminated(home: Home, unshare: Process) -> None:
    """Its pid out here is the child of `unshare`."""
    children = Path(f"/proc/{unshare.pid}/task/{unshare.pid}/children").read_text().split()
    kill(int(children[0]), signum=signal.SIGTERM)


def guard_killed(home: Home, unshare: Process) -> None:
    kill(next(pid for pid, words in alive_in(home).items() if "guard.py" in words))


@in_a_namespace
@pytest.mark.rule("rule.untilNoChildren")
@pytest.mark.rule("rule.secondSubreaper")
@pytest.mark.parametrize(
    ("death", "status", "code"),
    [(told_itself, "completed", 0), (terminated, "interrupted", 143), (guard_killed, "failed", 9)],
)
def test_as_pid_1_of_a_container_it_tells_the_same_and_ends_the_same(
    codex: str, leaving: Home, death: Callable[[Home, Process], None], status: str, code: int
) -> None:
    """The kernel ends a container with its pid 1: what counts is what was ended before."""
    with running(leaving, codex, *YOLO, before=UNSHARE) as unshare:
        wait_for(lambda: all_born(leaving))
        death(leaving, unshare)
        told: dict[str, Any] = outcome(unshare)
    assert (told["status"], told["exit_code"]) == (status, code)
    assert told["processes_ended"] >= 3
    wait_for(lambda: not alive_in(leaving), GONE_S)
