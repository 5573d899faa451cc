"""Jobs: found by everybody, whole at every moment, and honest about an owner that is gone.

Serves spec:cc-agents.codex-adapter (rule.recordsByRename, rule.ownerGone). Real folders, real processes.
"""

from __future__ import annotations

import os
import resource
import stat
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sidecar import owner as owners
from sidecar import store as stores
from sidecar.errors import UserError
from sidecar.journal import Journal
from sidecar.store import JOB_ID, Job, Store

ROOT = Path(__file__).resolve().parent.parent
BOUND_S = 60.0  # for facts that take milliseconds on an idle machine
THREAD = "0199aaaa-1111-7000-8000-00000000000a"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "state"))


def make(store: Store, *, state: str = "queued", owner: Mapping[str, Any] | None = None, **fields: Any) -> Job:
    job = store.create({"prompt": "x"}, owner=owner or owners.this_process(), **{"cwd": "/w", **fields})
    if state != "queued":
        job.publish(state=state)
    return job


def gone_owner() -> dict[str, Any]:
    return owners.this_process() | {"start_time": 1}


def record_of(job: Job) -> Path:
    return Path(job.dir) / "record.json"


def python(code: str, *args: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-S", "-c", code, *map(str, args)],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


# --- writing --------------------------------------------------------------------------------------------------


def test_a_job_is_queued_then_runs_then_has_ended(store: Store) -> None:
    job = store.create({"prompt": "héllo"}, owner=owners.this_process(), cwd="/w", label="a")
    view = store.read(job.id)
    assert (view.state, view.cwd, view.thread, view.over) == ("queued", "/w", None, False)
    assert view.request() == {"prompt": "héllo"}
    assert view.final_text() is None
    assert abs(view.created_at - time.time()) < BOUND_S
    job.publish(state="running", thread=THREAD)
    view = store.read(job.id)
    assert (view.state, view.thread, view.reason) == ("running", THREAD, None)
    job.publish(state="ended", status="completed")
    view = store.read(job.id)
    assert (view.state, view.status, view.cwd, view.over) == ("ended", "completed", "/w", True)


def test_a_state_never_goes_back(store: Store) -> None:
    job = make(store, state="ended")
    with pytest.raises(ValueError, match="ended cannot be running"):
        job.publish(state="running")
    assert store.read(job.id).state == "ended"


@pytest.mark.rule("rule.recordsByRename")
def test_the_disk_is_waited_for_only_where_an_outcome_is_kept(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.path.basename(os.readlink(f"/proc/self/fd/{fd}"))))
    job = make(store, state="running")
    job.publish(thread=THREAD)
    assert synced == []
    job.write_final("the answer")
    job.publish(state="ended", status="completed")
    assert [name.partition(".")[0] for name in synced] == ["final", "record"]


@pytest.mark.rule("rule.exactFinal")
@pytest.mark.parametrize("text", ["", "no newline", "crlf\r\n\r", "漢字 🎉", "lone \ud83c surrogate", "x" * 2_000_000])
def test_the_final_text_comes_back_as_it_was(store: Store, text: str) -> None:
    job = make(store)
    job.write_final(text)
    assert store.read(job.id).final_text() == text


def test_what_is_no_utf8_survives_in_a_record_that_is_ascii(store: Store) -> None:
    job = make(store, cwd="/w/\udcff", label="ж")
    assert record_of(job).read_bytes().isascii()
    assert store.read(job.id).cwd == "/w/\udcff"
    assert store.last_for("/w/\udcff") is not None


def test_files_are_private_and_nothing_half_made_stays(store: Store, tmp_path: Path) -> None:
    job = make(store, state="running")
    job.write_final("x")
    Journal(job.events_path, warn=pytest.fail).close()
    found = sorted((tmp_path / "state").rglob("*"))
    assert [p.name for p in found] == [
        "jobs", job.id, "events.ndjson", "final.txt", "record.json", "request.json"
    ]  # fmt: skip
    for path in found:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


