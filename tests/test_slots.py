"""Slots: how many, in which order, and that the kernel frees what a dead process held.

Serves spec:cc-agents.codex-adapter (rule.defaultCap, rule.slotsInOrder, rule.slotFreed). Real processes, real locks.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sidecar import capacity, slots
from sidecar.errors import UserError

ROOT = Path(__file__).resolve().parent.parent
BOUND_S = 60.0  # for facts that take milliseconds on an idle machine
GIB = 1024**3
ME = {"job": "j-me", "cwd": "/w", "label": "mine"}


def wait_for(fact: Callable[[], object]) -> None:
    end = time.monotonic() + BOUND_S
    while not fact():
        assert time.monotonic() < end, "the fact did not come true"
        time.sleep(0.005)


@contextlib.contextmanager
def python(code: str, *args: object) -> Iterator[subprocess.Popen[str]]:
    """A process that runs `code` and dies with the block."""
    child = subprocess.Popen(
        [sys.executable, "-S", "-c", "import os, sys, time\nfrom sidecar import slots\n" + code, *map(str, args)],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield child
    finally:
        child.kill()
        child.communicate(timeout=BOUND_S)


def said(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


@pytest.fixture
def run(tmp_path: Path) -> str:
    return str(tmp_path)


@pytest.fixture
def take(run: str) -> Iterator[Callable[..., slots.Slot | None]]:
    """try_take, with every slot it gave released at the end."""
    given: list[slots.Slot] = []

    def take(cap: int, key: str = "codex", **holder: str) -> slots.Slot | None:
        slot = slots.try_take(run, key, cap, {**ME, **holder})
        given.extend([slot] if slot else [])
        return slot

    yield take
    for slot in given:
        slot.release()


def poll_until(waiter: slots.Waiter) -> slots.Slot:
    end = time.monotonic() + BOUND_S
    while (slot := waiter.poll()) is None:
        assert time.monotonic() < end, "no slot"
        time.sleep(0.005)
    return slot


HOLD = "s = slots.try_take(sys.argv[1], 'codex', 9, {'job': 'j-child'}); print('held', flush=True)\n"
WAIT = """
w = slots.Waiter(sys.argv[1], 'codex', 1, {'job': 'j-child'}).__enter__()
print('waiting', flush=True)
sys.stdin.readline()
"""
TURN = """
with slots.Waiter(sys.argv[1], 'codex', 2, {'job': 'j'}) as w:
    while (s := w.poll()) is None:
        time.sleep(0.01)
    began = __import__('json').loads(os.pread(s.fd, 999, 0))['started_at']
    time.sleep(0.02)  # the turn
    line = f'{w._ticket} {began!r} {time.time()!r}\\n'
    s.release()
