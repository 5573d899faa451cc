"""The plugin's MCP server on stdio: turns where Claude Code's modules don't load, and the tools of its commands.

Owns: the protocol, the tools, which calls are under way and that none outlives it. Does not own: a call (calls.py).
Ready at once: standard library only, Python 3.8, nothing is started before a call. Serves rule.fallbackTool.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from types import FrameType
from typing import IO, Any

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))  # -I leaves a script's own folder out
sys.dont_write_bytecode = True  # nothing is written beside the plugin's files

from calls import ROOT, VERBS, Call  # noqa: E402  # only now can it be found

PROTOCOL = "2025-06-18"
RESULT_CHARS = 500000  # the most that Claude Code takes in one result
GRACE_S = 30.0  # cc-agents ends a turn within its own grace and is gone then; past it something is broken


def tool(name: str, description: str, key: str, what: str, required: bool = True) -> dict[str, Any]:
    properties = {key: {"type": "string", "description": what}}
    if name in VERBS:
        properties["agent"] = {"type": "string", "description": "leave out"}
    schema = {"type": "object", "properties": properties, "required": [key] if required else []}
    return {
        "name": name,
        "description": description,
        "inputSchema": schema,
        "_meta": {"anthropic/maxResultSizeChars": RESULT_CHARS},
    }


TOOLS = [
    tool("run", "Gives a whole task to a GPT model, read-only; the result is its answer.", "task", "the whole task"),
    tool("write", "The same for a task that may change files.", "task", "the whole task"),
    tool("review", "Codex reviews the uncommitted changes, or those against a base.", "task", "base or uncommitted"),
    tool("status", "The jobs of cc-agents, or one of them.", "job", "a job or thread", required=False),
    tool("result", "The answer of a job, exactly.", "job", "a job or thread"),
    tool("interrupt", "Ends a running job.", "job", "a job or thread"),
    tool("setup", "Whether cc-agents is ready; installs it if asked to.", "words", "install [FOLDER]", required=False),
]


# --- the server ---------------------------------------------------------------------------------------------


class Server:
    def __init__(self, out: IO[bytes]) -> None:
        self.out = out
        self.lock = threading.Lock()
        self.calls: dict[Any, Call] = {}

    def send(self, message: dict[str, Any]) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
        with self.lock:
            try:
                self.out.write(data)
                self.out.flush()
            except OSError:
                pass  # Claude Code has gone; the end of stdin says so too, and ends every call

    def read(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except ValueError as error:
            self.send({"id": None, "error": {"code": -32700, "message": str(error)}})
            return
        self.handle(message)

    def handle(self, message: dict[str, Any]) -> None:
        method, rid, params = message.get("method"), message.get("id"), message.get("params") or {}
        if method == "initialize":
            info = {"name": "gpt", "version": plugin_version()}
            wanted = params.get("protocolVersion", PROTOCOL)
            result = {"protocolVersion": wanted, "capabilities": {"tools": {}}, "serverInfo": info}
            self.send({"id": rid, "result": result})
        elif method == "tools/list":
            self.send({"id": rid, "result": {"tools": TOOLS}})
        elif method == "tools/call":
            self.call(rid, params)
        elif method == "ping":
            self.send({"id": rid, "result": {}})
        elif method == "notifications/cancelled":
            call = self.calls.get(params.get("requestId"))
            if call is not None:
                call.stop()
        elif rid is not None:
            self.send({"id": rid, "error": {"code": -32601, "message": f"unknown method {method}"}})

    def call(self, rid: Any, params: dict[str, Any]) -> None:
        if params.get("name") not in [known["name"] for known in TOOLS]:
            self.send({"id": rid, "error": {"code": -32602, "message": f"unknown tool {params.get('name')}"}})
            return

        def over(call: Call, text: str, failed: bool) -> None:
            self.calls.pop(rid, None)
            if not call.cancelled:  # nobody waits for the answer of a cancelled request
                content = [{"type": "text", "text": text}]
                self.send({"id": rid, "result": {"content": content, "isError": failed}})

        self.calls[rid] = call = Call(params, self.send, over)
        call.thread.start()

    def close(self) -> None:
        """Ends every call, and waits until their processes are gone."""
        calls = list(self.calls.values())
        for call in calls:
            call.stop()
        for call in calls:
            call.finish(GRACE_S)


def plugin_version() -> str:
    with open(os.path.join(ROOT, ".claude-plugin", "plugin.json"), encoding="utf-8") as file:
        return str(json.load(file)["version"])


class Told(Exception):
    """A signal asked us to end."""


def on_signal(_number: int, _frame: FrameType | None) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    raise Told


def main() -> None:
    server = Server(sys.stdout.buffer)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, on_signal)
    try:
        for line in sys.stdin.buffer:
            if line.strip():
                server.read(line)
    except Told:
        pass
    finally:
        server.close()


if __name__ == "__main__":
    main()
