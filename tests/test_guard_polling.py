"""The guard's other way, without a subreaper, as macOS has it: what polling follows, and what it can't.

Runs on Linux too, with /proc as its table; the table made from ps is compared with /proc. Serves
spec:cc-agents.work-containment.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from guarded import Guarded, argv_of, wait_until

from guard import processes

FOLLOWED = ("same_group", "new_session", "nohup", "ignored_term", "stopped")
LOOKED_AT = ("double_fork", "closed_descriptors", "cleared_environment")
FAST = ("--way", "polling", "--poll", "0.01")


@pytest.mark.rule("rule.untilNoChildren")
@pytest.mark.parametrize("shape", FOLLOWED)
@pytest.mark.parametrize("reason", ["exit", "lifeline", "signal"])
def test_what_a_look_has_seen_is_ended(shape: str, reason: str, tmp_path: Path) -> None:
    with Guarded(tmp_path, argv_of(tmp_path, shape), *FAST) as guarded:
        guarded.wait_for(2)
        wait_until(lambda: guarded.seen().items() <= recorded(guarded).items())
        {"exit": guarded.end_app_server, "lifeline": guarded.let_go, "signal": guarded.process.terminate}[
            reason
        ]()
        guarded.process.wait(10)
        assert guarded.survivors() == set()
        assert guarded.reports()[-1]["reason"] == reason


@pytest.mark.rule("rule.untilNoChildren")
def test_a_process_that_leaves_group_and_parent_after_a_look_is_still_followed(tmp_path: Path) -> None:
    source = (
        "import os, signal, sys, time; folder = sys.argv[1]; pid = os.fork()\n"
        "if pid: os.waitpid(pid, os.WNOHANG); sys.stdin.read(); sys.exit()\n"
        "if os.fork(): os.read(os.open(folder + '/go', os.O_RDONLY), 1); os._exit(0)\n"
        "stat = open('/proc/self/stat').read().rpartition(')')[2].split()\n"
        "open(f'{folder}/{os.getpid()}', 'w').write(stat[19])\n"
        "while os.getppid() != int(stat[1]) or True: time.sleep(60)\n"
    )
    os.mkfifo(tmp_path / "go")
    with Guarded(tmp_path, [sys.executable, "-c", source, str(tmp_path)], *FAST) as guarded:
        guarded.wait_for(1)
        wait_until(lambda: guarded.seen().items() <= recorded(guarded).items())
        (tmp_path / "go").write_text("x")  # now its parent ends
        (pid,) = guarded.seen()
        wait_until(lambda: parent(pid) == 1 or parent(pid) != 0)
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
    import time

    assert time.localtime(proc.start_time)[:6] == (2026, 11, 30, 10, 47, 49)
    assert (proc.pid, proc.ppid, proc.pgid, proc.zombie) == (4711, 1, 4710, False)
