"""JSON-RPC over a byte channel, as `codex app-server` speaks it: one object a line, both ways.

Owns: splitting bytes into lines, matching answers to requests, refusing what the peer asks, the outgoing queue.
Does not own: what the messages mean, the process behind the channel. Serves rule.bytesThenLinesThenText.
One task reads; it hands every message on, in order and synchronously, so that nobody can await an answer there.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections import deque
from collections.abc import Callable
from typing import Any, TypeAlias

import anyio

from adapters.contract import Channel, PeerError
from adapters.values import Value

RequestId: TypeAlias = int | str
JsonObject: TypeAlias = dict[str, Any]

METHOD_NOT_FOUND = -32601


def _no_json(word: str) -> float:
    raise ValueError(f"{word} is no JSON")


def _float(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _no_json(text)


# Stricter than json.loads, which guesses UTF-16 and UTF-32, lets half a surrogate pair through as bytes, and takes and
# makes numbers that no other program can read: what comes in here may go out again as JSON of ours.
_JSON = json.JSONDecoder(parse_constant=_no_json, parse_float=_float)


class RpcError(Exception):
    """The peer answered a request with an error. `code` and `message` are the peer's."""

    def __init__(self, method: str, code: int, message: str) -> None:
        super().__init__(f"{method}: {message}")
        self.method = method
        self.code = code
        self.message = message


class Refusal(Value):
    """How a request of the peer is declined: with a result that grants nothing, or with an error."""

    result: JsonObject | None = None
    error: str | None = None


