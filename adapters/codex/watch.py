"""Sees a running turn to its end: Codex's own, a stop from outside, a limit, or a peer that says nothing more.

Owns: every wait after turn/start, each of them bounded; the interrupt and its confirmation; the settlement when the
end was announced and didn't come. Does not own processes: what isn't confirmed here is ended by the sidecar.
Serves rule.interruptConfirmed, rule.boundedAlways, rule.neverEmptySuccess; facts: codex-facts sections 6, 9, 10.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import anyio
from anyio.abc import TaskGroup

from adapters.codex.survey import MODE_NOT_ENFORCED
from adapters.codex.tracker import Tracker
from adapters.codex.wire import TurnInterruptParams, TurnSteerParams, mapping, user_input
from adapters.contract import Control, Limits, PeerError, Status, Steer, Stop, TurnError
from adapters.jsonrpc import Peer, RpcError
from adapters.values import Value

LATE_ITEM_GRACE_S = 0.5  # an answer may come after turn/completed; 50 ms were seen in the field
ERROR_GRACE_S = 2.0  # at most, from a final `error` to the turn/completed that should follow at once
STEER_ANSWER_S = 10.0  # turn/steer is answered at once, also while a command runs


class End(Value):
    status: Status
    error: TurnError | None = None
    confirmed: bool = False


class Bell:
    """Wakes the one who watches. A ring that comes while nobody waits is not lost."""

    def __init__(self) -> None:
        self._event = anyio.Event()

    def ring(self) -> None:
        self._event.set()

    async def wait(self, timeout_s: float) -> None:
        with anyio.move_on_after(max(0.0, timeout_s)):
            await self._event.wait()
        if self._event.is_set():
            self._event = anyio.Event()


def failed(reason: str, message: str) -> TurnError:
    return TurnError(kind="other", reason=reason, message=message)


class Watch:
    def __init__(
        self,
        *,
        peer: Peer,
        tracker: Tracker,
        control: Control,
        limits: Limits,
        bell: Bell,
        clock: Callable[[], float],
        tasks: TaskGroup,
    ) -> None:
        self._peer = peer
        self._tracker = tracker
        self._control = control
        self._limits = limits
        self._bell = bell
        self._clock = clock
        self._tasks = tasks
        self._read_back = False
        self._known_by = clock() + limits.start_s  # turn/start was sent just now
        self._error_grace_s = min(ERROR_GRACE_S, limits.grace_s)
        self._settle_s = limits.grace_s  # from an idle thread to the turn/completed that should have come with it

    async def see_to_the_end(self) -> End:
        while True:
            if end := self._over():
                return end
            if stop := self._control.stop or self._limit_reached():
                return await self._interrupt(stop)
            if self._announced_but_missing():
                if end := await self._settle():
                    return end
                continue
            self._pass_on_steers()
            await self._bell.wait(self._next_deadline() - self._clock())

    # --- ends -------------------------------------------------------------------------------------------------

    def _over(self) -> End | None:
        """The end, when there is one now: the order says which fact outweighs which."""
        tracker, now = self._tracker, self._clock()
        if tracker.breach is not None:
            message = f"{tracker.breach} started although it was switched off: the mode can't be shown to hold"
            return End(status="failed", error=failed(MODE_NOT_ENFORCED, message))
        if tracker.refusal is not None:
            return End(status="refused", error=tracker.refusal, confirmed=True)
        if tracker.completed is not None:
            waits = tracker.completed.get("status") == "completed" and not tracker.answer.final and not self._peer.ended
            return None if waits and now < tracker.completed_at + LATE_ITEM_GRACE_S else self._completed()
        if tracker.error_at is not None and (self._peer.ended or now >= tracker.error_at + self._error_grace_s):
            return End(status="failed", error=tracker.error)
        if self._peer.ended:
            return End(status="failed", error=failed("app_server_exited", "Codex ended before the turn did"))
        if tracker.turn is None and now >= self._known_by:
            message = f"Codex named no turn in answer to turn/start within {self._limits.start_s:g} s"
            return End(status="failed", error=failed("protocol", message))
        return None

    def _completed(self) -> End:
        tracker = self._tracker
        status = mapping(tracker.completed).get("status")
        if status == "completed":
            if tracker.answer.final:
                return End(status="completed", confirmed=True)
            message = "Codex completed the turn without an answer"
            return End(status="failed", error=failed("no_answer", message), confirmed=True)
        if status == "failed":
            unnamed = failed("codex_error", "Codex failed the turn without an error")
            return End(status="failed", error=tracker.error or unnamed, confirmed=True)
        if status == "interrupted":
            error = failed("interrupted", "Codex ended the turn as interrupted")
            return End(status="interrupted", error=error, confirmed=True)
        message = f"turn/completed: unknown status {status!r}"
        return End(status="failed", error=failed("protocol", message), confirmed=True)

    # --- limits -----------------------------------------------------------------------------------------------

    def _limit_reached(self) -> Stop | None:
        limits, idle_s = self._limits, self._clock() - self._tracker.last_progress
        if limits.tokens is not None and self._tracker.tokens_spent > limits.tokens:
            spent = self._tracker.tokens_spent
            return Stop(reason="token_limit", message=f"{spent} tokens used, the limit is {limits.tokens}")
        if limits.idle_s is not None and idle_s >= limits.idle_s:
            return Stop(reason="idle_timeout", message=f"no progress of this turn for {limits.idle_s:g} s")
        return None

    def _next_deadline(self) -> float:
        tracker = self._tracker
        deadlines = [self._clock() + 3600.0]  # nothing is due: an hour is as good as any
        if self._limits.idle_s is not None:
            deadlines.append(tracker.last_progress + self._limits.idle_s)
        if tracker.turn is None:
            deadlines.append(self._known_by)
        if tracker.completed is not None:
            deadlines.append(tracker.completed_at + LATE_ITEM_GRACE_S)
        if tracker.error_at is not None:
            deadlines.append(tracker.error_at + self._error_grace_s)
        if tracker.idle_at is not None and not self._read_back:
            deadlines.append(tracker.idle_at + self._settle_s)
        return min(deadlines)

    # --- settlement -------------------------------------------------------------------------------------------

    def _announced_but_missing(self) -> bool:
        idle_at = self._tracker.idle_at
        if idle_at is None:
            self._read_back = False
            return False
        return not self._read_back and self._clock() >= idle_at + self._settle_s

    async def _settle(self) -> End | None:
        """Codex says that the thread is idle and never that the turn is over: asks the thread itself, once."""
        self._read_back = True
        turn = await self._turn_of_thread()
        tracker = self._tracker
        if tracker.completed is not None or self._peer.ended:
            return None
        status = turn.get("status")
        if status == "failed":
            return End(status="failed", error=failed("codex_error", "the turn failed, says its thread"))
        if status == "interrupted":
            return End(status="interrupted", error=failed("interrupted", "the turn was interrupted, says its thread"))
        tracker.answer.summary(turn.get("items"))
        if status == "completed" or (not turn and tracker.answer.has_final_answer):
            tracker.warn("Codex never said that the turn was over; the thread is idle and has the answer")
            if tracker.answer.final:
                return End(status="completed")
            return End(status="failed", error=failed("no_answer", "the turn ended without an answer, says its thread"))
        return None  # in progress, says the thread: the idle limit goes on counting

    async def _turn_of_thread(self) -> dict[str, object]:
        params = {"threadId": self._tracker.thread, "includeTurns": True}
        try:
            result = await self._peer.request("thread/read", params, self._settle_s)
        except (RpcError, PeerError) as error:
            self._tracker.warn(f"thread/read: {error}")
            return {}
        turns = mapping(result.get("thread")).get("turns")
        for turn in turns if isinstance(turns, list) else ():
            if mapping(turn).get("id") == self._tracker.turn:
                return dict(turn)
        return {}

    # --- interrupt --------------------------------------------------------------------------------------------

    async def _interrupt(self, stop: Stop) -> End:
        """Asks Codex and waits for its word within the grace; before turn/started it would refuse and run on."""
        with anyio.move_on_after(self._limits.grace_s):
            async with anyio.create_task_group() as asking:
                if self._tracker.started and self._tracker.turn is not None:
                    asking.start_soon(self._ask_to_interrupt, self._tracker.turn)
                while self._tracker.started and self._tracker.completed is None and not self._peer.ended:
                    await self._bell.wait(self._limits.grace_s)
                asking.cancel_scope.cancel()  # the end came before the answer
        if self._tracker.completed is not None:
            end = self._completed()
            if end.status != "interrupted":
                return end  # it was over before the word reached it
        confirmed = self._tracker.completed is not None
        return End(status="interrupted", error=failed(stop.reason, stop.message), confirmed=confirmed)

    async def _ask_to_interrupt(self, turn: str | None) -> None:
        """Tries again where Codex names another turn as the one that really runs."""
        while turn is not None:
            turn = await self._asked_to_interrupt(turn)

    async def _asked_to_interrupt(self, turn: str) -> str | None:
        """The turn id to try next."""
        params: TurnInterruptParams = {"threadId": self._tracker.thread or "", "turnId": turn}
        try:
            await self._peer.request("turn/interrupt", {**params}, self._limits.grace_s)
        except RpcError as error:
            found = re.search(r"expected active turn id `?\S+?`? but found `?([^\s`]+)`?", error.message)
            return found[1] if found and found[1] != turn else None
        except PeerError:
            return None  # gone or silent: the end is not confirmed, and the process group is ended
        return None

    # --- steer ------------------------------------------------------------------------------------------------

    def _pass_on_steers(self) -> None:
        while self._tracker.started and (steer := self._control.next_steer()) is not None:
            self._tasks.start_soon(self._steer, steer)

    async def _steer(self, steer: Steer) -> None:
        params: TurnSteerParams = {
            "threadId": self._tracker.thread or "",
            "expectedTurnId": self._tracker.turn or "",
            "input": user_input(steer.text),
        }
        try:
            await self._peer.request("turn/steer", {**params}, STEER_ANSWER_S)
        except (RpcError, PeerError) as error:
            steer.refuse(error.message)
        else:
            steer.accept()
