"""One turn with one app-server, told from the first byte to its ending.

Owns the order: greet, choose, open the thread, compare what Codex answered with the mode, start the turn, watch.
Does not own processes (the sidecar) nor what the messages mean (tracker.py). Serves spec:cc-agents.codex-adapter.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import anyio

from adapters.codex import catalog, layers, modes
from adapters.codex.plan import CodexPlan
from adapters.codex.refusals import refusal, thread_problem
from adapters.codex.session import QUEUES, Session, greet, judge
from adapters.codex.survey import MODE_NOT_ENFORCED, Survey, survey
from adapters.codex.tracker import Tracker
from adapters.codex.watch import Bell, End, Watch, failed
from adapters.codex.wire import TurnStartParams, mapping, need_str, review_params, user_input
from adapters.contract import (
    Channel,
    Control,
    Effective,
    Ending,
    Events,
    Limits,
    PeerError,
    Preview,
    Problem,
    Resolved,
)
from adapters.jsonrpc import Peer, RpcError
from adapters.values import replace

NO_EXCLUDE_TURNS = "excludeTurns requires experimentalApi"  # 0.145 and older


class Conversation:
    def __init__(self, channel: Channel, resolved: Resolved, events: Events, control: Control, limits: Limits) -> None:
        self._request = resolved.request
        self._plan: CodexPlan = resolved.plan
        self._control = control
        self._limits = limits
        self._bell = Bell()
        self._tracker = Tracker(events, time.monotonic, self._bell.ring, no_hooks=self._request.mode != "yolo")
        self._peer = Peer(
            channel,
            on_notification=self._tracker.on_notification,
            on_request=self._tracker.on_request,
            on_end=self._bell.ring,
            on_pause=self._tracker.tell_deltas,
        )
        self._effective = Effective(
            mode=self._request.mode, cwd=self._request.cwd, codex={"path": self._plan.binary.path, "version": None}
        )
        self._survey: Survey
        self._opening = anyio.CancelScope()
        self._turn_open = False

    async def preview(self) -> Preview:
        """Raises PeerError when Codex does not answer, or with an error."""
        failure: PeerError | None = None
        preview = Preview(effective=self._effective)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._peer.read)
            tasks.start_soon(self._peer.write)
            try:
                preview = await self._asked()
            except RpcError as error:
                failure = PeerError("codex_refused", f"Codex refused {error}")
            except PeerError as error:
                failure = error  # raised below: the task group would wrap it
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure
        return preview

    async def _asked(self) -> Preview:
        session, _, problems, warnings = await self._greet()
        return Preview(
            effective=self._effective,
            problems=tuple(problems),
            warnings=(*warnings, *self._tracker.warnings),
            models=session.models,
        )

    async def run(self) -> Ending:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._peer.read)
            tasks.start_soon(self._peer.write)
            tasks.start_soon(self._listen_to_control)
            watch = Watch(
                peer=self._peer,
                tracker=self._tracker,
                control=self._control,
                limits=self._limits,
                bell=self._bell,
                clock=time.monotonic,
                tasks=tasks,
            )
            end = await self._story(watch)
            tasks.cancel_scope.cancel()
        return self._ending(end)

    async def _story(self, watch: Watch) -> End:
        try:
            with self._opening:
                problems = await self._prepare()
                if problems:
                    return refusal(problems)
                self._start_turn()
            if not self._turn_open:
                return self._stopped_early()
            return await watch.see_to_the_end()
        except RpcError as error:
            return End(status="refused", error=failed("codex_refused", f"Codex refused {error}"))
        except PeerError as error:
            return End(status="failed", error=failed(error.reason, error.message))

    async def _prepare(self) -> list[Problem]:
        session, choice, problems, warnings = await self._greet()
        for warning in warnings:
            self._tracker.warn(warning)
        if problems or choice.model is None:
            return problems
        if self._request.thread is not None and await self._has_queue(session, self._request.thread):
            message = (
                f"thread {self._request.thread} has queued messages, which Codex would run first: see `codex resume`"
            )
            return [Problem(reason="thread_busy", message=message)]
        try:
            response = await self._open_thread(self._survey.thread_config(), choice.model.value)
        except RpcError as error:
            return [thread_problem(error, self._request.thread)]
        return self._read_back(session, choice.model.value, response)

    # --- greet ------------------------------------------------------------------------------------------------

    async def _greet(self) -> tuple[Session, catalog.Choice, list[Problem], list[str]]:
        session = await greet(self._peer, self._request, self._plan.client_version, self._limits.start_s)
        choice, problems, warnings = judge(session, self._request)
        found = self._survey = survey(self._plan, session)
        self._effective = replace(
            self._effective,
            model=choice.model,
            effort=choice.effort,
            network=self._plan.access.network,
            writable_roots=self._writable_roots(),
            switched_off=found.switched_off,
            added=self._plan.access.folders.added,
            codex={"path": self._plan.binary.path, "version": str(session.version) if session.version else None},
        )
        warnings = [*warnings, *self._plan.access.folders.warnings, *self._plan.warnings, *found.warnings]
        return session, choice, [*problems, *found.problems], warnings

    def _writable_roots(self) -> tuple[str, ...]:
        access = self._plan.access
        return (access.cwd, *access.roots) if access.mode == "write" else ()

    # --- the thread -------------------------------------------------------------------------------------------

    async def _has_queue(self, session: Session, thread: str) -> bool:
        """Would a resume start turns by itself? Before queues were there, none can."""
        if session.version is not None and session.version < QUEUES:
            return False
        try:
            queue = await self._peer.request("thread/queue/list", {"threadId": thread}, self._limits.start_s)
        except RpcError:
            return False
        return bool(queue.get("data"))

    async def _open_thread(self, config: dict[str, Any], model: str) -> Mapping[str, Any]:
        params = modes.thread_params(self._plan.access, config)
        params["model"] = model
        if self._request.thread is None:
            method, response = "thread/start", await self._call("thread/start", params)
        else:
            method, response = "thread/resume", await self._resume({**params, "threadId": self._request.thread})
        self._effective = replace(
            self._effective,
            sandbox=mapping(response.get("sandbox")) or None,
            approval_policy=response.get("approvalPolicy"),
        )
        thread = need_str(method, response, "thread.id")
        if self._request.thread is not None and thread != self._request.thread:
            raise PeerError("protocol", f"thread/resume: asked {self._request.thread}, Codex answered {thread}")
        return response

    async def _resume(self, params: dict[str, Any]) -> dict[str, Any]:
        try:
            return await self._call("thread/resume", {**params, "excludeTurns": True})
        except RpcError as error:
            if NO_EXCLUDE_TURNS not in error.message:
                raise
        return await self._call("thread/resume", params)

    async def _call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        # the thread is known before the next line is read: what Codex replays belongs to it
        pending = self._peer.post(method, params, on_result=self._thread_opened)
        return await pending.wait(self._limits.start_s)

    def _thread_opened(self, response: Mapping[str, Any]) -> None:
        thread = mapping(response.get("thread")).get("id")
        if isinstance(thread, str):
            self._tracker.thread_opened(thread, fresh=self._request.thread is None)

    def _read_back(self, session: Session, model: str, response: Mapping[str, Any]) -> list[Problem]:
        found = modes.differences(self._plan.access, model, response)
        sayers = layers.layers_that_say(session.layers)
        where = f" (set by {'; '.join(sayers)})" if sayers and found else ""
        return [Problem(reason=MODE_NOT_ENFORCED, message=f"{text}{where}") for text in found]

    # --- the turn ---------------------------------------------------------------------------------------------

    def _start_turn(self) -> None:
        if self._request.review is not None:
            self._tracker.reviews = True
            self._submit("review/start", review_params(self._tracker.thread or "", self._request.review.base))
            return
        params: TurnStartParams = {
            "threadId": self._tracker.thread or "",
            "input": user_input(self._request.prompt, self._request.images),
        }
        if self._effective.model is not None:
            params["model"] = self._effective.model.value
        if self._effective.effort is not None:
            params["effort"] = self._effective.effort.value
        if self._request.output_schema is not None:
            params["outputSchema"] = self._request.output_schema
        self._submit("turn/start", {**params})

    def _submit(self, method: str, params: dict[str, Any]) -> None:
        self._turn_open = True
        self._tracker.turn_was_asked()
        self._peer.post(method, params, on_result=self._turn_answered, on_error=self._turn_refused)

    def _turn_answered(self, response: Mapping[str, Any]) -> None:
        turn = mapping(response.get("turn")).get("id")
        if isinstance(turn, str) and turn:
            self._tracker.turn_answered(turn)

    def _turn_refused(self, error: Exception) -> None:
        if isinstance(error, RpcError):
            self._tracker.turn_refused(error.message)

    # --- stops and the ending ---------------------------------------------------------------------------------

    async def _listen_to_control(self) -> None:
        while True:
            if self._control.stop is not None and not self._turn_open:
                self._opening.cancel()
            self._bell.ring()
            await self._control.wait()

    def _stopped_early(self) -> End:
        stop = self._control.stop
        reason, message = (stop.reason, stop.message) if stop else ("interrupted", "stopped before the turn")
        return End(status="interrupted", error=failed(reason, message))

    def _ending(self, end: End) -> Ending:
        tracker = self._tracker
        completed = end.status == "completed"
        final = tracker.answer.final if completed else ""
        self._count_oddities()
        return Ending(
            status=end.status,
            final_text=final,
            partial_text="" if completed else tracker.answer.partial,
            usage=tracker.usage,
            child_usage=tracker.child_usage,
            error=end.error,
            effective=self._effective,
            thread=tracker.thread,
            turn=tracker.turn,
            declined=tuple(tracker.declined),
            warnings=tuple(tracker.warnings),
            confirmed=end.confirmed,
        )

    def _count_oddities(self) -> None:
        tracker = self._tracker
        if self._peer.bad_lines:
            tracker.warn(f"{self._peer.bad_lines} lines of Codex were no JSON objects and were passed by")
        if tracker.answer.repaired:
            tracker.warn("the text held a broken character, replaced by U+FFFD")
        if tracker.children_at_work:
            tracker.warn(f"{tracker.children_at_work} sub-agents were still at work; they were ended")
        if tracker.dropped_notes:
            tracker.warnings.append(f"{tracker.dropped_notes} more declined requests and warnings were not kept")
