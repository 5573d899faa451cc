"""What the bare driver is told to send: a conversation of ours, recorded, or the shortest there is.

Owns: recording one turn of cc-agents (tests_live/tee.py), and the two plans made of it: with the permission profile
that was sent, and with `sandbox` in its place. Whatever cc-agents sends, the floor sends the same. Runs no driver.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from tests_live.tee import read_logs, write_tee

BARE, BARE_MANY = (Path(__file__).with_name(name) for name in ("bare.py", "bare_many.py"))
Plan = dict[str, Any]
RECORD_S = 60.0


def bare_argv(plan: Path) -> list[str]:
    return [os.path.join(sys.prefix, "bin", "python"), "-I", "-S", str(BARE), str(plan)]


def many_argv(plan: Path) -> list[str]:
    return [os.path.join(sys.prefix, "bin", "python"), "-I", "-S", str(BARE_MANY), str(plan)]


def write_plan(path: Path, plan: Plan) -> Path:
    path.write_text(json.dumps(plan), encoding="utf-8")
    return path


def record(codex: str, folder: Path, ours: Sequence[str], env: Mapping[str, str], cwd: Path) -> Plan:
    """One turn of cc-agents, as a plan: the codex with its arguments, and our messages."""
    folder.mkdir()
    tee, argv_file = write_tee(folder / "tee", folder / "logs", [codex]), folder / "argv"
    named = folder / "codex"
    named.write_text(f"#!/bin/sh\nprintf '%s\\0' \"$@\" >'{argv_file}'\nexec '{tee}' \"$@\"\n", encoding="utf-8")
    named.chmod(0o700)
    env = {**env, "CC_AGENTS_CODEX_BIN": str(named)}
    subprocess.run(ours, env=env, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=RECORD_S)
    ((sent, _),) = read_logs(folder / "logs")
    return plan_of([codex, *argv_file.read_text().split("\0")[:-1]], [json.loads(line) for line in sent])


def plan_of(argv: Sequence[str], sent: Sequence[Mapping[str, Any]]) -> Plan:
    """The opening are all messages up to thread/start: they are sent at once, whatever order we had."""
    methods = [message.get("method") for message in sent]
    last = methods.index("thread/start")
    turn = sent[methods.index("turn/start")]
    return {"argv": list(argv), "opening": list(sent[: last + 1]), "turn": turn}


def with_sandbox(plan: Plan, sandbox: str = "read-only") -> Plan:
    """The same without the permission profile, as most clients of the app-server do it."""
    plain = deepcopy(plan)
    params = plain["opening"][-1]["params"]
    for key in ("default_permissions", "permissions"):
        params.get("config", {}).pop(key, None)
    params["sandbox"] = sandbox
    return plain


def with_prompt(plan: Plan, prompt: str) -> Plan:
    other = deepcopy(plan)
    other["turn"]["params"]["input"] = [{"type": "text", "text": prompt}]
    return other


def plain_plan(argv: Sequence[str], cwd: str, prompt: str) -> Plan:
    """The shortest conversation that is a turn."""
    hello = {"clientInfo": {"name": "bare", "title": "bare", "version": "0"}}
    start = {"cwd": cwd, "approvalPolicy": "never", "sandbox": "read-only"}
    opening = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "initialized"},
        {"id": 2, "method": "thread/start", "params": start},
    ]
    content = [{"type": "text", "text": prompt}]
    turn = {"id": 3, "method": "turn/start", "params": {"threadId": "", "input": content}}
    return {"argv": list(argv), "opening": opening, "turn": turn}