class LineSplitter:
    """Bytes in, whole lines out. A line may have any length; each byte is copied once into its line."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, data: bytes) -> list[bytes]:
        head, newline, tail = data.partition(b"\n")
        if not newline:
            self._parts.append(data)
            return []
        self._parts.append(head)
        first = b"".join(self._parts)
        *lines, rest = tail.split(b"\n")
        self._parts = [rest] if rest else []
        return [first, *lines]

    def rest(self) -> bytes:
        """What came after the last newline; a peer that dies may leave half a line."""
        return b"".join(self._parts)


class Pending:
    """A request that was sent. `wait` answers its result; `on_result` and `on_error` see it first, in the
    order of the wire."""

    def __init__(
        self,
        method: str,
        on_result: Callable[[JsonObject], None] | None,
        on_error: Callable[[Exception], None] | None,
    ) -> None:
        self.method = method
        self.error: Exception | None = None
        self.done = False
        self._result: JsonObject = {}
        self._on_result = on_result
        self._on_error = on_error
        self._event = anyio.Event()

    def settle(self, result: JsonObject | None, error: Exception | None) -> None:
        if self.done:
            return
        self.done = True
        self.error = error
        if result is not None:
            self._result = result
            if self._on_result is not None:
                self._on_result(result)
        if error is not None and self._on_error is not None:
            self._on_error(error)
        self._event.set()

    async def wait(self, timeout_s: float) -> JsonObject:
        """Raises RpcError (the peer's answer), PeerError `protocol` (no answer in time, or the peer is gone)."""
        with anyio.move_on_after(timeout_s):
            await self._event.wait()
        if not self.done:
            raise PeerError("protocol", f"Codex did not answer {self.method} within {timeout_s:g} s")
        if self.error is not None:
            raise self.error
        return self._result


class Peer:
    """One conversation. `read` and `write` are its two tasks; everything else is synchronous.

    on_notification(method, params) and on_request(method, params) -> Refusal are called in the order of the wire;
    on_pause() when all of what could be read at once was handed on.
    on_end() is called once, when the peer's output has ended.
    """

    def __init__(
        self,
        channel: Channel,
        *,
        on_notification: Callable[[str, JsonObject], None],
        on_request: Callable[[str, JsonObject], Refusal],
        on_end: Callable[[], None],
        on_pause: Callable[[], None] = lambda: None,
    ) -> None:
        self._channel = channel
        self._on_notification = on_notification
        self._on_request = on_request
        self._on_end = on_end
        self._on_pause = on_pause
        self._pending: dict[int, Pending] = {}
        self._last_id = 0
        self._outgoing: deque[bytes] = deque()
        self._more = anyio.Event()
        self.ended = False
        self.bad_lines = 0
        self.stray_messages = 0

    def post(
        self,
        method: str,
        params: JsonObject | None,
        on_result: Callable[[JsonObject], None] | None = None,
        on_error: Callable[[Exception], None] | None = None,
    ) -> Pending:
        """Queue a request and go on; the answer is the Pending's."""
        pending = Pending(method, on_result, on_error)
        if self.ended:
            pending.settle(None, self._gone(method))
            return pending
        self._last_id += 1
        self._pending[self._last_id] = pending
        message: JsonObject = {"id": self._last_id, "method": method}
        self._send(message if params is None else {**message, "params": params})
        return pending

    async def request(self, method: str, params: JsonObject, timeout_s: float) -> JsonObject:
        return await self.post(method, params).wait(timeout_s)

    def notify(self, method: str) -> None:
        self._send({"method": method})

    async def write(self) -> None:
        """Sends what is queued, for ever. A peer that reads no more ends this quietly: `read` sees why."""
        with contextlib.suppress(OSError):
            while True:
                while self._outgoing:
                    await self._channel.send(self._outgoing.popleft())
                self._more = anyio.Event()
                await self._more.wait()

    async def read(self) -> None:
        """Hands on every message until the peer's output ends; then every waiter wakes with one error."""
        splitter = LineSplitter()
        while data := await self._channel.receive():
            for line in splitter.feed(data):
                self._take(line)
            self._on_pause()
        if rest := splitter.rest():
            self._take(rest)
            self._on_pause()
        self.ended = True
        for pending in self._pending.values():
            pending.settle(None, self._gone(pending.method))
        self._pending.clear()
        self._on_end()

    def _gone(self, method: str) -> PeerError:
        return PeerError("app_server_exited", f"Codex ended before it answered {method}")

    def _send(self, message: JsonObject) -> None:
        # ASCII on the wire: a lone surrogate in a prompt stays valid JSON
        self._outgoing.append(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        self._more.set()

    def _take(self, line: bytes) -> None:
        if not line or line.isspace():
            return
        try:
            message = _JSON.decode(line.decode())
        except (ValueError, RecursionError):
            self.bad_lines += 1
            return
        if not isinstance(message, dict):
            self.bad_lines += 1
            return
        params = message.get("params")
        if not isinstance(params, dict):
            params = {}
        method, ident = message.get("method"), message.get("id")
        if isinstance(method, str):
            if ident is None:
                self._on_notification(method, params)
            else:
                self._refuse(method, params, ident)
        elif type(ident) is int and ident in self._pending:  # True is no id
            self._settle(self._pending.pop(ident), message)
        else:
            self.stray_messages += 1

    def _refuse(self, method: str, params: JsonObject, ident: Any) -> None:
        refusal = self._on_request(method, params)
        # the id goes back as it came: 0 and "0" are two ids
        if refusal.error is not None:
            self._send({"id": ident, "error": {"code": METHOD_NOT_FOUND, "message": refusal.error}})
        else:
            self._send({"id": ident, "result": refusal.result or {}})

    def _settle(self, pending: Pending, message: JsonObject) -> None:
        error = message.get("error")
        if error is None:
            result = message.get("result")
            if isinstance(result, dict):
                pending.settle(result, None)
            else:
                pending.settle(None, PeerError("protocol", f"{pending.method}: the answer has no result"))
            return
        if not isinstance(error, dict):
            error = {"message": str(error)}
        code = error.get("code")
        pending.settle(
            None,
            RpcError(
                pending.method,
                code if isinstance(code, int) else 0,
                str(error.get("message") or "error without a message"),
            ),
        )
