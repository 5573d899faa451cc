"""A client of `cc-agents serve`: the messages are those of jsonrpcclient, a library that is not ours. Owns no test."""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jsonrpcclient import Error, Ok, parse, request
from turns import PATIENCE_S, User, ended


class Client:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        assert process.stdin is not None
        assert process.stdout is not None
        self.stdin, self.stdout = process.stdin, process.stdout
        self.notes: list[dict[str, Any]] = []
        self.answers: dict[Any, dict[str, Any]] = {}
        self._rest = b""

    def say(self, data: bytes) -> None:
        os.write(self.stdin.fileno(), data)

    def ask(self, method: str, **params: Any) -> Any:
        """The id of a question that was sent."""
        message = request(method, params=params)
        self.say(json.dumps(message).encode() + b"\n")
        return message["id"]

    def answer(self, ident: Any) -> Ok | Error:
        self.until(lambda: ident in self.answers)
        return parse(self.answers[ident])  # type: ignore[return-value]

    def call(self, method: str, **params: Any) -> Any:
        found = self.answer(self.ask(method, **params))
        assert isinstance(found, Ok), found
        return found.result

    def fault(self, method: str, **params: Any) -> Error:
        found = self.answer(self.ask(method, **params))
        assert isinstance(found, Error), found
        return found

    def run(self, **params: Any) -> str:
        job: str = self.call("turn/run", **params)["job"]
        return job

    def outcome(self, job: str) -> dict[str, Any]:
        self.until(lambda: any(n["method"] == "turn/ended" and n["params"]["job"] == job for n in self.notes))
        return next(
            n["params"]["outcome"] for n in self.notes if n["method"] == "turn/ended" and n["params"]["job"] == job
        )

    def events(self, job: str) -> list[dict[str, Any]]:
        return [n["params"]["event"] for n in self.notes if n["method"] == "turn/event" and n["params"]["job"] == job]

    def until(self, fact: Any) -> None:
        end = time.monotonic() + PATIENCE_S
        while not fact():
            ready, _, _ = select.select([self.stdout], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"nothing came: {self.notes[-3:]} {self.answers}"
            data = os.read(self.stdout.fileno(), 1 << 20)
            assert data, "serve closed its output"
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                self._take(json.loads(line))

    def _take(self, message: dict[str, Any]) -> None:
        assert message["jsonrpc"] == "2.0"
        if "method" in message:
            self.notes.append(message)
        else:
            self.answers[message["id"]] = message

    def hang_up(self) -> int:
        self.stdin.close()
        self.process.wait(PATIENCE_S)
        return self.process.returncode


@contextmanager
def serve(user: User) -> Iterator[Client]:
    with ended(user.start("serve", stdin=subprocess.PIPE)) as process:
        yield Client(process)
