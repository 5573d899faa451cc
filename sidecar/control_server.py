"""What a running turn answers to other processes: `steer` and `interrupt`, over its socket.

Owns: who may ask, one answer for each question, also when the turn ends first. Does not own: the socket's place
(control_socket.py), what the adapter does with a steer. Serves rule.steer, rule.interruptConfirmed.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
from anyio.abc import TaskGroup

from adapters.contract import Event, StatusEvent, Stop
from sidecar import control_socket
from sidecar.control import PendingSteer, TurnControl
from sidecar.errors import UserError
from sidecar.outcome import Outcome
from sidecar.request import MARKER

READ_S = 5.0  # from the connection to the whole question: it is sent in one go
LAST_ANSWERS_S = 2.0  # for the answers that are due when the turn has ended
ASKED_BY_US = Stop(reason="interrupted", message="interrupted by `cc-agents interrupt`")


class ControlServer:
    def __init__(self, control: TurnControl, tell: Callable[[Event], None]) -> None:
        self._control = control
        self._tell = tell
        self._ended = anyio.Event()
        self._outcome: Outcome | None = None
        self._talks = 0
        self._all_answered = anyio.Event()

    async def accept(self, listener: socket.socket, tasks: TaskGroup) -> None:
        while True:
            await anyio.wait_readable(listener)
            with suppress(BlockingIOError):
                talk, _ = listener.accept()
                talk.setblocking(False)
                self._talks += 1
                tasks.start_soon(self._talk, talk)

    async def over(self, outcome: Outcome) -> None:
        """The turn has ended: whoever still waits gets an answer now."""
        self._outcome = outcome
        self._control.refuse_steers("the turn has ended")
        self._ended.set()
        with anyio.move_on_after(LAST_ANSWERS_S):
            while self._talks:
                self._all_answered = anyio.Event()
                await self._all_answered.wait()

    async def _talk(self, talk: socket.socket) -> None:
        try:
            with suppress(OSError):
                answer = await self._answer(talk)
                await send(talk, json.dumps(answer).encode("ascii") + b"\n")
        finally:
            talk.close()
            self._talks -= 1
            self._all_answered.set()

    async def _answer(self, talk: socket.socket) -> dict[str, Any]:
        question: dict[str, Any] = {}
        with anyio.move_on_after(READ_S):
            question = await read_question(talk)
        if asked_from_a_turn(talk):
            return {"ok": False, "why": "a turn may not steer or interrupt another one"}
        if question.get("do") == "steer" and isinstance(question.get("text"), str):
            return await steer(self._control, question["text"], self._tell, hung_up=talk)
        if question.get("do") == "interrupt":
            self._control.request_stop(ASKED_BY_US)
            await self._ended.wait()
            return ending_of(self._outcome)
        return {"ok": False, "why": "this is no question that the sidecar knows"}


async def steer(
    control: TurnControl, text: str, tell: Callable[[Event], None], *, hung_up: socket.socket | None = None
) -> dict[str, Any]:
    """The answer to a steer, once Codex has taken or refused it, or the turn has ended."""
    pending = PendingSteer(text)
    async with anyio.create_task_group() as tasks:
        if hung_up is not None:
            tasks.start_soon(_take_back, control, pending, hung_up)
        control.steer(pending)
        await pending.answered.wait()
        tasks.cancel_scope.cancel()
    if pending.refusal is not None:
        return {"ok": False, "why": pending.refusal}
    tell(StatusEvent(state="steered", text=text))
    return {"ok": True}


async def _take_back(control: TurnControl, pending: PendingSteer, talk: socket.socket) -> None:
    """Who asked has gone: what Codex has not been given yet it shall not get."""
    await anyio.wait_readable(talk)
    control.withdraw(pending)


def ending_of(outcome: Outcome | None) -> dict[str, Any]:
    if outcome is None:
        return {"ok": False, "why": "the turn ended without an outcome"}
    return {
        "ok": True,
        "status": outcome.status,
        "confirmed": outcome.confirmed,
        "processes_ended": outcome.processes_ended,
    }


@asynccontextmanager
async def answering(
    runtime: str, job: str, control: TurnControl, tell: Callable[[Event], None], warn: Callable[[str], None]
) -> AsyncIterator[ControlServer]:
    """Answers for this job within the block. A socket that can't be made costs steering, never the turn."""
    server = ControlServer(control, tell)
    try:
        listener = control_socket.listen(runtime, job)
    except (OSError, UserError) as error:
        warn(f"the job can't be steered or interrupted from outside: {error}")
        yield server
        return
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.accept, listener, tasks)
            yield server
            tasks.cancel_scope.cancel()
    finally:
        with suppress(FileNotFoundError):
            os.unlink(control_socket.path_of(runtime, job))
        listener.close()


async def read_question(talk: socket.socket) -> dict[str, Any]:
    """The line that was sent, {} where that is no JSON object. Raises OSError."""
    data = bytearray()
    while not data.endswith(b"\n") and len(data) < control_socket.MESSAGE_BYTES:
        try:
            more = talk.recv(65536)
        except BlockingIOError:
            await anyio.wait_readable(talk)
            continue
        if not more:
            break
        data += more
    try:
        question = json.loads(data)
    except ValueError:
        return {}
    return question if isinstance(question, dict) else {}


async def send(talk: socket.socket, data: bytes) -> None:
    """Raises OSError when the other side has gone."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[talk.send(rest) :]
        except BlockingIOError:
            await anyio.wait_writable(talk)


# --- who asks -------------------------------------------------------------------------------------------------


def asked_from_a_turn(talk: socket.socket) -> bool:
    """Whether the asking process runs below a guard: a sandboxed command with network must not steer a yolo turn.

    Its own environment proves nothing, it may have cleared it; a guard above it has the turn's marker. Linux only.
    """
    if not sys.platform.startswith("linux"):
        return False
    pid = struct.unpack("3i", talk.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
    if pid == 0:
        return True  # in a world that can't be seen from here
    mark = f"{MARKER}=".encode()
    while pid > 1:
        if any(entry.startswith(mark) for entry in _proc(pid, "environ").split(b"\0")):
            return True
        fields = _proc(pid, "stat").rpartition(b")")[2].split()
        pid = int(fields[1]) if fields else 0
    return False


def _proc(pid: int, name: str) -> bytes:
    """What the kernel tells of a process; nothing when it is gone or another user's."""
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:
        return b""
