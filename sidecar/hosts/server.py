"""`cc-agents serve`: JSON-RPC 2.0, one object a line on stdio, many turns in one sidecar.

Owns: the wire, the order of answers and notifications, the end: when stdin ends, every turn ends.
Does not own: what the methods do (server_methods.py). Serves rule.serve.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any

import anyio
import anyio.from_thread
import anyio.lowlevel
from anyio.abc import TaskGroup

from adapters.contract import Stop
from sidecar import deadlines
from sidecar.hosts.foreground import SIGNALS
from sidecar.hosts.hosted import Host, allow_many_files
from sidecar.hosts.server_methods import Fault, Methods
from sidecar.records import dump
from sidecar.views.screen import Screen

STDIN, STDOUT = 0, 1
READ_BYTES = 1 << 16
PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INTERNAL_ERROR = -32700, -32600, -32601, -32603


class Server:
    def __init__(self, environ: Mapping[str, str]) -> None:
        self._screen = Screen()
        self._host = Host(environ)
        self._signal: int | None = None

    async def run(self) -> int:
        """Returns when stdin has ended, or by a signal, and every turn with it."""
        allow_many_files()
        async with anyio.create_task_group() as tasks:
            methods = Methods(self._host, tasks, self._notify)
            tasks.start_soon(self._hear_signals)
            await self._read(methods, tasks)
            self._host.stop_all(Stop(reason="interrupted", message="the client has closed the connection"))
            await methods.all_begun()
            await self._host.all_ended()
            tasks.cancel_scope.cancel()
        self._screen.finish(deadlines.SCREEN_FLUSH_S)
        return 0 if self._signal is None else 128 + self._signal

    # --- in ---------------------------------------------------------------------------------------------------

    async def _read(self, methods: Methods, tasks: TaskGroup) -> None:
        """Until the end of stdin, a signal, or a stdout that nobody reads any more."""
        parts: list[bytes] = []
        chunks, chunk_stream = anyio.create_memory_object_stream[bytes](0)
        # A daemon thread: stdin may be a file, must stay blocking (others may share it), and must not hold our end up.
        reader = (chunks.send, anyio.lowlevel.current_token())
        threading.Thread(target=_read_stdin, args=reader, name="stdin", daemon=True).start()
        with anyio.CancelScope() as self._reading, chunks, chunk_stream:
            while data := await chunk_stream.receive():
                head, newline, tail = data.partition(b"\n")
                parts.append(head)
                if newline:
                    *lines, rest = tail.split(b"\n")
                    for line in (b"".join(parts), *lines):
                        self._take(line, methods, tasks)
                    parts = [rest]
            self._take(b"".join(parts), methods, tasks)

    def _take(self, line: bytes, methods: Methods, tasks: TaskGroup) -> None:
        if not line.strip():
            return
        try:
            message = json.loads(line)
        except (ValueError, RecursionError) as error:
            self._fail(None, PARSE_ERROR, f"not JSON: {error}")
            return
        problem = _problem(message)
        if problem is not None:
            ident = message.get("id") if isinstance(message, dict) else None
            self._fail(ident if _is_id(ident) else None, INVALID_REQUEST, problem)
        elif "method" in message:
            methods.asked += 1
            tasks.start_soon(self._answer, message, methods)

    async def _answer(self, message: dict[str, Any], methods: Methods) -> None:
        method, ident = message["method"], message.get("id")
        wants = "id" in message
        try:
            handler = methods.table.get(method)
            if handler is None:
                raise Fault(METHOD_NOT_FOUND, f"there is no method {method}; there are {', '.join(methods.table)}")
            result = await handler(message.get("params") or {})
        except Fault as fault:
            if wants:
                self._fail(ident, fault.code, fault.message, fault.data)
        except Exception as error:  # the connection and the other turns live on
            if wants:
                self._fail(ident, INTERNAL_ERROR, f"{type(error).__name__}: {error}")
        else:
            if wants:
                self._send({"id": ident, "result": result})
            methods.answered()
        finally:
            methods.done()

    async def _hear_signals(self) -> None:
        heard = [signal.Signals(s) for s in SIGNALS if signal.getsignal(s) is not signal.SIG_IGN]
        with anyio.open_signal_receiver(*heard) as signals:
            async for signum in signals:
                self._signal = signum
                name = signal.Signals(signum).name
                self._host.stop_all(Stop(reason="interrupted", message=f"interrupted by {name}"), signum)
                self._reading.cancel()

    # --- out --------------------------------------------------------------------------------------------------

    def _notify(self, method: str, params: Mapping[str, Any]) -> None:
        self._send({"method": method, "params": params})

    def _fail(self, ident: Any, code: int, message: str, data: Any = None) -> None:
        error = {"code": code, "message": message, **({} if data is None else {"data": data})}
        self._send({"id": ident, "error": error})

    def _send(self, message: Mapping[str, Any]) -> None:
        self._screen.write(STDOUT, dump({"jsonrpc": "2.0", **message}))
        if self._screen.broken is not None:
            self._reading.cancel()  # nobody reads any more: as good as the end of stdin


def _read_stdin(pass_on: Callable[[bytes], Coroutine[Any, Any, None]], token: anyio.lowlevel.EventLoopToken) -> None:
    """Each piece to the loop, which takes it before the next is read; b"" at the end."""
    data = b"x"
    with suppress(
        anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.RunFinishedError
    ):  # nobody listens any more
        while data:
            try:
                data = os.read(STDIN, READ_BYTES)
            except OSError:  # the terminal is gone
                data = b""
            anyio.from_thread.run(pass_on, data, token=token)


def _problem(message: Any) -> str | None:
    """What makes this no JSON-RPC 2.0 message that we take."""
    if isinstance(message, list):
        return "one object a line: batches are not taken"
    if not isinstance(message, dict):
        return "a message is a JSON object"
    if message.get("jsonrpc") != "2.0":
        return 'the member "jsonrpc" must be "2.0"'
    if "id" in message and not _is_id(message["id"]):
        return "an id is a string, a number or null"
    if "method" not in message:
        return None if {"result", "error"} & set(message) else "there is no method"
    if not isinstance(message["method"], str):
        return "a method is a string"
    if not isinstance(message.get("params", {}), dict):
        return "params are an object: every parameter has a name"
    return None


def _is_id(ident: Any) -> bool:
    return ident is None or (isinstance(ident, str | int | float) and not isinstance(ident, bool))
