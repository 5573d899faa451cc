"""A client of `cc-agents serve`: asks for turns and hears their outcomes. Owns the wire, and ending the process."""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.measure import PATIENCE_S, BadRun

READ_BYTES = 1 << 20


class Serve:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.pid, self._process = process.pid, process
        self._stdin, self._stdout = process.stdin, process.stdout
        self._rest: list[bytes] = []
        self._asked = 0
        self.outcomes: dict[str, dict[str, Any]] = {}
        self.jobs: dict[int, str] = {}  # of each question, by its number
        self.begun: set[str] = set()  # jobs whose turn Codex has begun

    def ask(self, **request: Any) -> int:
        """Begins a turn; answers the number of the question."""
        self._asked += 1
        message = {"jsonrpc": "2.0", "id": self._asked, "method": "turn/run", "params": request}
        data = memoryview(json.dumps(message).encode() + b"\n")
        while data:
            data = data[os.write(self._stdin.fileno(), data) :]
        return self._asked

    def turn(self, **request: Any) -> dict[str, Any]:
        """One turn to its end: its outcome."""
        number = self.ask(**request)
        self.hear_until(lambda: self.jobs.get(number) in self.outcomes)
        return self.outcomes[self.jobs[number]]

    def hear_until(self, fact: Any, within_s: float = PATIENCE_S) -> None:
        end = time.monotonic() + within_s
        while not fact():
            ready, _, _ = select.select([self._stdout], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                raise BadRun(f"serve: {len(self.outcomes)} of {self._asked} turns ended within {within_s:.0f} s")
            self._hear()

    def _hear(self) -> None:
        data = os.read(self._stdout.fileno(), READ_BYTES)
        if not data:
            raise BadRun("serve closed its output")
        head, newline, tail = data.partition(b"\n")
        self._rest.append(head)
        if newline:
            *lines, rest = tail.split(b"\n")
            for line in (b"".join(self._rest), *lines):
                self._take(json.loads(line))
            self._rest = [rest]

    def _take(self, message: Mapping[str, Any]) -> None:
        if message.get("method") == "turn/ended":
            self.outcomes[message["params"]["job"]] = message["params"]["outcome"]
        elif message.get("method") == "turn/event":
            if message["params"]["event"]["event"] == "begun":
                self.begun.add(message["params"]["job"])
        elif "error" in message:
            raise BadRun(f"serve refused: {message['error']}")
        else:
            self.jobs[message["id"]] = message["result"]["job"]

    def hang_up(self) -> None:
        self._stdin.close()
        if code := self._process.wait(PATIENCE_S):
            raise BadRun(f"serve ended with {code}")


@contextmanager
def open_serve(argv: Sequence[str], env: Mapping[str, str], cwd: Path) -> Iterator[Serve]:
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, env=env, cwd=cwd, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) as process:
        try:
            client = Serve(process)
            yield client
            client.hang_up()
        finally:
            if process.poll() is None:
                process.kill()
