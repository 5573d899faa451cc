"""Measures one run of a command: wall time, CPU of the process and of its tree, memory by who it belongs to.

Owns: wait4, the CPU clocks of other processes and /proc (Linux). Does not own: what is run or what the figures mean.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

CPU_LOOK_S = 0.003  # a guard's last look before it ends is that old at most: its CPU is short by no more
MEMORY_LOOK_S = 0.02
PATIENCE_S = 120.0  # no run here takes that long; past it, something hangs


class BadRun(Exception):
    """The command ended with another code than it should, or did not say what it had to say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Seconds and bytes. `cpu_s` has every descendant that was waited for, `self_cpu_s` the process alone."""

    wall_s: float
    cpu_s: float
    self_cpu_s: float
    stdout: bytes


def measure(
    argv: Sequence[str],
    env: Mapping[str, str],
    cwd: Path,
    *,
    code: int = 0,
    stdin: IO[bytes] | int = subprocess.DEVNULL,
    watch: Watch | None = None,
) -> Run:
    """Runs a command to its end. Raises BadRun when it ends with another code."""
    with tempfile.TemporaryFile() as errors:
        begun = time.perf_counter()
        running = subprocess.Popen(argv, env=env, cwd=cwd, stdin=stdin, stdout=subprocess.PIPE, stderr=errors)
        assert running.stdout is not None
        with watch.of(running.pid) if watch else running.stdout:
            with running.stdout as stdout:
                out = stdout.read()
            os.waitid(os.P_PID, running.pid, os.WEXITED | os.WNOWAIT)
            wall = time.perf_counter() - begun
        own = cpu_s(running.pid)
        _, status, usage = os.wait4(running.pid, 0)
        running.returncode = os.waitstatus_to_exitcode(status)
        if running.returncode != code:
            errors.seek(0)
            raise BadRun(f"{list(argv)} ended with {running.returncode}: {errors.read()[-2000:].decode()}")
    return Run(wall_s=wall, cpu_s=usage.ru_utime + usage.ru_stime, self_cpu_s=own or 0.0, stdout=out)


def cpu_s(pid: int) -> float | None:
    """CPU that a process has used, to the microsecond, its ended threads included; None when it is gone.

    A process that has ended and was not waited for still tells. clock_getcpuclockid(3): the clock of a pid.
    """
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return None


@dataclass(kw_only=True)
class Watch:
    """Looks at the processes of ours while a command runs: the command itself and its children, the guards.

    Codex is below a guard, so it is not among them. Watch CPU or memory, not both: looking at memory costs the
    watched process time.
    """

    memory: bool = False
    guards: bool = True  # hundreds of them are not looked at
    cpu: dict[int, float] = field(default_factory=dict)  # by pid; seconds at the last look
    pss: dict[str, int] = field(default_factory=dict)  # bytes: the highest sum of "sidecar", "guard" and "own"

    def guards_cpu_s(self) -> float:
        return sum(self.cpu.values())

    @contextmanager
    def of(self, pid: int) -> Iterator[None]:
        over = threading.Event()
        thread = threading.Thread(target=self._look, args=(pid, over))
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _look(self, root: int, over: threading.Event) -> None:
        while not over.wait(MEMORY_LOOK_S if self.memory else CPU_LOOK_S):
            if self.memory:
                self._look_at_memory(root)
            else:
                for pid in children(root):
                    if (used := cpu_s(pid)) is not None:
                        self.cpu[pid] = used

    def _look_at_memory(self, root: int) -> None:
        found = {"sidecar": pss(root), "guard": sum(map(pss, children(root))) if self.guards else 0}
        found["own"] = sum(found.values())
        for who, size in found.items():
            self.pss[who] = max(self.pss.get(who, 0), size)


# --- processes ----------------------------------------------------------------------------------------------


def children(pid: int) -> list[int]:
    """Of every thread of a process."""
    found: list[int] = []
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return found
    for task in tasks:
        found += map(int, _read(pid, f"task/{task}/children").split())
    return found


def tree(pid: int) -> Iterator[int]:
    """The process and all below it, as far as they can be seen."""
    yield pid
    for child in children(pid):
        yield from tree(child)


def pss(pid: int) -> int:
    """Its proportional share of memory, in bytes; 0 when it is gone."""
    for line in _read(pid, "smaps_rollup").splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def command_of(pid: int) -> list[str]:
    return [os.fsdecode(word) for word in _read(pid, "cmdline").split(b"\0")[:-1]]


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}", name).read_bytes()
    except OSError:
        return b""  # it ended while we looked
