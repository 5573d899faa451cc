"""The jobs: one folder each, written by its owner, readable by everybody at every moment.

Owns: `<state>/jobs/<job>`, the job ids, the record and its states. Does not own: the events (journal), the outcome's
shape (outcome), processes.json (the guard writes it). Every file appears whole, by rename.
Serves spec:cc-agents.codex-adapter (rule.recordsByRename, rule.ownerGone) and design section 8.
"""

from __future__ import annotations

import itertools
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from sidecar import files, paths
from sidecar import owner as owners
from sidecar.errors import UserError

STALE_S = 3600.0  # a half-made or half-removed folder of this age has no maker any more
STATES = ("queued", "running", "ended")

# An id is `j`, the time of making in milliseconds and four random digits, in Crockford's base 32 (no i, l, o, u): ids
# sort by age, and can be read out. The time is good for nine digits until the year 3084.
_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
_TIME_DIGITS, _RANDOM_DIGITS = 9, 4
JOB_ID = re.compile(rf"j[{_DIGITS}]{{{_TIME_DIGITS + _RANDOM_DIGITS}}}", re.ASCII)
_PREFIX = re.compile(rf"j[{_DIGITS}]{{0,{_TIME_DIGITS + _RANDOM_DIGITS - 1}}}", re.ASCII)
_serial = itertools.count()


class JobView(NamedTuple):
    """One job as its reader finds it.

    `state`: queued, running, ended; died (its owner is gone: `reason` says how it is known); torn (`reason` says what
    is wrong with its record, and `record` is empty).
    """

    job: str
    state: str
    dir: str
    record: Mapping[str, Any]
    reason: str | None = None

    @property
    def created_at(self) -> float:
        """Unix time in seconds, read off the id: it is there for a torn record too."""
        return _made_at(self.job)

    @property
    def thread(self) -> str | None:
        return self._text("thread")

    @property
    def status(self) -> str | None:
        return self._text("status")

    @property
    def cwd(self) -> str | None:
        return self._text("cwd")

    @property
    def over(self) -> bool:
        """Nothing more comes from its owner."""
        return self.state in ("ended", "died")

    def path(self, name: str) -> str:
        """A file of the job: request.json, record.json, final.txt, events.ndjson, processes.json."""
        return os.path.join(self.dir, name)

    def final_text(self) -> str | None:
        """The final text, exactly; None while there is none."""
        try:
            with open(self.path("final.txt"), "rb") as f:
                return f.read().decode("utf-8", "surrogatepass")
        except FileNotFoundError:
            return None

    def request(self) -> Mapping[str, Any] | None:
        """The request it was made of, or None where that can't be read."""
        data, _ = files.load_json(self.path("request.json"))
        return data

    def _text(self, key: str) -> str | None:
        return value if isinstance(value := self.record.get(key), str) else None


class Job:
    """A job that this process owns and tells about."""

    def __init__(self, folder: str, record: Mapping[str, Any]) -> None:
        self.dir = folder
        self.id = os.path.basename(folder)
        self.record = dict(record)
        self.events_path = os.path.join(folder, "events.ndjson")
        self.processes_path = os.path.join(folder, "processes.json")

    def publish(self, **changes: Any) -> None:
        """Change fields of the record and put it on disk, whole. A state never goes back. Raises OSError."""
        record = {**self.record, **changes, "updated_at": time.time()}
        if STATES.index(record["state"]) < STATES.index(self.record["state"]):
            raise ValueError(f"a job that is {self.record['state']} cannot be {record['state']}")
        # what a power cut takes of a turn under way, it takes the turn with
        files.write_json(os.path.join(self.dir, "record.json"), record, lasting=record["state"] == "ended")
        self.record = record

    def write_final(self, text: str) -> None:
        """Keep the final text, byte for byte. Raises OSError."""
        files.write(os.path.join(self.dir, "final.txt"), text.encode("utf-8", "surrogatepass"))


