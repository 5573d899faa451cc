"""What is left when the guard itself is killed by -9, and how it is found again: by record, marker and descent.

Real processes throughout. Serves spec:cc-agents.work-containment (rule.guardKilled).
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from guarded import GUARD, SHAPES, Guarded, argv_of, start_time, wait_until

from sidecar.leftovers import marks, orphans, process_table
from sidecar.leftovers.marks import limit_mark

GRACE_S = 0.1


def recorded(guarded: Guarded) -> dict[str, Any]:
    """The guard's record, once every process of the stand-in is in it."""
    wait_until(
        lambda: (
            guarded.seen().items()
            <= {g["pid"]: g["start_time"] for g in orphans.read_record(str(guarded.record_path))["groups"]}.items()
        )
    )
    record = orphans.read_record(str(guarded.record_path))
    assert record is not None
    return record


@pytest.mark.rule("rule.guardKilled")
@pytest.mark.parametrize("shape", [s for s in SHAPES if s != "fork_storm"])
def test_what_a_killed_guard_leaves_is_ended_by_record_and_marker(shape: str, tmp_path: Path) -> None:
    with Guarded(tmp_path, argv_of(tmp_path, shape)) as guarded:
        guarded.wait_for(2)
        record = recorded(guarded)
        guarded.process.kill()
        guarded.process.wait()
        ended = orphans.end_survivors(record, guarded.turn, grace_s=GRACE_S)
        assert guarded.survivors() == set()
        assert ended >= 1


@pytest.mark.rule("rule.guardKilled")
def test_a_storm_that_a_killed_guard_leaves_is_ended_too(tmp_path: Path) -> None:
    with Guarded(tmp_path, argv_of(tmp_path, "fork_storm")) as guarded:
        guarded.wait_for(2)
        guarded.process.kill()
        guarded.process.wait()
        orphans.end_survivors(None, guarded.turn, grace_s=GRACE_S)
        assert guarded.survivors() == set()


@pytest.mark.rule("rule.guardKilled")
@pytest.mark.rule("rule.markOfLimits")
@pytest.mark.parametrize("shape", [s for s in SHAPES if s not in ("fork_storm", "stopped")])
def test_the_marks_alone_find_them_also_after_a_cleared_environment(shape: str, tmp_path: Path) -> None:
    with Guarded(tmp_path, argv_of(tmp_path, shape), "--poll", "60") as guarded:
        guarded.wait_for(2)
        guarded.process.kill()
        guarded.process.wait()
        assert orphans.end_survivors(None, guarded.turn, grace_s=GRACE_S) >= 1
        assert guarded.survivors() == set()


@pytest.mark.rule("rule.guardKilled")
@pytest.mark.parametrize("shape", ["same_group", "cleared_environment", "closed_descriptors"])
def test_the_record_alone_finds_them(shape: str, tmp_path: Path) -> None:
    with Guarded(tmp_path, argv_of(tmp_path, shape)) as guarded:
        guarded.wait_for(2)
        record = recorded(guarded)
        guarded.process.kill()
        guarded.process.wait()
        assert orphans.end_survivors(record, None, grace_s=GRACE_S) >= 1
        assert guarded.survivors() == set()


@pytest.mark.rule("rule.guardKilled")
def test_a_turn_whose_guard_lives_is_left_alone(tmp_path: Path) -> None:
    with Guarded(tmp_path, argv_of(tmp_path, "double_fork")) as guarded:
        guarded.wait_for(2)
        record = recorded(guarded)
        assert orphans.owner_alive(record)
        assert orphans.end_survivors(record, guarded.turn, grace_s=GRACE_S) == 0
        assert guarded.process.poll() is None
        assert len(guarded.survivors()) == 2
        assert orphans.end_survivors(record, guarded.turn, grace_s=GRACE_S, force=True) >= 2
        guarded.process.wait(10)
        assert not orphans.owner_alive(record)
        assert guarded.survivors() == set()


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True)
    yield process
    process.communicate(timeout=10)


def record_of(process: subprocess.Popen[bytes], **changes: Any) -> dict[str, Any]:
    started = start_time(process.pid)
    assert started is not None
    entry = {"pid": process.pid, "pgid": process.pid, "start_time": started, "sid": process.pid, **changes}
    guard = {"pid": process.pid, "start_time": 0}
    return {
        "version": 1,
        "turn": "t",
        "boot_id": changes.get("boot_id", process_table.boot_id()),
        "guard": guard,
        "app_server": entry,
        "groups": [entry],
    }


@pytest.mark.rule("rule.guardKilled")
@pytest.mark.parametrize("change", [{"start_time": 1}, {"boot_id": "another"}])
def test_a_pid_of_another_time_is_never_touched(change: dict[str, Any], bystander: subprocess.Popen[bytes]) -> None:
    record = record_of(bystander)
    assert [p.pid for p in orphans.find_survivors(record, None)] == [bystander.pid]
    record = record_of(bystander, **change)
    assert orphans.find_survivors(record, None) == []
    assert orphans.end_survivors(record, None, grace_s=0) == 0
    assert bystander.poll() is None


@pytest.mark.rule("rule.guardKilled")
def test_another_turn_of_a_similar_name_is_never_touched() -> None:
    env = {**os.environ, "CC_AGENTS_TURN": "turn-12"}
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env=env)
    wait_until(lambda: orphans.find_survivors(None, "turn-12"))
    assert orphans.find_survivors(None, "turn-1") == []
    assert orphans.find_survivors(None, "") == []
    assert [p.pid for p in orphans.find_survivors(None, "turn-12")] == [other.pid]
    other.communicate(timeout=10)