@pytest.mark.rule("rule.recordsByRename")
def test_a_reader_never_meets_half_a_record(store: Store, tmp_path: Path) -> None:
    job, stop = make(store), tmp_path / "stop"
    code = (
        "import itertools, os, sys; from sidecar.store import Job; from sidecar.files import load_json\n"
        "job = Job(sys.argv[1], load_json(sys.argv[1] + '/record.json')[0])\n"
        "for n in itertools.count():\n"
        "    job.publish(state='running', n=n, pad='x' * (n * 97 % 20000))\n"
        "    if os.path.exists(sys.argv[2]): break\n"
    )
    with python(code, job.dir, stop) as writer:
        seen: set[Any] = set()
        end = time.monotonic() + BOUND_S
        while len(seen) < 50 and time.monotonic() < end:
            view = store.read(job.id)
            assert view.state in ("queued", "running"), view.reason
            seen.add(view.record.get("n"))
        stop.touch()
        assert writer.wait(BOUND_S) == 0
    assert len(seen) >= 50


@pytest.mark.rule("rule.recordsByRename")
def test_a_record_that_cannot_be_written_leaves_the_old_one(store: Store) -> None:
    job = make(store, state="running")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))  # a disk that is full after 4 KiB
    try:
        with pytest.raises(OSError, match="too large"):
            job.publish(state="ended", pad="x" * 10_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert store.read(job.id).state == "running"
    assert sorted(os.listdir(job.dir)) == ["record.json", "request.json"]
    job.publish(state="ended")
    assert store.read(job.id).state == "ended"


def test_a_state_folder_that_cannot_be_used_is_the_users_to_mend(tmp_path: Path) -> None:
    (tmp_path / "state").touch()
    with pytest.raises(UserError) as caught:
        make(Store(str(tmp_path / "state")))
    assert caught.value.reason == "state_dir"
    assert str(tmp_path) in caught.value.message


def test_two_hundred_jobs_made_at_once_by_several_processes_are_all_found(store: Store, tmp_path: Path) -> None:
    code = (
        "import sys; from sidecar.store import Store; from sidecar.owner import this_process\n"
        "s = Store(sys.argv[1]); o = this_process()\n"
        "for n in range(25): print(s.create({'n': n}, owner=o, cwd='/w').id)\n"
    )
    children = [python(code, tmp_path / "state") for _ in range(8)]
    made = [line for c in children for line in c.communicate(timeout=BOUND_S)[0].split()]
    assert [c.returncode for c in children] == [0] * 8
    views = store.list_jobs()
    assert len(made) == len(set(made)) == 200
    assert [v.job for v in views] == sorted(made, reverse=True)
    assert {v.state for v in views} == {"died"}
    assert sorted(os.listdir(tmp_path / "state" / "jobs")) == sorted(made)


# --- torn records ---------------------------------------------------------------------------------------------


@pytest.mark.rule("rule.recordsByRename")
@pytest.mark.parametrize("damage", ["half", "empty", "bytes", "list", "other", "stateless", "missing", "folder"])
def test_a_torn_record_is_named_and_hurts_no_other(store: Store, damage: str) -> None:
    good, bad, newest = (make(store) for _ in range(3))
    path, text = record_of(bad), record_of(bad).read_bytes()
    path.unlink()
    if damage == "folder":
        path.mkdir()
    elif damage != "missing":
        path.write_bytes(
            {
                "half": text[: len(text) // 2], "empty": b"", "bytes": b"\xff\xfe" + text, "list": b"[]",
                "other": record_of(good).read_bytes(), "stateless": text.replace(b"queued", b"dozing"),
            }[damage]
        )  # fmt: skip
    before = sorted(os.listdir(bad.dir))
    views = {v.job: v for v in store.list_jobs()}
    assert (views[good.id].state, views[newest.id].state) == ("queued", "queued")
    torn = views[bad.id]
    assert (torn.state, torn.record, torn.over) == ("torn", {}, False)
    assert torn.reason is not None
    assert str(path) in torn.reason
    assert store.find(bad.id) == torn
    assert sorted(os.listdir(bad.dir)) == before  # nothing was repaired, nothing overwritten


# --- owners ---------------------------------------------------------------------------------------------------


@pytest.mark.rule("rule.ownerGone")
def test_a_job_whose_owner_was_killed_has_died_with_its_thread_known(store: Store, tmp_path: Path) -> None:
    code = (
        "import sys; from sidecar.store import Store; from sidecar.owner import this_process\n"
        "j = Store(sys.argv[1]).create({}, owner=this_process(), cwd='/w')\n"
        "j.publish(state='running', thread=sys.argv[2]); print(j.id, flush=True); sys.stdin.readline()\n"
    )
    with python(code, tmp_path / "state", THREAD) as child:
        assert child.stdout is not None
        job = child.stdout.readline().strip()
        assert store.read(job).state == "running"
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # dead and not reaped: a zombie owns nothing
        assert store.read(job).state == "died"
    view = store.find(THREAD)
    assert (view.job, view.state, view.thread, view.over) == (job, "died", THREAD, True)
    assert f"process {child.pid} is gone" in (view.reason or "")


@pytest.mark.rule("rule.ownerGone")
@pytest.mark.parametrize(
    "change",
    [{"start_time": 1}, {"start_time": None}, {"pid": 0}, {"pid": -1}, {"pid": True}, {"pid": "1"}, {"pid": 2**22 + 1},
     {"boot_id": "another"}],
)  # fmt: skip
def test_a_pid_alone_proves_no_owner(change: dict[str, Any]) -> None:
    assert owners.owner_alive(owners.this_process())
    assert not owners.owner_alive(owners.this_process() | change)
    assert not owners.owner_alive({})


@pytest.mark.rule("rule.ownerGone")
def test_a_process_with_brackets_in_its_name_is_told_right(tmp_path: Path) -> None:
    name = tmp_path / ") R 1 (x"
    name.symlink_to("/bin/sleep")
    child = subprocess.Popen([str(name), "600"])
    try:
        ours = owners.start_time(os.getpid())
        theirs = owners.start_time(child.pid)
        assert ours is not None
        assert theirs is not None
        assert theirs >= ours
    finally:
        child.kill()
        child.wait(BOUND_S)
    assert owners.start_time(child.pid) is None


@pytest.mark.rule("rule.ownerGone")
def test_an_end_that_comes_while_the_owner_is_looked_for_is_believed(tmp_path: Path) -> None:
    jobs: list[Job] = []

    def ends_then_dies(owner: Mapping[str, Any]) -> bool:
        jobs[0].publish(state="ended", status="completed")
        return False

    store = Store(str(tmp_path), alive=ends_then_dies)
    jobs.append(make(store, state="running"))
    assert store.read(jobs[0].id).status == "completed"


def test_a_job_is_handed_to_the_process_that_runs_it(store: Store) -> None:
    job = make(store, owner=gone_owner())
    assert store.read(job.id).state == "died"
    taken = store.adopt(job.id, owner=owners.this_process())
    assert store.read(job.id).state == "queued"
    taken.publish(state="running")
    with pytest.raises(UserError, match="is running") as caught:
        store.adopt(job.id, owner=owners.this_process())
    assert caught.value.reason == "job_not_queued"


def test_a_job_that_died_while_it_ran_is_not_started_again(store: Store) -> None:
    job = make(store, state="running", owner=gone_owner())
    with pytest.raises(UserError, match="is died"):
        store.adopt(job.id, owner=owners.this_process())


# --- finding --------------------------------------------------------------------------------------------------


def test_ids_are_short_sorted_by_age_and_free_of_look_alikes() -> None:
    ids = [stores._new_id() for _ in range(100)]
    assert all(JOB_ID.fullmatch(i) and len(i) == 14 for i in ids)
    assert [i[:10] for i in ids] == sorted(i[:10] for i in ids)
    assert not set("".join(ids)[1:]) & set("ilou")
    assert abs(stores._made_at(ids[0]) - time.time()) < BOUND_S


def test_a_job_is_found_by_id_by_a_beginning_that_is_unique_and_by_thread(store: Store) -> None:
    first, second = make(store, thread=THREAD), make(store, thread=THREAD)
    common = next(n for n, (a, b) in enumerate(zip(first.id, second.id, strict=True)) if a != b)
    shared, unique = first.id[:common], first.id[: common + 1]
    assert store.find(first.id).job == first.id
    assert store.find(f" {first.id.upper()}\n").job == first.id
    assert store.find(unique).job == first.id
    assert store.find(THREAD).job == store.list_jobs(1)[0].job
    with pytest.raises(UserError, match=f"2 jobs begin with {shared}") as caught:
        store.find(shared)
    assert caught.value.reason == "job_ambiguous"
    assert first.id in caught.value.message


@pytest.mark.parametrize("text", ["", "j0", "j0000000000000", "..", "../jobs", "nothing", "/etc/passwd", "jil"])
def test_what_is_nowhere_is_said_to_be(store: Store, text: str) -> None:
    make(store)
    with pytest.raises(UserError, match="there is no job") as caught:
        store.find(text)
    assert caught.value.reason == "job_unknown"


def test_before_the_first_job_there_are_none(store: Store) -> None:
    assert store.list_jobs() == []
    assert store.last_for("/w") is None
    assert store.prune(0, 0) == []


def test_the_newest_jobs_come_first_and_those_of_a_folder_can_be_asked_for(store: Store) -> None:
    jobs = [make(store, cwd="/a" if n % 2 else "/b").id for n in range(6)]
    newest = sorted(jobs, reverse=True)
    assert [v.job for v in store.list_jobs()] == newest
    assert [v.job for v in store.list_jobs(2)] == newest[:2]
    ours = [v.job for v in store.list_jobs(cwd="/a")]
    assert ours == [j for j in newest if j in jobs[1::2]]
    last = store.last_for("/a")
    assert last is not None
    assert last.job == ours[0]


def test_listing_goes_on_while_jobs_come_and_go(store: Store, tmp_path: Path) -> None:
    code = (
        "import sys; from sidecar.store import Store\n"
        "s = Store(sys.argv[1])\n"
        "for n in range(60):\n    s.create({}, owner={}).publish(state='ended'); s.prune(None, 3)\n"
    )
    kept = make(store)
    with python(code, tmp_path / "state") as other:
        while other.poll() is None:
            assert {v.state for v in store.list_jobs()} <= {"queued", "ended", "died"}
        assert other.wait(BOUND_S) == 0
    assert kept.id in [v.job for v in store.list_jobs()]


# --- pruning --------------------------------------------------------------------------------------------------


def test_pruning_keeps_the_newest_and_every_job_that_is_not_over(store: Store) -> None:
    running = [make(store, state="running").id, make(store).id]
    ended = sorted(make(store, state="ended").id for _ in range(5))
    died = make(store, state="running", owner=gone_owner()).id
    assert store.prune(None, None) == []
    everything = [v.job for v in store.list_jobs()]
    gone = store.prune(None, 2)
    assert sorted(gone) == sorted(j for j in everything[2:] if j not in running)
    assert set(running) <= {v.job for v in store.list_jobs()}
    assert set(gone) <= {*ended, died}


def test_pruning_by_age_takes_torn_records_too_and_by_count_does_not(store: Store) -> None:
    torn, old = make(store), make(store, state="ended")
    record_of(torn).write_bytes(b"{")
    assert store.prune(3600, 0) == [old.id]
    assert store.prune(-1, None) == [torn.id]
    assert store.list_jobs() == []


def test_what_a_killed_maker_left_is_swept_when_it_is_old(store: Store, tmp_path: Path) -> None:
    make(store)
    fresh, stale = (tmp_path / "state" / "jobs" / f".new-{n}" for n in "ab")
    for path in (fresh, stale):
        path.mkdir()
        (path / "request.json").touch()
    os.utime(stale, (0, 0))
    assert store.prune(None, None) == []
    assert fresh.exists()
    assert not stale.exists()
