"""The methods of `cc-agents serve`, as README and sidecar/schemas describe them.

Owns: what each method does and the errors it answers. Does not own the wire (server.py).
Serves rule.serve. A job of another process can be steered and interrupted here too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from adapters.contract import Event, Problem, Refused
from adapters.values import as_dict
from sidecar import control_server, inquiry, paths, reach
from sidecar.begin import check
from sidecar.config import load_settings
from sidecar.control_socket import INTERRUPT_ANSWER_S, STEER_ANSWER_S
from sidecar.errors import UserError
from sidecar.hosts.hosted import Host, Hosted
from sidecar.intake.json_request import from_json
from sidecar.outcome import problems_of
from sidecar.records import event_record
from sidecar.request import Flags, build
from sidecar.store import Store
from sidecar.views import check_report
from sidecar.views.briefs import brief

INVALID_PARAMS = -32602
REFUSED = -32001  # the request can't become a turn; data.problems says why
NOT_RUNNING = -32002  # no such job, or it has no running turn
NOT_STEERED = -32003  # the turn runs, and the text didn't get into it
NO_ANSWER = -32004  # Codex gave no answer


class Fault(Exception):
    """An answer that is an error. Raised by methods, turned into JSON-RPC by the server."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


class Methods:
    """`table` has them by name; each takes the params and answers the result. Raises Fault."""

    def __init__(self, host: Host, tasks: TaskGroup, notify: Callable[[str, Mapping[str, Any]], None]) -> None:
        self._host = host
        self._tasks = tasks
        self._notify = notify
        self._begun: list[Hosted] = []
        self.asked = 0  # questions without an answer so far
        self._quiet = anyio.Event()
        self.table: dict[str, Callable[[dict[str, Any]], Awaitable[Any]]] = {
            "turn/run": self._turn_run,
            "turn/check": self._turn_check,
            "turn/steer": self._turn_steer,
            "turn/interrupt": self._turn_interrupt,
            "models/list": self._models_list,
            "jobs/list": self._jobs_list,
        }

    def answered(self) -> None:
        """The answer has been sent: now a turn that was begun may speak."""
        begun, self._begun = self._begun, []
        for hosted in begun:
            self._tasks.start_soon(self._see_through, hosted)

    def done(self) -> None:
        self.asked -= 1
        self._quiet.set()

    async def all_begun(self) -> None:
        """No question is open any more: a turn that was asked for is among those of the host, or refused."""
        while self.asked:
            self._quiet = anyio.Event()
            await self._quiet.wait()

    # --- turns ------------------------------------------------------------------------------------------------

    async def _turn_run(self, params: dict[str, Any]) -> dict[str, Any]:
        try:
            request, settings = await anyio.to_thread.run_sync(from_json, params, self._host.environ)
            hosted = await self._host.begin(request, settings, self._show)
        except (Refused, UserError) as error:
            raise _refused(error) from None
        self._begun.append(hosted)
        return {"job": hosted.job}

    async def _see_through(self, hosted: Hosted) -> None:
        outcome = await self._host.run(hosted)
        self._notify("turn/ended", {"job": hosted.job, "outcome": outcome.to_json()})

    def _show(self, job: str, event: Event) -> None:
        self._notify("turn/event", {"job": job, "event": event_record(event)})

    async def _turn_check(self, params: dict[str, Any]) -> dict[str, Any]:
        try:
            request, _ = await anyio.to_thread.run_sync(from_json, params, self._host.environ)
            adapter, resolved = await anyio.to_thread.run_sync(check, request, self._host.environ)
            preview = await inquiry.ask_in_a_loop(adapter, resolved, request.limits, self._host.environ)
        except (Refused, UserError) as error:
            return check_report.as_json(check_report.refused(_problems(error)))
        return check_report.as_json(preview)

    async def _turn_steer(self, params: dict[str, Any]) -> dict[str, Any]:
        text = _text(params, "text")
        hosted = self._host.turns.get(_text(params, "job"))
        if hosted is not None:
            answer = await control_server.steer(hosted.control, text, hosted.turn.tell)
        else:
            answer = await self._reach(params, {"do": "steer", "text": text}, STEER_ANSWER_S)
        if not answer.get("ok"):
            raise Fault(NOT_STEERED, f"not steered: {answer.get('why')}", {"text": text})
        return {}

    async def _turn_interrupt(self, params: dict[str, Any]) -> dict[str, Any]:
        hosted = self._host.turns.get(_text(params, "job"))
        if hosted is None:
            answer = await self._reach(params, {"do": "interrupt"}, INTERRUPT_ANSWER_S)
        else:
            hosted.control.request_stop(control_server.ASKED_BY_US)
            await hosted.done.wait()
            answer = control_server.ending_of(hosted.outcome)
        if not answer.pop("ok", False):
            raise Fault(NOT_RUNNING, str(answer.get("why")))
        return answer

    async def _reach(self, params: dict[str, Any], message: Mapping[str, Any], within_s: float) -> dict[str, Any]:
        """A job of another process."""
        store = Store(paths.state_dir(self._host.environ))
        try:
            view = await anyio.to_thread.run_sync(store.find, _text(params, "job"))
            runtime = paths.runtime_dir(self._host.environ)
            asking = partial(reach.ask, store, runtime, view, message, within_s)
            return await anyio.to_thread.run_sync(asking, abandon_on_cancel=True)
        except UserError as error:
            raise Fault(NOT_RUNNING, error.message, {"reason": error.reason}) from None

    # --- questions --------------------------------------------------------------------------------------------

    async def _models_list(self, params: dict[str, Any]) -> dict[str, Any]:
        environ = self._host.environ
        try:
            flags = Flags(prompt="models", cwd=_text(params, "cwd") if params.get("cwd") is not None else None)
            request = build(flags, load_settings(environ, {}), environ)
            adapter, resolved = await anyio.to_thread.run_sync(check, request, environ)
            preview = await inquiry.ask_in_a_loop(adapter, resolved, request.limits, environ)
        except UserError as error:
            raise Fault(NO_ANSWER, error.message, {"reason": error.reason}) from None
        except Refused as error:
            raise _refused(error) from None
        return {"models": [as_dict(m) for m in preview.models if not m.hidden]}

    async def _jobs_list(self, params: dict[str, Any]) -> dict[str, Any]:
        limit, cwd = params.get("limit"), params.get("cwd")
        if not (limit is None or (isinstance(limit, int) and limit >= 0)) or not (cwd is None or isinstance(cwd, str)):
            raise Fault(INVALID_PARAMS, "limit is a number, cwd a text")
        store = Store(paths.state_dir(self._host.environ))
        return {"jobs": [brief(v) for v in await anyio.to_thread.run_sync(store.list_jobs, limit, cwd)]}


def _text(params: Mapping[str, Any], name: str) -> str:
    value = params.get(name)
    if not isinstance(value, str):
        raise Fault(INVALID_PARAMS, f"{name} is a text, and needed here")
    return value


def _problems(error: Refused | UserError) -> list[Problem]:
    return list(error.problems) if isinstance(error, Refused) else problems_of(error)


def _refused(error: Refused | UserError) -> Fault:
    problems = [{"reason": p.reason, "message": p.message} for p in _problems(error)]
    return Fault(REFUSED, "; ".join(p["message"] for p in problems), {"problems": problems})
