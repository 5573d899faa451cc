"""A command of the real codex that leaves processes behind in every shape, and what is known of them afterwards.

Owns: the shell text, the pid files, starting our command for it, the guard's record. Does not own any judgement.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from fake_app_server import spawn
from tests_live.homes import Home

CHECKOUT = Path(__file__).resolve().parent.parent
SHAPES = ("group", "setsid", "double_fork", "nohup", "ignore_term", "clean_env", "stopped")
FACT_S = 60.0  # for a codex on a busy machine to come to its command
POLL_S = 0.005


def wait_for(fact: Callable[[], Any], within_s: float = FACT_S) -> Any:
    """What the fact is once it is true."""
    end = time.monotonic() + within_s
    while not (found := fact()):
        assert time.monotonic() < end, "it never became true"
        time.sleep(POLL_S)
    return found


def leave(home: Home, shapes: Sequence[str] = SHAPES, then: str = "") -> str:
    """The command: each shape stays for ten minutes, and the command goes on to `then` when all have been born."""
    python = shlex.join([sys.executable, "-I", "-S", str(spawn.__file__)])
    lines = [f"{python} {s} 600 {pid_file(home, s)} 1 '' </dev/null >/dev/null 2>&1 &" for s in shapes]
    born = " && ".join(f"[ -s {pid_file(home, s)} ]" for s in shapes)
    return "\n".join([*lines, f"until {born}; do sleep 0.02; done", then])


def until_told(home: Home) -> str:
    """The command goes on when the test says so: see `tell`."""
    return f"while [ ! -e {home.root}/go ]; do sleep 0.02; done"


def tell(home: Home) -> None:
    (home.root / "go").touch()


def pid_file(home: Home, shape: str) -> Path:
    return home.root / f"{shape}.pid"


def pids(home: Home, shapes: Sequence[str] = SHAPES) -> dict[str, int]:
    """The process of each shape that has been born."""
    found = {}
    for shape in shapes:
        with suppress(FileNotFoundError, ValueError):
            found[shape] = int(pid_file(home, shape).read_text())
    return found


def survivors(home: Home) -> list[str]:
    """The shapes of which the process lives; a zombie doesn't."""
    return [shape for shape, pid in pids(home).items() if lives(pid)]


def lives(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(b")")[2].split()[0] not in (b"Z", b"X")


# --- our command ----------------------------------------------------------------------------------------------


def environ(home: Home, codex: str) -> dict[str, str]:
    return home.environ(CC_AGENTS_CODEX_BIN=codex, PYTHONPATH=str(CHECKOUT))


def argv(*words: str) -> list[str]:
    return [sys.executable, "-m", "sidecar", *words]


@contextmanager
def running(
    home: Home, codex: str, *words: str, before: Sequence[str] = (), **options: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """`run --json` under way, after the words of another command (`unshare`, say); killed with the block."""
    how = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    command = [*before, *argv("run", "--json", *words, "go")]
    with subprocess.Popen(command, env=environ(home, codex), cwd=home.work, start_new_session=True, **how) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def outcome(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    out, err = process.communicate(timeout=FACT_S)
    assert out, err.decode()
    found: dict[str, Any] = json.loads(out)
    assert found["exit_code"] == process.returncode, found
    return found


def jobs(home: Home) -> list[Path]:
    folder = home.state / "cc-agents" / "jobs"
    return sorted(p for p in folder.iterdir() if not p.name.startswith(".")) if folder.is_dir() else []


def record(home: Home) -> dict[str, Any] | None:
    """The guard's, of the newest job."""
    for job in jobs(home)[-1:]:
        with suppress(FileNotFoundError):
            found: dict[str, Any] = json.loads((job / "processes.json").read_bytes())
            return found
    return None


def journal(home: Home) -> bytes:
    path = jobs(home)[-1] / "events.ndjson" if jobs(home) else None
    return path.read_bytes() if path is not None and path.exists() else b""


def kill(*numbers: int, signum: int = 9) -> None:
    for pid in numbers:
        with suppress(ProcessLookupError):
            os.kill(pid, signum)
