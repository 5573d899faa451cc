"""The first steps of a turn, up to the moment Codex boots: check, job record, slot, launch.

Owns that order, without a wait and without heavy imports. Does not own what follows (turn.py).
Serves rule.refusedEarly, rule.lightStart: nothing is created before everything that can be checked has been.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from adapters import registry
from adapters.contract import Adapter, Problem, Refused, Resolved
from adapters.values import Value
from sidecar import launch, owner, paths, slots, threads
from sidecar.config import Settings
from sidecar.request import TurnRequest
from sidecar.store import Job, Store


class Begun(Value, frozen=False):
    """A checked request with its job; with a slot and a launched app-server when a slot was free at once."""

    request: TurnRequest
    adapter: Adapter
    resolved: Resolved
    job: Job
    store: Store
    settings: Settings
    runtime: str
    cap: int
    asked_at: float  # Unix time
    thread_lock: threads.ThreadLock
    slot: slots.Slot | None = None
    launched: launch.Launched | None = None
    started_at: float | None = None  # Unix time, of the launch

    @property
    def holder(self) -> dict[str, Any]:
        """What others read of us in the slot's file."""
        return {"job": self.job.id, "cwd": self.request.agent.cwd, "label": self.request.label or ""}

    def start(self) -> launch.Launched:
        """Start the app-server in the slot that is ours. Raises OSError."""
        self.started_at = time.time()
        self.launched = launch.launch(
            self.resolved,
            turn=self.job.id,
            record_path=self.job.processes_path,
            slot_fd=self.slot.fd if self.slot else None,
            thread_fd=self.thread_lock.fd,
            grace_s=self.request.grace_s,
        )
        return self.launched

    def release(self) -> None:
        """Slot and thread, as far as they are ours: what the guard holds it keeps until nothing of the turn lives."""
        if self.slot is not None:
            self.slot.release()
        self.thread_lock.release()


def check(request: TurnRequest, environ: Mapping[str, str]) -> tuple[Adapter, Resolved]:
    """Everything that can be known without a process. Raises Refused; creates nothing."""
    try:
        adapter = registry.load(request.adapter)
    except KeyError:
        known = ", ".join(registry.ADAPTERS)
        message = f"unknown adapter {request.adapter!r}: one of {known}"
        raise Refused(Problem(reason="bad_request", message=message)) from None
    if request.agent.mode not in adapter.modes:
        message = f"{adapter.name} has no mode {request.agent.mode}: one of {', '.join(adapter.modes)}"
        raise Refused(Problem(reason="bad_request", message=message))
    return adapter, adapter.check(request.agent, environ)


def begin(
    request: TurnRequest,
    settings: Settings,
    environ: Mapping[str, str],
    *,
    stopped: Callable[[], bool] = lambda: False,
    **fields: Any,
) -> Begun:
    """Raises Refused, UserError, or KeyboardInterrupt where a wait is cut short because of `stopped`; and then nothing
    was created. `fields` go into the job's record."""
    adapter, resolved = check(request, environ)
    runtime = paths.runtime_dir(environ)
    store = Store(paths.state_dir(environ))
    agent = request.agent
    thread_lock = threads.take(runtime, agent.thread, stopped)
    try:
        job = store.create(
            request.to_json(),
            owner=owner.this_process(),
            cwd=agent.cwd,
            mode=agent.mode,
            label=request.label,
            thread=agent.thread,
            adapter=adapter.name,
            **fields,
        )
        thread_lock.tell(job=job.id, cwd=agent.cwd)
    except BaseException:
        thread_lock.release()
        raise
    begun = Begun(
        request=request,
        adapter=adapter,
        resolved=resolved,
        job=job,
        store=store,
        settings=settings,
        runtime=runtime,
        cap=settings.caps.value.get(adapter.slot_key) or slots.default_cap(),
        asked_at=time.time(),
        thread_lock=thread_lock,
    )
    begun.slot = slots.try_take(runtime, adapter.slot_key, begun.cap, begun.holder)
    if begun.slot is not None:
        with suppress(OSError):  # the turn tries once more, and tells it
            begun.start()
    return begun
