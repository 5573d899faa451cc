"""Measures one run of a command: wall time, CPU of the whole tree, and memory by who it belongs to.

Owns: wait4 and /proc (Linux). Does not own: what is run or what is made of the figures (turn.py).
"""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SAMPLE_S = 0.01  # a turn takes some 300 ms: thirty looks see its peak, and cost little beside it


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Seconds; `cpu_s` has every descendant that was waited for. `pss_kib` only where memory was watched."""

    wall_s: float
    cpu_s: float
    stdout: bytes
    pss_kib: Mapping[str, int]


class BadRun(Exception):
    """The command ended with another code than 0, or did not say what it had to say."""


def measure(argv: Sequence[str], env: Mapping[str, str], cwd: Path, whose: Callable[[int], str] | None = None) -> Run:
    """Run a command to its end. `whose` names the owner of a process by its pid: then memory is watched."""
    with tempfile.TemporaryFile() as errors:
        begun = time.perf_counter()
        running = subprocess.Popen(
            argv, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
        )
        assert running.stdout is not None
        watch = _Watch(running.pid, whose)
        with running.stdout as stdout:
            out = stdout.read()
        _, status, usage = os.wait4(running.pid, 0)
        wall = time.perf_counter() - begun
        peaks = watch.stop()
        running.returncode = os.waitstatus_to_exitcode(status)
        if running.returncode != 0:
            errors.seek(0)
            raise BadRun(f"{argv} ended with {running.returncode}: {errors.read()[-2000:].decode()}")
    return Run(wall_s=wall, cpu_s=usage.ru_utime + usage.ru_stime, stdout=out, pss_kib=peaks)


class _Watch:
    """Looks at the processes below one pid until it is stopped; keeps the highest sum of each owner."""

    def __init__(self, pid: int, whose: Callable[[int], str] | None) -> None:
        self._pid, self._whose = pid, whose
        self._peaks: dict[str, int] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)
        if whose:
            self._thread.start()

    def stop(self) -> dict[str, int]:
        self._over.set()
        if self._whose:
            self._thread.join()
        return self._peaks

    def _look(self) -> None:
        assert self._whose
        while not self._over.wait(SAMPLE_S):
            sums: dict[str, int] = {}
            for pid in tree(self._pid):
                owner = self._whose(pid)
                sums[owner] = sums.get(owner, 0) + pss_kib(pid)
            for owner, total in sums.items():
                self._peaks[owner] = max(self._peaks.get(owner, 0), total)


def tree(pid: int) -> Iterable[int]:
    """The process and all below it, as far as they can be seen."""
    yield pid
    for child in _read(pid, f"task/{pid}/children").split():
        yield from tree(int(child))


def pss_kib(pid: int) -> int:
    """Its proportional share of memory; 0 when it is gone."""
    for line in _read(pid, "smaps_rollup").splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1])
    return 0


def command_of(pid: int) -> list[str]:
    return [os.fsdecode(word) for word in _read(pid, "cmdline").split(b"\0")]


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}", name).read_bytes()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return b""  # it ended while we looked


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The median of some figures, and how far the middle half of them lies apart."""

    median: float
    low: float
    high: float
    quartiles: float

    @classmethod
    def of(cls, figures: Sequence[float]) -> Spread:
        if len(figures) < 2:
            return cls(median=figures[0], low=figures[0], high=figures[0], quartiles=0.0)
        first, median, third = statistics.quantiles(figures, n=4, method="inclusive")
        return cls(median=median, low=min(figures), high=max(figures), quartiles=third - first)
