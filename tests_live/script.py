"""What the scripted model says: the parts of a step, and how each becomes items of the Responses API.

Owns: the helpers that a test writes its script with, and the choice between the two tool styles of Codex
(code mode: one `exec` tool that takes JavaScript; plain: one function for each tool).
Does not own: HTTP and the event stream (responses_api.py). Standard library only.
"""

from __future__ import annotations

import json
import re
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Body: TypeAlias = Mapping[str, Any]


# --- the parts of a step ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One output item. `make` sees the request, so that it can use the tool style that was offered."""

    make: Callable[[Body], dict[str, Any]]
    deltas: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpError:
    """Answer with this status instead of a stream. Only as the first part of a step."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    """An event that ends the stream in place of `response.completed`."""

    event: str
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """The connection ends here, with no last event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """Nothing is sent until the event is set, the client hangs up, or the model is closed."""

    until: threading.Event


Part: TypeAlias = Item | HttpError | Terminal | Cut | Silence


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The answer to one model request."""

    parts: tuple[Part, ...]
    usage: Mapping[str, Any] | None


def tokens(
    input: int = 100, *, cached: int = 10, cache_write: int = 0, output: int = 20, reasoning: int = 5
) -> dict[str, Any]:
    """The usage of one model request: `cached` is part of `input`, `reasoning` of `output`."""
    return {
        "input_tokens": input,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": cache_write},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": input + output,
    }


def step(*parts: Part, usage: Mapping[str, Any] | None = None) -> Step:
    """Several parts as the answer to one request; `usage` from `tokens(...)`, its defaults if None."""
    return Step(parts=parts, usage=tokens() if usage is None else usage)


# --- what a test writes -------------------------------------------------------------------------------------


def say(text: str, phase: str | None = "final_answer", deltas: Iterable[str] = ()) -> Item:
    """A message of the assistant. `deltas` are streamed first; they need not add up to `text`."""

    def make(_: Body) -> dict[str, Any]:
        content = [{"type": "output_text", "text": text, "annotations": []}]
        message = {"type": "message", "role": "assistant", "id": _id("msg"), "content": content}
        return message if phase is None else {**message, "phase": phase}

    return Item(make=make, deltas=tuple(deltas))


def run_command(cmd: str, **kw: Any) -> Item:
    """Run a shell command; `kw` are further arguments of exec_command (workdir, yield_time_ms, ...)."""
    return call_tool("exec_command", {"cmd": cmd, **kw})


def patch(text: str) -> Item:
    """Apply a patch (`*** Begin Patch` ... `*** End Patch`)."""

    def make(body: Body) -> dict[str, Any]:
        if code_mode(body):
            return _custom("exec", f"text(await tools.apply_patch({json.dumps(text)}));")
        return _custom("apply_patch", text)

    return Item(make=make)


def call_tool(name: str, args: Mapping[str, Any]) -> Item:
    """Call a tool by its name (`exec_command`, `spawn_agent`, ...), in the style that the request offers."""

    def make(body: Body) -> dict[str, Any]:
        for namespace, tool in _top_level(body):
            if tool == name:
                return _function(name, args, namespace)
        if code_mode(body):
            return _custom("exec", _javascript(name, args))
        return _function(name, args, None)

    return Item(make=make)


def javascript(code: str) -> Item:
    """Raw input for the `exec` tool of code mode."""
    return Item(make=lambda _: _custom("exec", code))


def item(raw: Mapping[str, Any]) -> Item:
    """An output item exactly as given."""
    return Item(make=lambda _: dict(raw))


def http_error(
    status: int, body: bytes | str | Mapping[str, Any] = b"", headers: Mapping[str, str] | None = None
) -> HttpError:
    """A plain HTTP answer; a mapping is sent as JSON."""
    if isinstance(body, Mapping):
        data, kind = json.dumps(body).encode(), "application/json"
    else:
        data, kind = body.encode() if isinstance(body, str) else body, "text/plain"
    return HttpError(status=status, body=data, headers={"content-type": kind, **(headers or {})})


def sse_failed(code: str, message: str) -> Terminal:
    """The stream ends with `response.failed`."""
    response = {"id": _id("resp"), "status": "failed", "error": {"code": code, "message": message}}
    return Terminal(event="response.failed", fields={"response": response})


def sse_incomplete(reason: str) -> Terminal:
    """The stream ends with `response.incomplete`."""
    response = {"id": _id("resp"), "status": "incomplete", "incomplete_details": {"reason": reason}}
    return Terminal(event="response.incomplete", fields={"response": response})


def cut() -> Cut:
    """The connection ends without a last event."""
    return Cut()


def silence(until: threading.Event | None = None) -> Silence:
    """Say nothing until `until` is set; None: until the client hangs up or the model is closed."""
    return Silence(until=threading.Event() if until is None else until)


# --- reading a request --------------------------------------------------------------------------------------


def code_mode(body: Body) -> bool:
    """Whether the request offers tools through one `exec` tool that takes JavaScript."""
    return any(tool == "exec" for _, tool in _top_level(body))


def tool_names(body: Body) -> list[str]:
    """Every tool on offer: plain ones, `namespace.name`, and those nested in code mode by their own name."""
    names = [tool if space is None else f"{space}.{tool}" for space, tool in _top_level(body)]
    for description in _exec_descriptions(body):
        names += re.findall(r"declare const tools: \{ (\w+)\(", description)
    return names


def outputs(body: Body) -> list[str]:
    """What the tools answered so far, oldest first, as text."""
    kinds = ("function_call_output", "custom_tool_call_output")
    return [_text(i.get("output")) for i in body["input"] if i.get("type") in kinds]


def user_texts(body: Body) -> list[str]:
    """Every text of the role `user`, oldest first (Codex' own context messages included)."""
    users = (i for i in body["input"] if i.get("type") == "message" and i.get("role") == "user")
    return [part["text"] for message in users for part in message["content"] if "text" in part]


def _text(output: Any) -> str:
    if isinstance(output, str):
        return output
    if isinstance(output, Sequence):
        return "\n".join(part["text"] for part in output if isinstance(part, Mapping) and "text" in part)
    return json.dumps(output)


def _tools(body: Body) -> list[Mapping[str, Any]]:
    more = (i["tools"] for i in body["input"] if i.get("type") == "additional_tools")
    return [*body.get("tools", ()), *(tool for tools in more for tool in tools)]


def _top_level(body: Body) -> list[tuple[str | None, str]]:
    found: list[tuple[str | None, str]] = []
    for tool in _tools(body):
        if tool.get("type") == "namespace":
            space = None if tool["name"] == "functions" else tool["name"]
            found += [(space, inner["name"]) for inner in tool["tools"]]
        else:
            found.append((None, tool.get("name", tool["type"])))
    return found


def _exec_descriptions(body: Body) -> list[str]:
    flat = (inner for tool in _tools(body) for inner in (tool, *tool.get("tools", ())))
    return [tool.get("description", "") for tool in flat if tool.get("name") == "exec"]


# --- items of the API ---------------------------------------------------------------------------------------


def _id(prefix: str) -> str:
    return f"{prefix}_{uuid.uuid4().hex}"


def _custom(name: str, text: str) -> dict[str, Any]:
    call = {"type": "custom_tool_call", "id": _id("ctc"), "call_id": _id("call")}
    return {**call, "name": name, "input": text}


def _function(name: str, args: Mapping[str, Any], namespace: str | None) -> dict[str, Any]:
    call = {"type": "function_call", "id": _id("fc"), "call_id": _id("call"), "name": name}
    call["arguments"] = json.dumps(args)
    return call if namespace is None else {**call, "namespace": namespace}


def _javascript(name: str, args: Mapping[str, Any]) -> str:
    call = f"const r = await tools[{json.dumps(name)}]({json.dumps(args)});"
    if name != "exec_command":
        return f"{call} text(r);"
    return f'{call} text(r.output); text("[exit " + r.exit_code + "]");'
