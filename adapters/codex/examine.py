"""What `doctor` asks of the codex adapter beyond its check and preview: which binary, and whether the sandbox works.

Owns those findings and the trial command. Starts nothing itself. Serves rule.doctor.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from adapters.codex import binary, folders
from adapters.codex.plan import CodexPlan
from adapters.contract import AgentRequest, Finding, Refused, Resolved, Trial

PROFILE = "cc-agents-doctor"
HELD, MADE, READ = "held", "made", "read"  # what the trial's command says
HELP = "https://developers.openai.com/codex/concepts/sandboxing"


def examine(request: AgentRequest, environ: Mapping[str, str], codex_home: str) -> tuple[Finding, ...]:
    return (*_binary(request, environ), _home(codex_home), *_links(request.cwd))


def _binary(request: AgentRequest, environ: Mapping[str, str]) -> tuple[Finding, ...]:
    try:
        found = binary.find(request.harness_bin, environ)
    except Refused as refused:
        return tuple(Finding(level="failure", name="codex", text=p.message) for p in refused.problems)
    behind = f", behind the npm script {found.shim}" if found.shim else ""
    return (Finding(level="ok", name="codex", text=f"{found.path}{behind}"),)


def _home(codex_home: str) -> Finding:
    if os.path.isdir(codex_home):
        real = os.path.realpath(codex_home)
        return Finding(level="ok", name="codex home", text=codex_home + (f" -> {real}" if real != codex_home else ""))
    return Finding(level="failure", name="codex home", text=f"{codex_home} is not there", todo="run `codex login`")


def _links(cwd: str) -> tuple[Finding, ...]:
    """What makes Codex's sandbox refuse every command of a write turn here."""
    links = [path for name in folders.KEPT_BY_CODEX if os.path.islink(path := os.path.join(cwd, name))]
    return tuple(
        Finding(
            level="warning",
            name="project",
            text=f"{path} is a symbolic link: Codex's sandbox can't keep it read-only, and write mode is refused here",
            todo="replace it by what it leads to",
        )
        for path in links
    )


def trial(resolved: Resolved, forbidden: str) -> Trial:
    """In a read-only profile as a turn's, a shell tries to make a file and to read what is denied."""
    plan: CodexPlan = resolved.plan
    denied = plan.access.folders.denied
    files = {":root": "read", **dict.fromkeys(denied, "deny")}
    table = ",".join(f"{json.dumps(path)}={json.dumps(kind)}" for path, kind in files.items())
    # each in a shell of its own: a redirection that fails ends the one it is in
    script = (
        f'(: > "$1") 2>/dev/null && echo {MADE}; shift; cat "$@" 2>/dev/null | grep -q . && echo {READ}; echo {HELD}'
    )
    argv = (
        plan.binary.path,
        "sandbox",
        "-c",
        f"permissions={{{PROFILE}={{filesystem={{{table}}}}}}}",
        *("-P", PROFILE, "-C", resolved.cwd, "--", "/bin/sh", "-c", script, "sh", forbidden),
        *(path for path in denied if os.path.isfile(path)),
    )
    return Trial(argv=argv, env=resolved.env, cwd=resolved.cwd, judge=judge)


def judge(code: int | None, said: str) -> Finding:
    words = set(said.split())
    if code is None:
        return _failed("a harmless command in Codex's sandbox did not end")
    if MADE in words or READ in words:
        return _failed("a command in Codex's read-only sandbox could write, or read the sign-in")
    if HELD not in words:
        last = said.strip().splitlines()[-1:] or [f"exit code {code}"]
        return _failed(f"Codex's sandbox does not work on this machine: {last[0]}")
    return Finding(level="ok", name="sandbox", text="a command ran in it, and could neither write nor read the sign-in")


def _failed(text: str) -> Finding:
    return Finding(level="failure", name="sandbox", text=text, todo=f"see {HELP}; until then only --mode yolo works")
