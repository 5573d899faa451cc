"""Makes an executable `codex` that is the fake: for tests and for `cc-agents demo`.

Owns: the script and the scenario file beside it. Does not own: playing it. Serves spec:cc-agents.fakes.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import fake_app_server

DEMO = Path(__file__).parent / "scenarios" / "demo.json"

# Isolated and without site: quick to start, and no variable of the environment under test reaches Python.
PROGRAM = """\
import sys
sys.path.insert(0, {parent!r})
from fake_app_server.__main__ import main
main(sys.argv[1:], {scenario!r}, {log!r})
"""


def write_shim(
    directory: str | os.PathLike[str],
    *,
    scenario: dict[str, Any] | list[Any] | None = None,
    name: str = "codex",
    log: str | os.PathLike[str] | None = None,
    python: str = sys.executable,
) -> Path:
    """Writes `directory`/`name` (mode 0755) and, beside it, its scenario and program; answers the script's path.

    Without `scenario` the environment decides when it runs, or else the built-in default is played.
    """
    folder = Path(directory).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    script, program, played = folder / name, folder / f"{name}.fake.py", folder / f"{name}.scenario.json"
    if scenario is not None:
        played.write_text(json.dumps(scenario), encoding="utf-8")
    parent = str(Path(fake_app_server.__file__).resolve().parent.parent)
    source = PROGRAM.format(
        parent=parent,
        scenario=str(played) if scenario is not None else None,
        log=os.fspath(log) if log is not None else None,
    )
    program.write_text(source, encoding="utf-8")
    command = " ".join(shlex.quote(word) for word in (python, "-I", "-S", str(program)))
    script.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    return script


def demo_scenario() -> dict[str, Any]:
    """The scripted turn of `cc-agents demo`."""
    found: dict[str, Any] = json.loads(DEMO.read_text(encoding="utf-8"))
    return found
