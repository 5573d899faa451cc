"""The scripted model in a process of its own: `python -m benchmarks.model`, until its stdin ends.

The prompt says what it does. It prints its address, then a line for each request. Owns nothing but that.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue

from tests_live.responses_api import ScriptedModel, run_command, say, silence
from tests_live.script import Body, Part, outputs, user_texts

SAY, SILENT, RUN = "Say done.", "Be silent.", "Run: "
ANSWER = "done"
HEARD_S = 30.0


def answer(body: Body) -> Part:
    asked = next((text for text in reversed(user_texts(body)) if text.startswith((SAY, SILENT, RUN))), SAY)
    sys.stdout.write(asked.partition("\n")[0] + "\n")
    sys.stdout.flush()
    if asked.startswith(SILENT):
        return silence()
    if asked.startswith(RUN) and not outputs(body):
        return run_command(asked.removeprefix(RUN))
    return say(ANSWER)


class Model:
    """The running process, seen from the benchmark."""

    def __init__(self, running: subprocess.Popen[str]) -> None:
        assert running.stdout is not None
        self._lines: Queue[str] = Queue()
        self._stdout = running.stdout
        threading.Thread(target=self._listen, daemon=True).start()
        self.base_url = self._lines.get(timeout=HEARD_S)

    def _listen(self) -> None:
        for line in self._stdout:
            self._lines.put(line.rstrip("\n"))

    def forget(self) -> None:
        while not self._lines.empty():
            self._lines.get()

    def wait_for(self, asked: str) -> None:
        """Until a turn has asked the model this. Raises queue.Empty."""
        while not self._lines.get(timeout=HEARD_S).startswith(asked):
            continue


@contextmanager
def open_model(root: Path) -> Iterator[Model]:
    argv, pipe = [sys.executable, "-m", "benchmarks.model"], subprocess.PIPE
    env = {**os.environ, "PYTHONPATH": str(root)}
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True, env=env) as running:
        try:
            yield Model(running)
        finally:
            assert running.stdin is not None
            running.stdin.close()


if __name__ == "__main__":
    with ScriptedModel([answer]) as model:
        sys.stdout.write(model.base_url + "\n")
        sys.stdout.flush()
        sys.stdin.read()
