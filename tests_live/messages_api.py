"""A scripted Claude: the Messages API of Anthropic on a loopback port, for sessions of the real Claude Code.

Owns: HTTP, the event stream, whose turn a request is, the record of every request. Does not own: what is said (the
tests say it). It keeps no state between requests, so that agents at work at once can't mix: whose request it is and
which turn of theirs is read from the request. Standard library only.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, TypeAlias

Body: TypeAlias = Mapping[str, Any]
Block: TypeAlias = Mapping[str, Any]
Turn: TypeAlias = Sequence[Block] | Callable[[Body], Sequence[Block]]

RELAY_MARK = "You carry one message"  # of the plugin's agent files: who has it in the system prompt is the relay
SOCKET_TIMEOUT_S = 60.0  # a client that stops reading must not hold a thread for ever
NOTES = ("<system-reminder>", "<total_tokens>", "# Environment")  # what Claude Code itself says as the user
CHARS_A_TOKEN = 4  # near enough to compare what two ways cost; no claim about the real tokenizer


# --- what a test writes -------------------------------------------------------------------------------------


def says(text: str) -> Block:
    return {"type": "text", "text": text}


def uses(tool: str, **arguments: Any) -> Block:
    return {"type": "tool_use", "name": tool, "input": arguments}


def asks_agent(prompt: str, agent: str = "gpt", *, background: bool = False) -> Block:
    """The main model hands `prompt` to one of the plugin's agents."""
    return uses(
        "Agent",
        description="Ask GPT",
        prompt=prompt,
        subagent_type=f"cc-agents:{agent}",
        run_in_background=background,
    )


def needs(tool: str) -> Block:
    """A tool that Claude Code offers by name only has to be fetched first."""
    return uses("ToolSearch", query=f"select:{tool}", max_results=1)


def sends(to: str, message: str) -> Block:
    return uses("SendMessage", to=to, summary="next", message=message)


# --- reading a request --------------------------------------------------------------------------------------


def texts(body: Body) -> list[str]:
    """Every text of the conversation, tool results included, oldest first."""
    return [text for message in body["messages"] for text in _texts_of(message["content"])]


def newest(body: Body) -> str:
    """What came since the last answer: tool results and messages, joined."""
    return "\n".join(_texts_of(body["messages"][-1]["content"]))


def tool_result(body: Body) -> str:
    """What the tools of the last answer gave, without what Claude Code puts beside it."""
    for message in reversed(body["messages"]):
        content = message["content"]
        blocks = [] if isinstance(content, str) else [b for b in content if b.get("type") == "tool_result"]
        if blocks:
            return "".join(text for block in blocks for text in _texts_of(block.get("content")))
    raise AssertionError("no tool has answered yet")


def task(body: Body) -> str:
    """What an agent was last told, without Claude Code's own notes."""
    contents = [message["content"] for message in body["messages"] if message["role"] == "user"]
    said: list[str] = []
    for content in contents:
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        said += [block["text"] for block in blocks if block.get("type") == "text"]
    return next(text for text in reversed(said) if not text.startswith(NOTES))


def _texts_of(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    found: list[str] = []
    for block in content or ():
        if block.get("type") == "text":
            found.append(block["text"])
        elif block.get("type") == "tool_result":
            found += _texts_of(block.get("content"))
    return found


def system_text(body: Body) -> str:
    return "\n".join(_texts_of(body.get("system") or ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One model request: `actor` is `main` or `relay`, `turn` counts from 0."""

    actor: str
    turn: int
    body: Body
    size: int  # bytes of the request

    @property
    def tokens(self) -> int:
        return self.size // CHARS_A_TOKEN


class ScriptedClaude:
    """Answers the n-th turn of an actor with the n-th of its turns, and "done" after the last one."""

    def __init__(self, *, main: Sequence[Turn] = (), relay: Sequence[Turn] = ()) -> None:
        self.turns: dict[str, Sequence[Turn]] = {"main": main, "relay": relay}
        self.asked: list[Asked] = []
        self.problems: list[str] = []
        self._lock = threading.Lock()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def of(self, actor: str) -> list[Asked]:
        with self._lock:
            return [asked for asked in self.asked if asked.actor == actor]

    def answer(self, body: Body, size: int) -> dict[str, Any]:
        """The message that this request gets."""
        actor = "relay" if RELAY_MARK in system_text(body) else "main"
        turn = sum(message["role"] == "assistant" for message in body["messages"])
        with self._lock:
            self.asked.append(Asked(actor=actor, turn=turn, body=body, size=size))
            number = len(self.asked)
        scripted = self.turns[actor][turn] if turn < len(self.turns[actor]) else [says("done")]
        blocks = [dict(block) for block in (scripted(body) if callable(scripted) else scripted)]
        for place, block in enumerate(blocks):
            if block["type"] == "tool_use":
                block["id"] = f"toolu_{number:04}_{place}"
        return {
            "id": f"msg_{number:04}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": blocks,
            "stop_reason": "tool_use" if any(b["type"] == "tool_use" for b in blocks) else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": size // CHARS_A_TOKEN, "output_tokens": len(json.dumps(blocks)) // CHARS_A_TOKEN},
        }

    def __enter__(self) -> ScriptedClaude:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(SOCKET_TIMEOUT_S)
        if kind is None and self.problems:
            raise AssertionError("\n".join(self.problems))


# --- HTTP ---------------------------------------------------------------------------------------------------


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, claude: ScriptedClaude) -> None:
        self.claude = claude
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    timeout = SOCKET_TIMEOUT_S

    def log_message(self, *_: object) -> None:
        """Nothing: pytest's output is for failures."""

    def do_HEAD(self) -> None:
        self._send(200, b"", "application/json")

    def do_GET(self) -> None:
        self._send(404, b"{}", "application/json")

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.path.split("?")[0] != "/v1/messages":
            return self._send(404, b"{}", "application/json")
        body = json.loads(raw)
        try:
            message = self.server.claude.answer(body, len(raw))
        except Exception as error:  # a script that fails must fail its test, not hang the session
            self.server.claude.problems.append(f"{type(error).__name__}: {error}")
            return self._send(
                400, json.dumps({"type": "error", "error": {"type": "script"}}).encode(), "application/json"
            )
        if body.get("stream"):
            return self._send(200, stream(message), "text/event-stream")
        return self._send(200, json.dumps(message).encode(), "application/json")

    def _send(self, status: int, data: bytes, kind: str) -> None:
        try:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # Claude Code hung up: interrupted, or killed


def stream(message: Mapping[str, Any]) -> bytes:
    """The message as server-sent events."""
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    ]
    for index, block in enumerate(message["content"]):
        if block["type"] == "tool_use":
            start = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        else:
            start = {"type": "text", "text": ""}
            delta = {"type": "text_delta", "text": block["text"]}
        events += [
            {"type": "content_block_start", "index": index, "content_block": start},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    ending = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    usage = {"output_tokens": message["usage"]["output_tokens"]}
    events += [{"type": "message_delta", "delta": ending, "usage": usage}, {"type": "message_stop"}]
    return b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events)
