"""The guard's other way, without a subreaper, as macOS has it: what polling follows, and what it can't.

Runs on Linux too, with /proc as its table; the table made from ps is compared with /proc. Serves
spec:cc-agents.work-containment.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest
from guarded import Guarded, argv_of, wait_until

from guard import processes

FOLLOWED = ("same_group", "new_session", "nohup", "ignored_term", "stopped")
LEAVER = """
import os, sys, time
folder = sys.argv[1]
if os.fork():
    sys.stdin.read()
elif os.fork():
    os.read(os.open(folder + "/go", os.O_RDONLY), 1)
else:
    os.setsid()
    start_time = open("/proc/self/stat").read().rpartition(")")[2].split()[19]
    with open(f"{folder}/{os.getpid()}.draft", "w") as file: file.write(start_time)
    os.rename(f"{folder}/{os.getpid()}.draft", f"{folder}/{os.getpid()}")
    while True: time.sleep(60)
"""
FAST = ("--way", "polling", "--poll", "0.01")


@pytest.mark.rule("rule.untilNoChildren")
@pytest.mark.parametrize("shape", FOLLOWED)
@pytest.mark.parametrize("reason", ["exit", "lifeline", "signal"])
def test_what_a_look_has_seen_is_ended(shape: str, reason: str, tmp_path: Path) -> None:
    with Guarded(tmp_path, argv_of(tmp_path, shape), *FAST) as guarded:
        guarded.wait_for(2)
        wait_until(lambda: guarded.seen().items() <= recorded(guarded).items())
        {"exit": guarded.end_app_server, "lifeline": guarded.let_go, "signal": guarded.process.terminate}[reason]()
        guarded.process.wait(10)
        assert guarded.survivors() == set()
        assert guarded.reports()[-1]["reason"] == reason


@pytest.mark.rule("rule.untilNoChildren")
def test_a_process_that_leaves_group_and_parent_after_a_look_is_still_followed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    with Guarded(tmp_path, [sys.executable, "-c", LEAVER, str(tmp_path)], *FAST) as guarded:
        guarded.wait_for(1)
        wait_until(lambda: guarded.seen().items() <= recorded(guarded).items())
        (pid,) = guarded.seen()
        middle = parent(pid)
        (tmp_path / "go").write_text("x")  # now its parent ends
        wait_until(lambda: parent(pid) not in (0, middle))
        guarded.let_go()
        guarded.process.wait(10)
        assert guarded.survivors() == set()


def parent(pid: int) -> int:
    proc = processes.read_stat(pid)
    return proc.ppid if proc else 0


def recorded(guarded: Guarded) -> dict[int, int]:
    groups = guarded.record()["groups"]
    assert isinstance(groups, list)
    return {g["pid"]: g["start_time"] for g in groups}


@pytest.mark.rule("rule.untilNoChildren")
@pytest.mark.skipif(sys.platform != "linux", reason="compares with /proc")
def test_ps_and_proc_show_the_same_processes(tmp_path: Path) -> None:
    with Guarded(tmp_path, argv_of(tmp_path, "new_session", "double_fork")) as guarded:
        guarded.wait_for(3)
        pids, by_ps = processes.ps_table(set())
        rows = {p.pid: (p.ppid, p.pgid, p.zombie) for p in by_ps}
        for pid in guarded.seen():
            proc = processes.read_stat(pid)
            assert proc is not None
            assert rows[pid] == (proc.ppid, proc.pgid, proc.zombie)
        assert set(guarded.seen()) <= pids
        assert guarded.process.pid not in {p.pid for p in processes.ps_table({guarded.process.pid})[1]}


@pytest.mark.rule("rule.untilNoChildren")
def test_the_start_time_of_ps_is_read_as_seconds_since_1970() -> None:
    row = "4711 Ss 1 4710 Mon Nov 30 10:47:49 2026".split()
    proc = processes.parse_row(row)
    assert time.localtime(proc.start_time)[:6] == (2026, 11, 30, 10, 47, 49)
    assert (proc.pid, proc.ppid, proc.pgid, proc.zombie) == (4711, 1, 4710, False)
