"""Many requests of one file through the slots: as many at once as there are slots, an outcome a line as they end.

Owns: which line has which job, so that after a crash no finished one is run twice; the order of starts.
Does not own: the turns (hosted.py), the display (batch_progress.py). Serves rule.batch.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
from collections import Counter
from collections.abc import Mapping
from typing import Any

import anyio

from adapters import registry
from adapters.contract import Event, Refused, Stop
from adapters.values import Value
from sidecar import flocks, outcome, paths, slots
from sidecar.config import load_settings
from sidecar.errors import EXIT_FAILED, UserError
from sidecar.hosts.batch_progress import Progress
from sidecar.hosts.foreground import SIGNALS
from sidecar.hosts.hosted import Host, allow_many_files
from sidecar.intake import json_request
from sidecar.leftovers import recover, tidy
from sidecar.records import dump
from sidecar.store import Store
from sidecar.views.screen import Screen

STDOUT = 1
NOT_DONE = ("interrupted", recover.DIED)  # the turns that a later run begins anew; a limit of ours is an end


class Line(Value):
    """A request of the file. `key` names it by what it says, and by which of several equal ones it is."""

    number: int
    key: str
    request: Any
    problem: str | None = None

    @property
    def label(self) -> str | None:
        label = self.request.get("label") if isinstance(self.request, dict) else None
        return label if isinstance(label, str) else None


def read(path: str) -> list[Line]:
    """The requests of a file; blank lines are passed by. Raises UserError."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise UserError("bad_request", f"{path}: {error.strerror}") from None
    found: list[Line] = []
    seen: Counter[str] = Counter()
    for number, raw in enumerate(data.split(b"\n"), start=1):
        if raw.strip():
            found.append(_line(number, raw, seen))
    return found


def _line(number: int, raw: bytes, seen: Counter[str]) -> Line:
    problem, request = None, None
    try:
        request = json.loads(raw)
    except (ValueError, RecursionError) as error:
        problem = f"line {number} is not JSON: {error}"
    said = json.dumps(request, sort_keys=True) if problem is None else raw.hex()
    digest = hashlib.sha256(said.encode()).hexdigest()[:32]
    seen[digest] += 1
    return Line(number=number, key=f"{digest}.{seen[digest]}", request=request, problem=problem)


class Batch:
    """One run over one file. Only one process at a time works on a file."""

    def __init__(self, path: str, environ: Mapping[str, str], progress: Progress, *, again: bool, failed: bool) -> None:
        self._environ = environ
        self._progress = progress
        self._again_failed = failed
        self._lines = read(path)
        self._host = Host(environ)
        self._screen = Screen()
        self._store = Store(paths.state_dir(environ))
        self._name = hashlib.sha256(os.path.realpath(path).encode("utf-8", "surrogateescape")).hexdigest()[:32]
        self._known = {} if again else self._jobs_of_before()
        self._signal: int | None = None
        self._all_completed = True

    async def run(self) -> int:
        """0 when every turn completed, else 1; by a signal, 128 and its number."""
        allow_many_files()
        folder = paths.make_private(os.path.join(paths.state_dir(self._environ), "batches"))
        lock = flocks.take(os.path.join(folder, f"{self._name}.lock"))
        if lock < 0:
            raise UserError("batch_busy", "another process is working on this file")
        try:
            await self._run_all()
        finally:
            flocks.leave(lock)
        self._progress.finish()
        self._screen.finish(None)  # a pipe that is slow to read gets every outcome
        tidy.prune(self._store, load_settings(self._environ, {}))
        if self._signal is not None:
            return 128 + self._signal
        return 0 if self._all_completed else EXIT_FAILED

    async def _run_all(self) -> None:
        self._progress.begin(len(self._lines))
        limiter = anyio.CapacityLimiter(self._at_once())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._hear_signals)
            async with anyio.create_task_group() as turns:
                for line in self._lines:
                    await limiter.acquire_on_behalf_of(line.number)
                    turns.start_soon(self._one, line, limiter)
            tasks.cancel_scope.cancel()

    async def _one(self, line: Line, limiter: anyio.CapacityLimiter) -> None:
        try:
            told = await self._finished_before(line) or await self._run(line)
            if told is not None:
                self._tell(line, told)
        finally:
            limiter.release_on_behalf_of(line.number)

    async def _run(self, line: Line) -> dict[str, Any] | None:
        """The outcome; None for what was not begun because the batch is ending."""
        if self._signal is not None:
            return None
        try:
            if line.problem is not None:
                raise UserError("bad_request", line.problem)
            request, settings = json_request.from_json(line.request, self._environ)
            mark = {"batch": f"{self._name}.{line.key}"}
            hosted = await self._host.begin(request, settings, self._show, **mark)
        except Refused as refused:
            return outcome.refused(*refused.problems).to_json()
        except UserError as error:
            return outcome.refused(*outcome.problems_of(error)).to_json()
        self._progress.started(hosted.job)
        return (await self._host.run(hosted)).to_json()

    def _show(self, job: str, event: Event) -> None:
        self._progress.event(job, event)

    def _tell(self, line: Line, told: dict[str, Any]) -> None:
        self._all_completed = self._all_completed and told["status"] == "completed"
        self._progress.ended(line.number, line.label, told)
        self._screen.write(STDOUT, dump({"line": line.number, "label": line.label, "outcome": told}))
        if self._screen.broken is not None:
            self._stop(signal.SIGPIPE)

    # --- what was done before -----------------------------------------------------------------------------------

    def _jobs_of_before(self) -> dict[str, str]:
        """The newest job of each line that an earlier run of this file has begun."""
        found: dict[str, str] = {}
        for view in self._store.list_jobs():
            mark = view.record.get("batch")
            if isinstance(mark, str) and mark.startswith(f"{self._name}."):
                found.setdefault(mark.removeprefix(f"{self._name}."), view.job)
        return found

    async def _finished_before(self, line: Line) -> dict[str, Any] | None:
        """The outcome of a line that is done; of one whose sidecar died, if Codex finished it all the same."""
        job = self._known.get(line.key)
        if job is None:
            return None
        try:
            view = self._store.read(job)
        except UserError:
            return None  # pruned
        told = recover.outcome_of(view) or await recover.recover_in_a_loop(view, self._environ)
        ended = told["status"] in ("failed", "interrupted") and told["error"]["reason"] not in NOT_DONE
        done = told["status"] == "completed" or (ended and not self._again_failed)
        return told if done else None

    # --- limits and signals -------------------------------------------------------------------------------------

    def _at_once(self) -> int:
        key = registry.load().slot_key
        return load_settings(self._environ, {}).caps.value.get(key) or slots.default_cap()

    async def _hear_signals(self) -> None:
        heard = [signal.Signals(s) for s in SIGNALS if signal.getsignal(s) is not signal.SIG_IGN]
        with anyio.open_signal_receiver(*heard) as signals:
            async for signum in signals:
                self._stop(signum)

    def _stop(self, signum: int) -> None:
        self._signal = signum
        self._host.stop_all(Stop(reason="interrupted", message=f"interrupted by {signal.Signals(signum).name}"), signum)
