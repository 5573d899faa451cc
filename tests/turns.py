"""A user of cc-agents, for tests: a machine's home of their own, the fake as their codex, the command as a process.

Owns: the environment of such a user, running and starting the command, reading what the fake saw.
Does not own: scenarios (the tests say them), the fake. Nothing of the tester's own environment gets in.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from schemas import valid

from fake_app_server.shim import write_shim

ROOT = Path(__file__).resolve().parent.parent
# Far longer than any of these takes on a loaded machine; only a hang reaches it.
PATIENCE_S = 60.0
POLL_S = 0.005

Steps = list[dict[str, Any]]
START: Steps = [{"start": True}]
ANSWER: Steps = [{"start": True}, {"msg": ["ANSWER", "final_answer"]}, {"done": "completed"}]
SILENCE: Steps = [{"start": True}, {"stall": True}]


def wait_for(fact: Callable[[], Any], within_s: float = PATIENCE_S) -> Any:
    """What the fact is once it is true."""
    end = time.monotonic() + within_s
    while not (found := fact()):
        assert time.monotonic() < end, "it never became true"
        time.sleep(POLL_S)
    return found


def one_page(found: object) -> str:
    text = found if isinstance(found, str) else json.dumps(found, indent=1)
    return text[:3000]


class Ran:
    """A command that has ended."""

    def __init__(self, code: int, out: bytes, err: bytes, took_s: float) -> None:
        self.code, self.out, self.err, self.took_s = code, out, err.decode(), took_s

    @property
    def outcome(self) -> dict[str, Any]:
        """Of --json; read as strictly as any other program would read it."""
        found: dict[str, Any] = strict(self.out)
        return found

    @property
    def error(self) -> dict[str, Any]:
        found: dict[str, Any] | None = self.outcome["error"]
        assert found is not None, one_page(self.outcome)
        return found

    def ended_as(self, status: str, reason: str | None, code: int) -> Ran:
        """Asserts all three, and shows what there is instead."""
        outcome = self.outcome
        found = (outcome["status"], (outcome["error"] or {}).get("reason"), self.code)
        assert found == (status, reason, code), one_page(outcome) + self.err
        assert outcome["exit_code"] == self.code
        assert valid("outcome", outcome)
        return self

    def completed(self) -> Ran:
        return self.ended_as("completed", None, 0)


def strict(data: bytes) -> Any:
    """JSON of valid UTF-8 without the words that only Python knows (NaN, Infinity)."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    return json.loads(data.decode("utf-8", "strict"), parse_constant=refuse)


class User:
    def __init__(self, root: Path) -> None:
        self.root, self.log = root, root / "fake.ndjson"
        self.home, self.codex_home, self.work = root / "home", root / "home" / ".codex", root / "work"
        self.state = root / "state" / "cc-agents"
        for folder in (self.codex_home, self.work):
            folder.mkdir(parents=True, exist_ok=True)
        (root / "run").mkdir(mode=0o700, exist_ok=True)
        self.env: dict[str, str] = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.home),
            "CODEX_HOME": str(self.codex_home),
            "XDG_CONFIG_HOME": str(root / "config"),
            "XDG_STATE_HOME": str(root / "state"),
            "XDG_RUNTIME_DIR": str(root / "run"),
            "PYTHONPATH": str(ROOT),
        }
        self.codex = self.plays(None)

    # --- what Codex does --------------------------------------------------------------------------------------

    def plays(self, scenario: Any) -> Path:
        """From now on the codex is the fake with this scenario."""
        shim = write_shim(self.root / "bin", scenario=scenario, log=self.log)
        self.env["CC_AGENTS_CODEX_BIN"] = str(shim)
        return shim

    def codex_is(self, script: str) -> Path:
        """From now on the codex is this shell script."""
        path = self.root / "codex.sh"
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)
        self.env["CC_AGENTS_CODEX_BIN"] = str(path)
        return path

    # --- the command ------------------------------------------------------------------------------------------

    def start(self, *words: str, **options: Any) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        how = {"stdin": subprocess.DEVNULL, "stdout": pipe, "stderr": pipe, "cwd": self.work, **options}
        env = {**self.env, **how.pop("env", {})}
        return subprocess.Popen([sys.executable, "-m", "sidecar", *words], env=env, start_new_session=True, **how)

    def run(self, *words: str, stdin: bytes | None = None, **options: Any) -> Ran:
        began = time.monotonic()
        if stdin is not None:
            options["stdin"] = subprocess.PIPE
        with ended(self.start(*words, **options)) as process:
            out, err = process.communicate(stdin, timeout=PATIENCE_S)
        return Ran(process.returncode, out, err, time.monotonic() - began)

    def turn(self, scenario: Any, *words: str, prompt: str = "do it", **options: Any) -> Ran:
        """`run --json` of a prompt against a scenario."""
        self.plays(scenario)
        return self.run("run", "--json", *words, "--", prompt, **options)

    @contextlib.contextmanager
    def running(self, scenario: Any, *words: str, file: str | None = None) -> Iterator[subprocess.Popen[bytes]]:
        """A turn under way: `run --json`; it is killed with the block if it still runs."""
        self.plays(scenario)
        prompt = ("--prompt-file", file) if file else ("--", "do it")
        with ended(self.start("run", "--json", *words, *prompt)) as process:
            yield process

    def finish(self, process: subprocess.Popen[bytes]) -> Ran:
        out, err = process.communicate(timeout=PATIENCE_S)
        return Ran(process.returncode, out, err, 0.0)

    # --- what was seen ----------------------------------------------------------------------------------------

    def logged(self, key: str) -> list[Any]:
        """Of each line of the fake's log that has this key; a line that is being written is not there yet."""
        if not self.log.exists():
            return []
        lines = self.log.read_bytes().split(b"\n")[:-1]
        return [entry[key] for entry in map(json.loads, lines) if key in entry]

    def asked(self, method: str) -> list[dict[str, Any]]:
        """The params of each of our requests of this method."""
        return [m.get("params") or {} for m in self.logged("recv") if m.get("method") == method]

    def methods(self) -> list[str]:
        return [m["method"] for m in self.logged("recv") if "method" in m]

    def jobs(self) -> list[Path]:
        folder = self.state / "jobs"
        return sorted(p for p in folder.iterdir() if not p.name.startswith(".")) if folder.is_dir() else []

    def nothing_was_made(self) -> bool:
        return not self.log.exists() and not self.jobs()


@contextlib.contextmanager
def ended(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(PATIENCE_S)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()


# --- processes --------------------------------------------------------------------------------------------------


def living(mark: str) -> list[str]:
    """The processes, zombies left out, that have this text in their environment: "pid command line" of each."""
    found = []
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if name.isdigit() and int(name) != os.getpid() and mark.encode() in _read(f"/proc/{name}/environ"):
            words = _read(f"/proc/{name}/cmdline").replace(b"\0", b" ").decode(errors="replace")
            found.append(f"{name} {words.strip()}")
    return found


def alive(pid: int) -> bool:
    """A zombie is not."""
    stat = _read(f"/proc/{pid}/stat")
    return bool(stat) and stat.rpartition(b")")[2].split()[0] not in (b"Z", b"X")


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:  # gone meanwhile, or another user's
        return b""


def pids_in(path: Path) -> list[int]:
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def usage_of(outcome: Mapping[str, Any]) -> int | None:
    usage = outcome["usage"]
    return usage["total_tokens"] if usage else None


def words_of(text: str) -> set[str]:
    return set(re.findall(r"[\w.-]+", text))


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User(tmp_path)