class Store:
    """The jobs below `root` (the state folder)."""

    def __init__(self, root: str, *, alive: Callable[[Mapping[str, Any]], bool] = owners.owner_alive) -> None:
        self._dir = os.path.join(root, "jobs")
        self._alive = alive

    # --- by the owner

    def create(self, request: Mapping[str, Any], *, owner: Mapping[str, Any], **fields: Any) -> Job:
        """A new job in state queued. `fields` go into the record: cwd, label, mode, thread... Raises `UserError`."""
        paths.make_private(self._dir)
        while True:
            job, now = _new_id(), time.time()
            making = os.path.join(self._dir, f".new-{job}-{os.getpid()}-{next(_serial)}")
            record = {**fields, "job": job, "state": "queued", "owner": dict(owner), "created_at": now}
            try:
                os.mkdir(making, 0o700)
                files.write_json(os.path.join(making, "request.json"), request, lasting=False)
                files.write_json(os.path.join(making, "record.json"), record, lasting=False)
                # Refused where that id exists: a folder that isn't empty can't be replaced.
                os.rename(making, folder := os.path.join(self._dir, job))
            except OSError as e:
                files.remove_folder(making)
                if os.path.exists(os.path.join(self._dir, job)):
                    continue
                raise UserError("state_dir", f"cannot keep a job in {self._dir}: {e.strerror}") from e
            return Job(folder, record)

    def adopt(self, job: str, *, owner: Mapping[str, Any]) -> Job:
        """Take over a job that another process made for this one (--background). Raises `UserError`."""
        view = self.read(job)
        if view.state not in ("queued", "died") or view.record["state"] != "queued":
            raise UserError("job_not_queued", f"job {job} is {view.state}, it cannot be started")
        taken = Job(view.dir, view.record)
        taken.publish(owner=dict(owner))
        return taken

    # --- by everybody

    def read(self, job: str) -> JobView:
        """The job with exactly this id. Raises `UserError` ("job_unknown")."""
        view = self._view(job) if JOB_ID.fullmatch(job) else None
        if view is None:
            raise UserError("job_unknown", f"there is no job {job}")
        return view

    def find(self, text: str) -> JobView:
        """The job of an id, of the beginning of one, or the newest of a thread id. Raises `UserError`."""
        text = text.strip()
        if JOB_ID.fullmatch(text.lower()):
            return self.read(text.lower())
        if _PREFIX.fullmatch(text.lower()):
            found = [name for name in self._names() if name.startswith(text.lower())]
            if len(found) > 1:
                some = ", ".join(found[:5])
                raise UserError("job_ambiguous", f"{len(found)} jobs begin with {text}: {some}")
            return self.read(found[0] if found else text)
        view = next((v for v in self._views() if v.thread == text), None)
        if view is None:
            raise UserError("job_unknown", f"there is no job {text}, and none with that thread")
        return view

    def list_jobs(self, limit: int | None = None, cwd: str | None = None) -> list[JobView]:
        """Jobs, the newest first; with `cwd` only those of that folder (a torn record has none)."""
        return list(itertools.islice((v for v in self._views() if cwd is None or v.cwd == cwd), limit))

    def last_for(self, cwd: str) -> JobView | None:
        """The newest job of that folder."""
        return next(iter(self.list_jobs(1, cwd)), None)

    def with_processes(self) -> list[str]:
        """Jobs whose guard has not (yet) told that nothing of them lives: cheap, no record is read."""
        return [n for n in self._names() if os.path.exists(os.path.join(self._dir, n, "processes.json"))]

    def prune_due(self, max_age_s: float, max_count: int) -> bool:
        """Whether there may be something to prune: by the ids alone, no record is read."""
        names = self._names()
        return len(names) > max_count or (bool(names) and time.time() - _made_at(names[-1]) > max_age_s)

    def prune(self, max_age_s: float | None, max_count: int | None) -> list[str]:
        """Remove jobs older than `max_age_s` and all but the newest `max_count`; returns their ids.

        Never one that is queued or runs. A torn one goes by age alone, for it may be running.
        """
        now = time.time()
        gone = []
        for n, view in enumerate(self._views()):
            old = max_age_s is not None and now - view.created_at > max_age_s
            extra = max_count is not None and n >= max_count
            wanted = (view.over and (old or extra)) or (view.state == "torn" and old)
            if wanted and files.remove_folder(view.dir):
                gone.append(view.job)
        self._sweep(now)
        return gone

    def _sweep(self, now: float) -> None:
        for entry in files.scan(self._dir):
            if entry.name.startswith("."):
                try:
                    stale = now - entry.stat(follow_symlinks=False).st_mtime > STALE_S
                except FileNotFoundError:
                    continue
                if stale:
                    files.remove_folder(entry.path)

    def _names(self) -> list[str]:
        return sorted((e.name for e in files.scan(self._dir) if JOB_ID.fullmatch(e.name)), reverse=True)

    def _views(self) -> Iterator[JobView]:
        return (v for name in self._names() if (v := self._view(name)) is not None)

    def _view(self, job: str) -> JobView | None:
        """The job, or None when there is no such folder (any more)."""
        folder = os.path.join(self._dir, job)
        record, problem = files.load_json(os.path.join(folder, "record.json"))
        if record is not None and (record.get("job") != job or record.get("state") not in STATES):
            record, problem = None, "is not the record of this job"
        if record is None:
            torn = JobView(job, "torn", folder, {}, f"{folder}/record.json {problem}")
            return torn if os.path.isdir(folder) else None
        if record["state"] != "ended" and not self._alive(owner := _mapping(record.get("owner"))):
            pid = owner.get("pid")
            # It may have ended between our two looks: the record of a gone owner no longer changes.
            last, _ = files.load_json(os.path.join(folder, "record.json"))
            if last is None or last.get("state") != "ended":
                return JobView(job, "died", folder, record, f"its process {pid} is gone without an end")
            record = last
        return JobView(job, record["state"], folder, record)


# --- ids ------------------------------------------------------------------------------------------------------


def _new_id() -> str:
    noise = int.from_bytes(os.urandom(4), "big") % 32**_RANDOM_DIGITS
    return "j" + _digits(time.time_ns() // 1_000_000, _TIME_DIGITS) + _digits(noise, _RANDOM_DIGITS)


def _digits(n: int, width: int) -> str:
    return "".join(_DIGITS[n >> 5 * i & 31] for i in range(width - 1, -1, -1))


def _made_at(job: str) -> float:
    n = 0
    for digit in job[1 : 1 + _TIME_DIGITS]:
        n = n << 5 | _DIGITS.index(digit)
    return n / 1000


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