os.write(os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT), line.encode())
"""

# --- how many -------------------------------------------------------------------------------------------------


@pytest.mark.rule("rule.defaultCap")
@pytest.mark.parametrize(
    ("cores", "memory", "cap"),
    [(2, 64 * GIB, 6), (64, 8 * GIB, 10), (1, 100 * 1024**2, 1), (0.1, 64 * GIB, 1), (1.5, 64 * GIB, 4),
     (4, None, 12), (8, 800 * 1024**2 * 5 - 1, 4), (8, 800 * 1024**2 * 5, 5)],
)  # fmt: skip
def test_the_default_cap_is_the_smaller_of_cores_and_memory(cores: float, memory: int | None, cap: int) -> None:
    assert capacity.cap_from(cores, memory) == cap


def machine(root: Path, files: dict[str, str], meminfo_kib: int = 32 * 1024**2) -> str:
    for name, text in ({"proc/meminfo": f"MemTotal:       {meminfo_kib} kB\nMemFree: 1 kB\n"} | files).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return str(root)


@pytest.mark.rule("rule.defaultCap")
def test_without_cgroups_the_machine_counts(tmp_path: Path) -> None:
    root = machine(tmp_path, {})
    assert capacity.available_cores(root, affinity=16) == 16
    assert capacity.available_memory(root) == 32 * GIB


@pytest.mark.rule("rule.defaultCap")
def test_the_tightest_cgroup_v2_limit_on_the_way_up_counts(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "0::/user.slice/app\n",
        "sys/fs/cgroup/user.slice/app/cpu.max": "max 100000\n",
        "sys/fs/cgroup/user.slice/app/memory.max": f"{6 * GIB}\n",
        "sys/fs/cgroup/user.slice/cpu.max": "150000 100000\n",
        "sys/fs/cgroup/user.slice/memory.max": "max\n",
    }
    root = machine(tmp_path, files)
    assert capacity.available_cores(root, affinity=8) == 1.5
    assert capacity.available_cores(root, affinity=1) == 1
    assert capacity.available_memory(root) == 6 * GIB


@pytest.mark.rule("rule.defaultCap")
def test_cgroup_v1_limits_count_where_only_the_top_is_mounted(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "4:memory:/docker/abc\n2:cpu,cpuacct:/docker/abc\n1:name=systemd:/x\n0::/\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{2 * GIB}\n",
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "200000\n",
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
    }
    root = machine(tmp_path, files)
    assert capacity.available_cores(root, affinity=8) == 2
    assert capacity.available_memory(root) == 2 * GIB


@pytest.mark.rule("rule.defaultCap")
def test_no_limit_in_cgroup_v1_and_a_path_outside_the_namespace_limit_nothing(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "4:memory:/../../other\n2:cpu:/\n0::/../..\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
        "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
    }
    root = machine(tmp_path, files)
    assert capacity.available_cores(root, affinity=8) == 8
    assert capacity.available_memory(root) == 32 * GIB


@pytest.mark.rule("rule.defaultCap")
def test_this_machine_has_a_cap_of_at_least_one() -> None:
    assert 1 <= slots.default_cap() <= 3 * (os.cpu_count() or 1)


@pytest.mark.rule("rule.defaultCap")
def test_no_more_than_the_cap_are_given_and_a_release_gives_one_back(take: Callable[..., slots.Slot]) -> None:
    first, second = take(2), take(2)
    assert first
    assert second
    assert take(2) is None
    first.release()
    first.release()
    third = take(2)
    assert (third.number, second.number) == (1, 2)
    assert take(1, key="other") is not None


@pytest.mark.rule("rule.defaultCap")
def test_a_lower_cap_counts_the_slots_that_a_higher_one_gave(take: Callable[..., slots.Slot]) -> None:
    given = [take(4) for _ in range(4)]
    given[0].release()
    given[1].release()
    assert take(2) is None  # numbers 3 and 4 are still held
    given[2].release()
    assert take(2).number == 1
    assert take(2) is None
    assert take(3).number == 2


# --- in the order of asking -----------------------------------------------------------------------------------


@pytest.mark.rule("rule.slotsInOrder")
def test_thirty_processes_get_two_slots_in_the_order_of_their_tickets(
    run: str, tmp_path: Path, take: Callable[..., slots.Slot]
) -> None:
    log = tmp_path / "log"
    ours = [take(2), take(2)]
    queue = tmp_path / "slots" / "codex.queue"
    with contextlib.ExitStack() as stack:
        children = [stack.enter_context(python(TURN, run, log)) for _ in range(30)]
        wait_for(lambda: len(os.listdir(queue)) == 30)
        for slot in ours:
            slot.release()
        assert [c.wait(BOUND_S) for c in children] == [0] * 30
    turns = sorted((float(b), float(e), t) for t, b, e in map(str.split, log.read_text().splitlines()))
    assert [t for _, _, t in turns] == sorted(t for _, _, t in turns)
    assert len(turns) == 30
    assert max(sum(b <= began < e for b, e, _ in turns) for began, _, _ in turns) <= 2
    assert os.listdir(queue) == []


@pytest.mark.rule("rule.slotsInOrder")
def test_many_waiters_of_one_process_are_served_in_order_with_their_place_shown(
    run: str, take: Callable[..., slots.Slot]
) -> None:
    held = take(1)
    with contextlib.ExitStack() as stack:
        waiters = [stack.enter_context(slots.Waiter(run, "codex", 1, ME)) for _ in range(50)]
        assert [w.ahead for w in waiters] == list(range(50))
        assert [w.poll() for w in reversed(waiters)] == [None] * 50
        held.release()
        for n, waiter in enumerate(waiters):
            assert not any(later.poll() for later in waiters[n + 1 :])
            slot = waiter.poll()
            assert slot is not None
            slot.release()


@pytest.mark.rule("rule.slotsInOrder")
def test_nobody_takes_a_slot_past_a_waiter(run: str, take: Callable[..., slots.Slot]) -> None:
    with slots.Waiter(run, "codex", 1, ME) as waiter:
        assert take(1) is None
        slot = waiter.poll()
        assert slot is not None
    slot.release()
    assert take(1) is not None


@pytest.mark.rule("rule.slotsInOrder")
def test_a_waiter_that_leaves_or_is_killed_holds_up_nobody(
    run: str, tmp_path: Path, take: Callable[..., slots.Slot]
) -> None:
    held = take(1)
    queue = tmp_path / "slots" / "codex.queue"
    with python(WAIT, run) as killed, slots.Waiter(run, "codex", 1, ME) as leaves:
        assert said(killed) == "waiting"
        with slots.Waiter(run, "codex", 1, ME) as last:
            assert last.poll() is None
            assert last.ahead == 2
            held.release()
            leaves.__exit__(None, None, None)
            assert last.poll() is None  # the other process still waits
            killed.kill()
            killed.wait(BOUND_S)
            assert last.ahead == 1  # its ticket is there until somebody looks closer
            slot = last.poll()
            assert slot is not None
            slot.release()
    assert os.listdir(queue) == []


@pytest.mark.rule("rule.slotsInOrder")
def test_a_waiter_keeps_its_place_when_its_files_are_cleaned_away(
    run: str, tmp_path: Path, take: Callable[..., slots.Slot]
) -> None:
    held = take(1)
    with slots.Waiter(run, "codex", 1, ME) as first, slots.Waiter(run, "codex", 1, ME) as second:
        assert second.poll() is None
        queue = tmp_path / "slots" / "codex.queue"
        for name in os.listdir(queue):
            os.unlink(queue / name)
        queue.rmdir()
        assert first.poll() is None
        assert second.poll() is None
        assert (first.ahead, second.ahead) == (0, 1)
        held.release()
        assert second.poll() is None
        poll_until(first).release()
        poll_until(second).release()


# --- freed by the kernel --------------------------------------------------------------------------------------


@pytest.mark.rule("rule.slotFreed")
def test_the_slot_of_a_killed_process_is_free_when_it_is_gone(run: str, take: Callable[..., slots.Slot]) -> None:
    with python(HOLD + "sys.stdin.readline()", run) as child:
        assert said(child) == "held"
        assert take(1) is None
        child.kill()
        child.wait(BOUND_S)
        assert take(1) is not None


@pytest.mark.rule("rule.slotFreed")
def test_the_slot_stays_taken_while_a_guard_has_its_descriptor(run: str, take: Callable[..., slots.Slot]) -> None:
    guard = (
        "import subprocess\n"
        "g = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE, pass_fds=[s.fd])\n"
        "print(g.pid, flush=True)\n"
        "sys.stdin.readline(); s.release(); print('released', flush=True); sys.stdin.readline()\n"
    )
    with python(HOLD + guard, run) as child:
        assert said(child) == "held"
        pid = int(said(child))
        assert child.stdin is not None
        child.stdin.write("\n")
        child.stdin.flush()
        assert said(child) == "released"
        assert take(1) is None
        (holder,) = slots.holders(run, "codex")
        assert (holder.job, holder.pid) == ("j-child", child.pid)
        os.kill(pid, signal.SIGSTOP)  # so that it outlives the end of its standard input
        child.kill()
        child.wait(BOUND_S)
        assert take(1) is None
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: take(1))


@pytest.mark.rule("rule.slotFreed")
def test_a_child_that_was_not_given_the_descriptor_holds_no_slot(run: str, take: Callable[..., slots.Slot]) -> None:
    slot = take(1)
    with python("print('up', flush=True); sys.stdin.readline()") as child:
        assert said(child) == "up"
        slot.release()
        assert take(1) is not None


# --- who holds them -------------------------------------------------------------------------------------------


def test_holders_are_named_with_job_age_and_directory(run: str, take: Callable[..., slots.Slot]) -> None:
    assert slots.holders(run, "codex") == []
    before = time.time()
    take(3, cwd="/w/\udcff\n", label="ж")
    gone = take(3)
    gone.release()
    (holder,) = slots.holders(run, "codex")
    assert holder[:3] == (1, "j-me", os.getpid())
    assert (holder.cwd, holder.label) == ("/w/\udcff\n", "ж")
    assert holder.started_at is not None
    assert before <= holder.started_at <= time.time()


@pytest.mark.parametrize("text", ["", '{"job": "j-m', "[]", '{"job": 3, "pid": "x", "started_at": null}', "\udcff"])
def test_a_torn_holder_file_still_counts_as_held(
    run: str, tmp_path: Path, take: Callable[..., slots.Slot], text: str
) -> None:
    take(1)
    (tmp_path / "slots" / "codex.1.lock").write_text(text, errors="surrogateescape")
    assert slots.holders(run, "codex") == [slots.Holder(1)]
    assert take(1) is None


def test_looking_at_the_holders_never_costs_a_starter_its_slot(run: str, take: Callable[..., slots.Slot]) -> None:
    look = "print('up', flush=True)\nwhile True: slots.holders(sys.argv[1], 'codex')"
    with python(look, run) as child:
        assert said(child) == "up"
        for _ in range(200):
            slot = take(1)
            assert slot is not None
            slot.release()


def test_a_stopped_process_in_the_bucket_blocks_nobody_for_ever(
    run: str, tmp_path: Path, take: Callable[..., slots.Slot]
) -> None:
    with slots.Waiter(run, "codex", 1, ME) as waiter:
        with (tmp_path / "slots" / "codex.mutex").open() as mutex:
            fcntl.flock(mutex, fcntl.LOCK_EX)
            assert waiter.poll() is None
            assert waiter.holders == []
            assert take(1) is None
            with pytest.raises(UserError, match="stopped") as caught:
                slots.holders(run, "codex")
            assert caught.value.reason == "slots_busy"
        poll_until(waiter).release()


def test_slot_files_are_private_and_stay(run: str, tmp_path: Path, take: Callable[..., slots.Slot]) -> None:
    take(1).release()
    with slots.Waiter(run, "codex", 1, ME):
        for path in (tmp_path / "slots").rglob("*"):
            assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    lock = tmp_path / "slots" / "codex.1.lock"
    inode = lock.stat().st_ino
    take(1)
    assert lock.stat().st_ino == inode
    assert json.loads(lock.read_text())["label"] == "mine"


@pytest.mark.parametrize("key", ["", "../x", "a.b", "Codex", "a/b"])
def test_a_key_that_could_leave_the_folder_is_a_bug(run: str, key: str) -> None:
    with pytest.raises(ValueError, match="slot key"):
        slots.try_take(run, key, 1, ME)


def test_a_link_in_place_of_a_lock_is_not_followed(run: str, tmp_path: Path) -> None:
    (tmp_path / "slots").mkdir()
    (tmp_path / "slots" / "codex.mutex").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="cannot open"):
        slots.try_take(run, "codex", 1, ME)
    assert not (tmp_path / "elsewhere").exists()
