"""The least that can talk to the fake app-server: no code of the adapters is in it.

Owns: a synchronous client and the fixture's body for the tests of the fake. Serves spec:cc-agents.fakes.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fake_app_server.shim import write_shim

# Far longer than any of these takes on a loaded machine; only a hang reaches it.
PATIENCE_S = 20.0
TRANSCRIPTS = Path(__file__).parent / "transcripts"
INPUT = [{"type": "text", "text": "do it"}]


class Client:
    def __init__(self, argv: list[str], env: dict[str, str]) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, env=env, start_new_session=True)
        self.stdin, self.stdout, self.stderr = self.process.stdin, self.process.stdout, self.process.stderr
        assert None not in (self.stdin, self.stdout, self.stderr)
        self.received: list[dict[str, Any]] = []
        self._rest = b""
        self._id = 0

    def write(self, message: Any) -> None:
        os.write(self.stdin.fileno(), json.dumps(message).encode() + b"\n")

    def ask(self, method: str, params: Any = None) -> int:
        self._id += 1
        self.write({"id": self._id, "method": method, "params": params if params is not None else {}})
        return self._id

    def line(self) -> bytes:
        """The next line; b"" at the end of output."""
        parts = [self._rest]
        while b"\n" not in parts[-1]:
            ready, _, _ = select.select([self.stdout], [], [], PATIENCE_S)
            assert ready, f"nothing came; so far: {self.received[-3:]}"
            data = os.read(self.stdout.fileno(), 1 << 20)
            if not data:
                return b""
            parts.append(data)
        line, self._rest = b"".join(parts).split(b"\n", 1)
        return line

    def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        while True:
            line = self.line()
            assert line, f"end of output; so far: {self.received[-3:]}"
            message = json.loads(line)
            self.received.append(message)
            if wanted(message):
                return message

    def notice(self, method: str) -> dict[str, Any]:
        return self.until(lambda m: m.get("method") == method)["params"]

    def answer(self, number: int) -> dict[str, Any]:
        return self.until(lambda m: m.get("id") == number and "method" not in m)

    def call(self, method: str, params: Any = None) -> Any:
        answer = self.answer(self.ask(method, params))
        return answer.get("result", answer.get("error"))

    def initialize(self, **capabilities: Any) -> Any:
        info = {"name": "tester", "title": "t", "version": "9"}
        answer = self.call("initialize", {"clientInfo": info, "capabilities": capabilities})
        self.write({"method": "initialized"})
        return answer

    def open(self, **params: Any) -> str:
        self.initialize()
        return self.call("thread/start", {"cwd": "/", "approvalPolicy": "never", **params})["thread"]["id"]

    def turn(self, thread: str) -> str:
        return self.call("turn/start", {"threadId": thread, "input": INPUT})["turn"]["id"]

    def said(self, method: str) -> list[dict[str, Any]]:
        return [m["params"] for m in self.received if m.get("method") == method]

    def hang_up(self) -> int:
        self.stdin.close()
        return self.process.wait(PATIENCE_S)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE_S)
        for stream in (self.stdin, self.stdout, self.stderr):
            stream.close()


class Fake:
    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder / "log.ndjson"
        self.clients: list[Client] = []
        self.env = {"PATH": os.environ["PATH"], "HOME": str(folder)}

    def __call__(self, scenario: Any = None, *argv: str) -> Client:
        shim = write_shim(self.folder / "bin", scenario=scenario, log=self.log)
        self.clients.append(Client([str(shim), "app-server", *argv], self.env))
        return self.clients[-1]

    def __enter__(self) -> Fake:
        return self

    def __exit__(self, *_: object) -> None:
        for client in self.clients:
            client.close()

    def logged(self, key: str) -> list[Any]:
        return [e[key] for e in map(json.loads, self.log.read_text().splitlines()) if key in e]


def wait_for(fact: Callable[[], Any]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not fact():
        assert time.monotonic() < end, "it never became true"
        time.sleep(0.01)


def profile(files: dict[str, str], **more: Any) -> dict[str, Any]:
    return {
        "default_permissions": "p",
        "permissions": {"p": {"filesystem": {":root": "read", **files}, **more}},
    }


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
