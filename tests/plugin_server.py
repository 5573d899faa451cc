"""The plugin's MCP server as a process, and the cc-agents command on a user's PATH: for tests of the plugin.

Owns: starting it, sending and reading lines. Does not own: what a call does. Standard library only.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from turns import PATIENCE_S, ROOT, User, ended

PLUGIN = ROOT / "plugin"
SERVER = PLUGIN / "servers" / "gpt_mcp.py"
LAUNCHER = PLUGIN / "servers" / "launcher.py"
DATA = "plugin-data"


def install_command(user: User, version: str | None = None) -> Path:
    """A cc-agents on this user's PATH: the checkout's, or a stub that only knows its version."""
    path = user.root / "path" / "cc-agents"
    path.parent.mkdir(exist_ok=True)
    start = f"exec {shlex.quote(sys.executable)} -m sidecar"
    body = f'{start} "$@"' if version is None else f"echo {version}"
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    user.env["PATH"] = f"{path.parent}:/usr/bin:/bin"
    user.env["CLAUDE_PLUGIN_DATA"] = str(user.root / DATA)
    return path


def launch(user: User, *words: str) -> subprocess.CompletedProcess[str]:
    """The plugin's launcher with these words."""
    argv = [sys.executable, "-I", "-S", str(LAUNCHER), *words]
    return subprocess.run(
        argv, env=user.env, cwd=user.work, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


class McpClient:
    """What Claude Code is to the server."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.heard: list[dict[str, Any]] = []

    def line(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data + b"\n")
        self.process.stdin.flush()

    def says(self, method: str, rid: int | None = None, **params: Any) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        self.line(json.dumps(message if rid is None else {**message, "id": rid}).encode())

    def calls(self, tool: str, rid: int = 1, *, token: int | None = None, **arguments: Any) -> None:
        meta = {} if token is None else {"_meta": {"progressToken": token}}
        self.says("tools/call", rid, name=tool, arguments=arguments, **meta)

    def answer(self, rid: int | None = 1) -> dict[str, Any]:
        """The answer to that request; what came before it is in `heard`."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message: dict[str, Any] = json.loads(line)
            if "id" in message and message["id"] == rid:
                return message
            self.heard.append(message)
        raise AssertionError("the server has ended")

    def told(self, tool: str, rid: int = 1, **arguments: Any) -> tuple[str, bool]:
        """The text that a tool gives, and whether it is an error."""
        self.calls(tool, rid, **arguments)
        result = self.answer(rid)["result"]
        return result["content"][0]["text"], result["isError"]

    def end(self) -> int:
        """The end of its input; its exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(PATIENCE_S)


@contextlib.contextmanager
def serving(user: User) -> Iterator[McpClient]:
    pipe = subprocess.PIPE
    argv = [sys.executable, "-I", "-S", str(SERVER)]
    with ended(subprocess.Popen(argv, env=user.env, cwd=user.work, stdin=pipe, stdout=pipe)) as process:
        yield McpClient(process)
