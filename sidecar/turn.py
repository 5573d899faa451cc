"""The story of a turn: a slot, an app-server under the guard, a conversation, one outcome.

Owns the order in which it is told and the promise at its end: the outcome comes when nothing of the turn lives.
Does not own the parts: slots, launch, harness, the adapter, the store. Serves spec:cc-agents.runner.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import anyio

from adapters.contract import Effective, Ending, Event, StartsAgain, StatusEvent, Stop, Tidies, TurnError
from adapters.values import replace
from sidecar import deadlines, outcome, slots
from sidecar.begin import Begun
from sidecar.control import TurnControl
from sidecar.control_server import answering
from sidecar.harness import Harness, hold
from sidecar.journal import FLUSH_AFTER_S, Journal
from sidecar.outcome import Outcome, Timing
from sidecar.records import event_record, outcome_record

Show = Callable[[Event], None]


class Turn:
    def __init__(self, begun: Begun, control: TurnControl, show: Show) -> None:
        self._begun = begun
        self._control = control
        self._show = show
        self._warnings: list[str] = []
        self._journal = Journal(begun.job.events_path, warn=self._warnings.append)
        self._unflushed = anyio.Event()
        self._ended = 0

    async def run(self) -> Outcome:
        """Sees the turn through. Never raises for what Codex, a limit or a person did: that is the outcome."""
        begun = self._begun
        async with answering(begun.runtime, begun.job.id, self._control, self.tell, self._warnings.append) as asked:
            try:
                ending = await self._in_a_slot()
            finally:
                begun.release()
            result = self._publish(ending)
            await asked.over(result)
        return result

    async def _in_a_slot(self) -> Ending:
        if self._begun.slot is None and not await self._wait_for_a_slot():
            return self._stopped_before_the_start()
        for pause_s in deadlines.START_AGAIN_S:
            ending = await self._once()
            if not self._worth_another_start(ending):
                return ending
            self.tell(StatusEvent(state="starting", text="Codex could not start beside others: starting it again"))
            with anyio.move_on_after(pause_s * random.uniform(0.5, 1.5)):  # those that collided must not meet again
                await self._control.wait()
        return await self._once()

    async def _once(self) -> Ending:
        """One app-server, from its start until nothing of it lives."""
        begun = self._begun
        try:
            launched, begun.launched = begun.launched or begun.start(), None
        except OSError as error:
            return self._failed("app_server_exited", f"Codex could not be started: {error}")
        self._keep(state="running", started_at=begun.started_at)
        async with hold(launched) as harness:
            self._control.on_second_stop = harness.end_now
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._watch_the_clock)
                tasks.start_soon(self._flush_when_silent)
                ending = await self._converse(harness)
                tasks.cancel_scope.cancel()
            await harness.end(politely=ending.confirmed or ending.status == "refused")
        if isinstance(begun.adapter, Tidies):
            begun.adapter.tidy(begun.resolved)
        self._ended += harness.processes_ended
        return ending

    def _worth_another_start(self, ending: Ending) -> bool:
        """Only what no thread was opened for: a turn is never submitted twice."""
        adapter, error = self._begun.adapter, ending.error
        if error is None or error.reason != "app_server_exited" or ending.thread or self._control.stop:
            return False
        return isinstance(adapter, StartsAgain) and adapter.start_again(error.message)

    # --- before -----------------------------------------------------------------------------------------------

    async def _wait_for_a_slot(self) -> bool:
        """True with a slot in hand, False when the wait was stopped."""
        begun, told = self._begun, -1
        with slots.Waiter(begun.runtime, begun.adapter.slot_key, begun.cap, begun.holder) as waiter:
            while self._control.stop is None:
                begun.slot = waiter.poll()
                if begun.slot is not None:
                    return True
                if waiter.ahead != told:
                    told = waiter.ahead
                    self.tell(StatusEvent(state="waiting", text=_waiting(begun.cap, told, waiter.holders)))
                with anyio.move_on_after(slots.POLL_S):
                    await self._control.wait()
        return False

    def _stopped_before_the_start(self) -> Ending:
        stop = self._control.stop or Stop(reason="interrupted", message="stopped while waiting for a slot")
        error = TurnError(kind="other", reason=stop.reason, message=f"{stop.message} while waiting for a slot")
        return Ending(status="interrupted", error=error, effective=self._asked(), confirmed=True)

    # --- during -----------------------------------------------------------------------------------------------

    async def _converse(self, harness: Harness) -> Ending:
        begun = self._begun
        ending = await begun.adapter.run(
            harness.channel, begun.resolved, self.tell, self._control, begun.request.limits
        )
        if ending.error is not None and ending.error.reason in ("app_server_exited", "protocol"):
            return self._stopped_at_once(await _with_exit(ending, harness), await self._stop_that_comes())
        return ending

    async def _stop_that_comes(self) -> Stop | None:
        """Who ends a whole tree of processes sends Codex and us the same signal, in no order."""
        with anyio.move_on_after(deadlines.SAME_SIGNAL_S):
            while self._control.stop is None:
                await self._control.wait()
        return self._control.stop

    @staticmethod
    def _stopped_at_once(ending: Ending, stop: Stop | None) -> Ending:
        """A death of Codex while we are told to stop is that stop, whichever was seen first."""
        if stop is None or ending.status != "failed":
            return ending
        error = TurnError(kind="other", reason=stop.reason, message=stop.message)
        return replace(ending, status="interrupted", error=error)

    async def _watch_the_clock(self) -> None:
        limit_s = self._begun.request.timeout_s
        if limit_s is not None:
            await anyio.sleep(limit_s)
            self._control.request_stop(Stop(reason="timeout", message=f"the turn took longer than {limit_s:g} s"))

    def tell(self, event: Event) -> None:
        """Journal first, then the screen."""
        record = event_record(event)
        self._journal.write(record)
        if record["event"] == "begun":
            self._begun.thread_lock.name(record["thread"])
            self._keep(thread=record["thread"], turn=record["turn"])
        if record["event"] != "text_delta":
            self._journal.flush()
        elif not self._unflushed.is_set():
            self._unflushed.set()
        self._show(event)

    async def _flush_when_silent(self) -> None:
        """What was streamed is on disk soon, also when nothing follows it: a kill -9 must not cost it."""
        while True:
            await self._unflushed.wait()
            await anyio.sleep(FLUSH_AFTER_S)
            self._unflushed = anyio.Event()
            self._journal.flush()

    def _keep(self, **changes: Any) -> None:
        """Into the job's record. A disk that is full costs the record, not the turn."""
        try:
            self._begun.job.publish(**changes)
        except OSError as error:
            self._warnings.append(f"the job's record could not be written: {error.strerror}")

    # --- after ------------------------------------------------------------------------------------------------

    def _publish(self, ending: Ending) -> Outcome:
        """The outcome on disk, then to whoever asked. A disk that is full costs the record, not the answer."""
        now, begun = time.time(), self._begun
        since = begun.started_at or now
        self._check_answer(ending)
        result = outcome.of_ending(
            ending,
            job=begun.job.id,
            timing=Timing(
                queued_s=round(since - begun.asked_at, 3),
                started_at=begun.started_at,
                duration_s=round(now - since, 3),
            ),
            processes_ended=self._ended,
            signal=self._control.signal,
            warnings=tuple(self._warnings),
        )
        record = outcome_record(result)
        self._journal.write(record)
        self._journal.close()
        try:
            if result.status == "completed":
                begun.job.write_final(result.final_text)
            begun.job.publish(
                state="ended", status=result.status, thread=result.thread, turn=result.turn, outcome=record["outcome"]
            )
        except OSError as error:
            lost = f"the job's record could not be written: {error.strerror}"
            return replace(result, warnings=(*result.warnings, lost))
        return result

    def _check_answer(self, ending: Ending) -> None:
        """An answer that isn't what the schema says is Codex's all the same: told, not changed."""
        schema = self._begun.request.agent.output_schema
        if schema is not None and ending.status == "completed":
            from sidecar.intake import answer_schema  # few requests have a schema

            if (fault := answer_schema.fault(ending.final_text, schema)) is not None:
                self._warnings.append(f"the answer does not match --output-schema: {fault}")

    def _failed(self, reason: str, message: str) -> Ending:
        error = TurnError(kind="other", reason=reason, message=message)
        return Ending(status="failed", error=error, effective=self._asked())

    def _asked(self) -> Effective:
        agent = self._begun.request.agent
        return Effective(model=agent.model, effort=agent.effort, mode=agent.mode, cwd=agent.cwd)


async def _with_exit(ending: Ending, harness: Harness) -> Ending:
    """The wire only saw its end; the guard knows how the process went, and stderr may say why."""
    how = await harness.how_it_ended()
    error = ending.error
    if error is None:
        return ending
    if how is not None:
        error = replace(error, reason="app_server_exited", message=f"{error.message}. {how}")
    elif error.reason == "app_server_exited":
        message = f"{error.message.replace('Codex ended', 'Codex closed its output')}; its process was still running"
        error = replace(error, reason="protocol", message=message)
    return replace(ending, error=error)


def _waiting(cap: int, ahead: int, holders: list[slots.Holder]) -> str:
    who = ", ".join(h.job for h in holders if h.job) or "others"
    queue = f", {ahead} ahead in the queue" if ahead else ""
    return f"waiting for a slot: {len(holders)} of {cap} taken by {who}{queue}"
