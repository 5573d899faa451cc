"""A guard with a stand-in app-server of many shapes, for the tests of the guard and benchmarks/containment.py.

Owns: the shapes (how a process may try to get away), starting a guard, telling what still lives. Does not own any
judgement. Every process that a shape makes writes its pid and start time to a folder, so none is forgotten.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from sidecar.leftovers.marks import limit_mark

GUARD = Path(__file__).parent.parent / "guard" / "guard.py"
HURRYING = Path(__file__).parent / "guard_hurrying.py"  # tells when it puts itself first
CONTROL = Path(__file__).parent / "guard_control.py"  # without its subreaper
BOUND_S = 10.0  # for facts that come within milliseconds: a loaded machine must not fail a test

STAND_IN = r"""
import os, signal, sys, time
FOLDER = sys.argv[1]
def start_time(): return open("/proc/self/stat").read().rpartition(")")[2].split()[19]
def here():
    with open(f"{FOLDER}/{os.getpid()}.draft", "w") as file: file.write(start_time())
    os.rename(f"{FOLDER}/{os.getpid()}.draft", f"{FOLDER}/{os.getpid()}")
def stay():
    here()
    while True: time.sleep(60)
def fork(work):
    if os.fork() == 0:
        try: work()
        finally: os._exit(0)
def again(name, environ): os.execve(sys.executable, [name, "-I", "-S", "-c", SOURCE, FOLDER, "stay"], environ)
def same_group(): fork(stay)
def new_session(): fork(lambda: (os.setsid(), stay()))
def nohup(): fork(lambda: (signal.signal(signal.SIGHUP, signal.SIG_IGN), stay()))
def double_fork(): fork(lambda: (os.setsid(), fork(stay)))
def changed_name(): fork(lambda: (os.setsid(), again("[kworker/0:1]", dict(os.environ))))
def closed_descriptors(): fork(lambda: (os.setsid(), os.chdir("/"), os.closerange(0, 64), fork(stay)))
def cleared_environment(): fork(lambda: (os.setsid(), fork(lambda: again("x", {}))))
def deaf():
    for name in ("SIGTERM", "SIGINT", "SIGHUP"): signal.signal(getattr(signal, name), signal.SIG_IGN)
def ignored_term(): fork(lambda: (os.setsid(), deaf(), stay()))
def stopped(): fork(lambda: (os.setsid(), here(), os.kill(os.getpid(), signal.SIGSTOP)))
def fork_storm(): fork(lambda: (deaf(), here(), storm(time.monotonic() + 8)))
def storm(until):
    while time.monotonic() < until:
        if os.fork(): time.sleep(0.002); os._exit(0)
        os.setsid()
def crowd():
    for _ in range(50): fork(lambda: (os.setsid(), stay()))
    for _ in range(50): fork(lambda: fork(lambda: (os.setsid(), stay())))
def sleeper(): stay()
if __name__ == "__main__":
    for shape in sys.argv[2:]: globals()[shape]()
    here()
    sys.stdin.read()
"""
SOURCE = f"SOURCE = {STAND_IN!r}\n{STAND_IN}"
SHAPES = (
    "same_group",
    "new_session",
    "nohup",
    "double_fork",
    "changed_name",
    "closed_descriptors",
    "cleared_environment",
    "ignored_term",
    "stopped",
    "fork_storm",
)


def wait_until(fact: Callable[[], object], *, bound_s: float = BOUND_S) -> None:
    until = time.monotonic() + bound_s
    while not fact():
        assert time.monotonic() < until, "the fact that was waited for did not come"
        time.sleep(0.001)


def start_time(pid: int) -> int | None:
    """Of a living process; None if it is gone or only waits to be reaped."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def marked(turn: str) -> set[int]:
    """Pids of the living processes that carry the turn's marker."""
    item, found = f"CC_AGENTS_TURN={turn}".encode(), set()
    for pid in [int(name) for name in os.listdir("/proc") if name.isdigit()]:
        try:
            environ = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue
        if item in environ.split(b"\0") and start_time(pid) is not None:
            found.add(pid)
    return found


def argv_of(folder: Path, *shapes: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", SOURCE, str(folder), *shapes]


class Guarded:
    """A running guard. Its parts are started from here, so they can be killed one by one."""

    def __init__(
        self,
        folder: Path,
        argv: list[str],
        *options: str,
        grace_s: float = 0.1,
        slot: int | None = None,
        guard: Path = GUARD,
    ) -> None:
        self.turn = f"turn-{os.getpid()}-{time.monotonic_ns()}"
        self.folder, self.record_path = folder, folder / "record.json"
        lifeline, self.lifeline = os.pipe()
        self.report_fd, report = os.pipe()
        passed = [lifeline, report] + ([slot] if slot is not None else [])
        options += ("--slot", str(slot)) if slot is not None else ()
        options += ("--lifeline", str(lifeline), "--report", str(report), "--turn", self.turn)
        options += ("--record", str(self.record_path), "--grace", str(grace_s), "--mark", str(limit_mark(self.turn)))
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(guard), *options, "--", *argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=passed,
            env={**os.environ, "CC_AGENTS_TURN": self.turn},
            start_new_session=True,
        )
        os.close(lifeline)
        os.close(report)
        self._heard = b""

    def __enter__(self) -> Guarded:
        return self

    def __exit__(self, *_: object) -> None:
        """Leaves nothing behind, whatever the test has found."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for pid in self.survivors():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.let_go()
        os.close(self.report_fd)
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()

    # --- what is done to it --------------------------------------------------------------------------------

    def let_go(self) -> None:
        if self.lifeline >= 0:
            os.close(self.lifeline)
            self.lifeline = -1

    def end_app_server(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    # --- what is seen of it --------------------------------------------------------------------------------

    def seen(self) -> dict[int, int]:
        """pid and start time of every process that told of itself."""
        found = {}
        for path in self.folder.iterdir():
            if path.name.isdigit():
                found[int(path.name)] = int(path.read_text())
        return found

    def wait_for(self, processes: int) -> None:
        wait_until(lambda: len(self.seen()) >= processes)

    def survivors(self) -> set[int]:
        alive = {pid for pid, started in self.seen().items() if start_time(pid) == started}
        return (alive | marked(self.turn)) - {self.process.pid}

    def record(self) -> dict[str, object]:
        value: dict[str, object] = json.loads(self.record_path.read_text())
        return value

    def reports(self, until: str = "ended") -> list[dict[str, object]]:
        """All reports up to the named one, or to the end of them."""
        deadline = time.monotonic() + BOUND_S
        while f'"event":"{until}"'.encode() not in self._heard:
            ready, _, _ = select.select([self.report_fd], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"no {until!r} within {BOUND_S} s: {self._heard!r}"
            data = os.read(self.report_fd, 65536)
            if not data:
                break
            self._heard += data
        return [json.loads(line) for line in self._heard.splitlines()]