@pytest.mark.rule("rule.guardKilled")
def test_this_process_and_its_ancestors_are_never_found() -> None:
    source = "import os, sys; from sidecar import orphans; print(orphans.find_survivors(None, 'mine'))"
    shell = [
        "/bin/sh",
        "-c",
        f'{sys.executable} -c "{source}"; true',
    ]
    root = str(Path(orphans.__file__).parent.parent)
    env = {**os.environ, "CC_AGENTS_TURN": "mine", "PYTHONPATH": root}
    assert subprocess.run(shell, env=env, capture_output=True, timeout=20, check=True).stdout == b"[]\n"


@pytest.mark.rule("rule.guardKilled")
def test_psutil_tells_the_same_as_proc() -> None:
    pid = os.getpid()
    proc, other = process_table.linux_proc(pid), process_table.other_proc(pid)
    assert proc is not None
    assert other is not None
    assert (other.pid, other.ppid, other.pgid) == (proc.pid, proc.ppid, proc.pgid)
    assert process_table.other_environment(pid) >= {f"PATH={os.environ['PATH']}"}
    assert pid in process_table.other_pids()


@pytest.mark.rule("rule.guardKilled")
def test_a_missing_record_is_none_and_a_strange_one_is_said(tmp_path: Path) -> None:
    assert orphans.read_record(str(tmp_path / "none")) is None
    (tmp_path / "strange").write_text('{"version": 2}')
    with pytest.raises(ValueError, match="strange"):
        orphans.read_record(str(tmp_path / "strange"))


# --- the mark of the limits -----------------------------------------------------------------------------------


@pytest.mark.rule("rule.markOfLimits")
def test_no_two_turns_have_the_same_number_and_it_fits_every_kernel() -> None:
    numbers = {limit_mark(f"j1m8p3fdagn{n:02}") for n in range(100)}
    assert len(numbers) == 100
    assert all(0 <= number < 2**62 for number in numbers)


@pytest.mark.rule("rule.markOfLimits")
def test_a_limit_that_somebody_set_for_themselves_is_no_mark(bystander: subprocess.Popen[bytes]) -> None:
    resource.prlimit(bystander.pid, marks.RLIMIT_LOCKS, (4711, resource.RLIM_INFINITY))
    assert process_table.limit(bystander.pid) == 4711
    assert orphans.find_survivors(None, "turn") == []
    resource.prlimit(bystander.pid, marks.RLIMIT_LOCKS, (limit_mark("turn"), resource.RLIM_INFINITY))
    assert [p.pid for p in orphans.find_survivors(None, "turn")] == [bystander.pid]


# --- adoption -------------------------------------------------------------------------------------------------

ADOPTS = f"""
import ctypes, os, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
sys.path[:0] = [{str(Path(__file__).parent)!r}, {str(Path(__file__).parent.parent)!r}]
from pathlib import Path
from guarded import Guarded, argv_of, start_time
from sidecar.leftovers import orphans
folder, later = Path(sys.argv[1]), Path(sys.argv[1], "later")
later.mkdir()
with Guarded(folder, argv_of(folder, "cleared_environment", "double_fork"), guard=Path(sys.argv[2])) as killed:
    killed.wait_for(3)
    since = start_time(killed.process.pid)
    killed.process.kill()
    killed.process.wait()
    with Guarded(later, argv_of(later, "double_fork")) as other:
        other.wait_for(2)
        adopted = orphans.Adopted(since=since, ours=lambda: frozenset([other.process.pid]))
        ended = orphans.end_survivors(None, None, grace_s=0.1, adopted=adopted)
        children = open(f"/proc/self/task/{{os.getpid()}}/children").read().split()
        print(ended, sorted(killed.survivors()), len(other.survivors()), children == [str(other.process.pid)])
"""


@pytest.mark.rule("rule.secondSubreaper")
def test_a_subreaper_ends_and_reaps_what_it_adopted_and_leaves_its_other_guards_alone(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", ADOPTS, str(tmp_path), str(GUARD)], capture_output=True, timeout=60, check=True
    )
    assert ran.stdout.decode().split(maxsplit=1) == ["2", "[] 2 True\n"], ran.stderr.decode()


# --- a guard that was stopped ---------------------------------------------------------------------------------


@pytest.mark.rule("rule.stoppedGuard")
def test_a_stopped_guard_goes_on_and_ends_its_turn_when_somebody_waits_for_it(tmp_path: Path) -> None:
    with Guarded(tmp_path, argv_of(tmp_path, "double_fork")) as guarded:
        guarded.wait_for(2)
        record = recorded(guarded)
        guarded.process.send_signal(signal.SIGSTOP)
        guarded.let_go()
        reaper = threading.Thread(target=guarded.process.wait)
        reaper.start()
        assert orphans.guard_ends(record, 10.0)
        reaper.join()
        assert guarded.survivors() == set()


@pytest.mark.rule("rule.stoppedGuard")
def test_a_guard_that_has_no_reason_to_end_is_told_as_living(tmp_path: Path) -> None:
    with Guarded(tmp_path, argv_of(tmp_path)) as guarded:
        guarded.wait_for(1)
        assert not orphans.guard_ends(recorded(guarded), 0.0)
        assert guarded.process.poll() is None
