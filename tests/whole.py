"""The whole command with a turn that tries to get away, for test_containment.py, test_interrupts.py and
benchmarks/containment_whole.py.

Owns: what the turn leaves in each shape, who dies of what, telling who survived. Does not own any judgement, nor the
user and the fake (turns.py).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from turns import PATIENCE_S, START, Steps, User, alive, ended, living, pids_in, wait_for

from sidecar import owner, slots

TESTS = Path(__file__).resolve().parent
SHAPES = ("group", "setsid", "double_fork", "nohup", "ignore_term", "clean_env", "stopped")
GONE_S = 5.0  # from a kill -9 to the last process; 250 ms on a machine of one's own
KILL, STOP = signal.SIGKILL, signal.SIGSTOP


class WholeUser(User):
    """A user whose command may be another entry: one of the tests', with a part of the product taken out."""

    entry: tuple[str, ...] = ("-m", "sidecar")

    def start(self, *words: str, **options: Any) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        how = {"stdin": subprocess.DEVNULL, "stdout": pipe, "stderr": pipe, "cwd": self.work, **options}
        env = {**self.env, **how.pop("env", {})}
        return subprocess.Popen([sys.executable, *self.entry, *words], env=env, start_new_session=True, **how)

    # --- what a turn leaves ------------------------------------------------------------------------------------

    def pid_file(self, shape: str) -> Path:
        return self.root / "pids" / shape

    def leaves(self, *shapes: str) -> Steps:
        """A turn that has begun, left a process of each shape and said a word."""
        (self.root / "pids").mkdir(exist_ok=True)
        spawns = [{"spawn": {"shape": s, "pid_file": str(self.pid_file(s))}} for s in shapes]
        return [*START, *spawns, {"msg": ["half", None]}]

    def wait_for_shapes(self, *shapes: str) -> None:
        wait_for(lambda: all(pids_in(self.pid_file(s)) for s in shapes) and b'"half"' in self.said())

    def said(self) -> bytes:
        """The journal of the newest job."""
        jobs = self.jobs()
        path = jobs[-1] / "events.ndjson" if jobs else None
        return path.read_bytes() if path is not None and path.exists() else b""

    # --- what is found ------------------------------------------------------------------------------------------

    def nothing_is_left(self) -> None:
        assert self.survivors() == []
        assert self.slots_taken() == []
        assert self.record() is None

    def survivors(self) -> list[str]:
        """Every living process of a turn: by what it wrote down itself, and by this user's folders."""
        found = {int(words.split()[0]): words for words in living(f"{self.root}/")}
        for path in (self.root / "pids").glob("*"):
            found.update({pid: f"{pid} ({path.name})" for pid in pids_in(path) if alive(pid)})
        return list(found.values())

    def record(self) -> dict[str, Any] | None:
        """The guard's, of the newest job that has one."""
        for job in reversed(self.jobs()):
            with suppress(FileNotFoundError):
                found: dict[str, Any] = json.loads((job / "processes.json").read_bytes())
                return found
        return None

    def guard(self) -> int:
        return int(wait_for(self.record)["guard"]["pid"])

    def app_server(self) -> int:
        return int(wait_for(self.record)["app_server"]["pid"])

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.run("status", "--json", self.jobs()[-1].name).out)
        return found

    def slots_taken(self) -> list[slots.Holder]:
        return slots.holders(str(self.root / "run" / "cc-agents"), "codex")


# --- deaths -----------------------------------------------------------------------------------------------------

Death = Callable[[WholeUser, "subprocess.Popen[bytes]"], None]


def kill(*pids: int, signum: int = KILL) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signum)


def by_signal(signum: int) -> Death:
    return lambda user, cli: cli.send_signal(signum)


def guard_killed(user: WholeUser, cli: subprocess.Popen[bytes]) -> None:
    kill(user.guard())


def both_killed(user: WholeUser, cli: subprocess.Popen[bytes]) -> None:
    """At once: the guard is stopped first, so that it can't see the command die."""
    guard = user.guard()
    started = owner.start_time(guard)
    kill(guard, signum=STOP)
    kill(cli.pid, guard)
    wait_for(lambda: owner.start_time(guard) != started)


def guard_stopped(user: WholeUser, cli: subprocess.Popen[bytes]) -> None:
    kill(user.guard(), signum=STOP)
    cli.terminate()


def app_server_stopped(user: WholeUser, cli: subprocess.Popen[bytes]) -> None:
    kill(user.app_server(), signum=STOP)
    cli.terminate()


def reaped(user: WholeUser) -> None:
    assert user.run("reap").code == 0


def die(user: WholeUser, steps: Steps, shapes: Sequence[str], death: Death, *words: str) -> subprocess.Popen[bytes]:
    """A turn of these steps, its death, and the end of its command."""
    with user.running({"turn": steps}, *words) as cli:
        user.wait_for_shapes(*shapes)
        death(user, cli)
        cli.communicate(timeout=PATIENCE_S)
    return cli


__all__ = ["PATIENCE_S", "Death", "WholeUser", "ended", "wait_for"]


@pytest.fixture
def whole_user(tmp_path: Path) -> WholeUser:
    return WholeUser(tmp_path)
