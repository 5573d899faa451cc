"""A scripted model: the Responses API of OpenAI on a loopback port, answering from a list of steps.

Owns: HTTP, and the record of every request. Does not own: the events (event_stream.py) or what is said (script.py,
whose helpers are offered here too). One thread a connection; standard library only.
"""

from __future__ import annotations

import gzip
import importlib
import json
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal, TypeAlias

from tests_live import script
from tests_live.event_stream import Stream
from tests_live.script import (
    Body,
    HttpError,
    Part,
    Step,
    call_tool,
    cut,
    http_error,
    item,
    javascript,
    patch,
    run_command,
    say,
    silence,
    sse_failed,
    sse_incomplete,
    step,
    tokens,
)

__all__ = [
    "Request",
    "ScriptedModel",
    "call_tool",
    "cut",
    "http_error",
    "item",
    "javascript",
    "offered_tools",
    "patch",
    "run_command",
    "say",
    "silence",
    "sse_failed",
    "sse_incomplete",
    "step",
    "tokens",
    "tool_outputs",
    "user_texts",
]

SOCKET_TIMEOUT_S = 60.0  # a client that stops reading must not hold a thread for ever
REQUEST_WAIT_S = 30.0  # a real codex on a busy machine needs up to 2 s for its first request

Answer: TypeAlias = Part | Step | Sequence[Part]
Scripted: TypeAlias = Answer | Callable[[Body], Answer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request as it came: header names in lower case, `raw` after decompression, `body` its JSON."""

    path: str
    headers: Mapping[str, str]
    raw: bytes
    body: Body


def offered_tools(request: Request) -> list[str]:
    """Names of all tools on offer, nested ones of code mode and `namespace.name` included."""
    return script.tool_names(request.body)


def tool_outputs(request: Request) -> list[str]:
    """What the tools answered up to this request, oldest first."""
    return script.outputs(request.body)


def user_texts(request: Request) -> list[str]:
    """Every text of the role `user`, oldest first."""
    return script.user_texts(request.body)


class ScriptedModel:
    """Answers the n-th model request with the n-th step of `steps`.

    A step is a part, several parts, a `Step`, or a callable that makes one from the request's body.
    After the last step: `then="repeat"` says it again; `then="error"` answers 500 and fails the test on exit.
    """

    def __init__(
        self, steps: Iterable[Scripted], *, then: Literal["repeat", "error"] = "repeat", port: int = 0
    ) -> None:
        self._steps = list(steps)
        self._then = then
        self._changed = threading.Condition()
        self.requests: list[Request] = []
        self.problems: list[str] = []
        self.hang_ups = 0  # clients that went away during a silence
        self.closing = threading.Event()
        self._server = _Server(self, port)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> ScriptedModel:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        if kind is None and self.problems:
            raise AssertionError("; ".join(self.problems))

    def extend(self, *steps: Scripted) -> None:
        """Add steps to the script, before they are asked for."""
        with self._changed:
            self._steps += steps

    def drop_rest(self) -> None:
        """Forget the steps that were not asked for: another turn begins."""
        with self._changed:
            del self._steps[len(self.requests) :]

    def wait_for_requests(self, count: int, timeout_s: float = REQUEST_WAIT_S) -> Request:
        """The `count`-th request (from 1), as soon as it is there. Raises TimeoutError."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self.requests) >= count, timeout_s):
                raise TimeoutError(f"{len(self.requests)} model requests in {timeout_s} s, not {count}")
            return self.requests[count - 1]

    def wait_for_hang_up(self, timeout_s: float = REQUEST_WAIT_S) -> None:
        """Returns when a client has gone away during a silence. Raises TimeoutError."""
        with self._changed:
            if not self._changed.wait_for(lambda: self.hang_ups > 0, timeout_s):
                raise TimeoutError(f"no client hung up in {timeout_s} s")

    def hung_up(self) -> None:
        with self._changed:
            self.hang_ups += 1
            self._changed.notify_all()

    def answer(self, request: Request) -> Step:
        """Record the request and give the step that is due."""
        with self._changed:
            self.requests.append(request)
            due = len(self.requests) - 1
            beyond = due >= len(self._steps)
            scripted = None if not self._steps else self._steps[min(due, len(self._steps) - 1)]
            self._changed.notify_all()
        if scripted is None or (beyond and self._then == "error"):
            self.problems.append(f"model request {due + 1} is beyond the script")
            return step(http_error(500, self.problems[-1]))
        made = scripted(request.body) if callable(scripted) else scripted
        if isinstance(made, Step):
            return made
        return step(*made) if isinstance(made, Sequence) else step(made)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256  # hundreds of turns may ask at once

    def __init__(self, model: ScriptedModel, port: int) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.model = model

    def handle_error(self, request: Any, client_address: Any) -> None:
        error = sys.exc_info()[1]
        if not isinstance(error, ConnectionError | TimeoutError):  # the client may hang up when it likes
            self.model.problems.append(f"scripted model: {error!r}")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = SOCKET_TIMEOUT_S
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet: the requests are recorded."""

    def do_GET(self) -> None:
        self._plain(http_error(404))

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        if not self.path.split("?")[0].endswith("/responses"):
            return self._plain(http_error(404))
        headers = {name.lower(): value for name, value in self.headers.items()}
        raw = _decompressed(raw, headers.get("content-encoding", ""))
        request = Request(path=self.path, headers=headers, raw=raw, body=json.loads(raw))
        answer = self.server.model.answer(request)
        if answer.parts and isinstance(answer.parts[0], HttpError):
            return self._plain(answer.parts[0])
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        Stream(self.connection, self.server.model.closing, self.server.model.hung_up).play(answer, request.body)

    def _plain(self, error: HttpError) -> None:
        self.send_response(error.status)
        for name, value in {**error.headers, "connection": "close"}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(error.body)))
        self.end_headers()
        self.wfile.write(error.body)


def _decompressed(raw: bytes, encoding: str) -> bytes:
    """Codex compresses with zstd when signed in to ChatGPT: that needs Python 3.14 or zstandard."""
    if encoding in ("", "identity"):
        return raw
    if encoding == "gzip":
        return gzip.decompress(raw)
    if encoding != "zstd":
        raise ValueError(f"content-encoding {encoding!r}")
    try:
        module = importlib.import_module("compression.zstd")
    except ImportError:
        module = importlib.import_module("zstandard")
        return bytes(module.ZstdDecompressor().decompressobj().decompress(raw))
    return bytes(module.decompress(raw))
