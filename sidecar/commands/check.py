"""`cc-agents check`: resolves and refuses as `run` does, and starts no turn."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from adapters.contract import Effective, Preview, Refused
from sidecar import inquiry, outcome
from sidecar.begin import check
from sidecar.errors import UserError
from sidecar.outcome import Outcome
from sidecar.records import dump
from sidecar.turn_options import add_prompt_arguments, add_turn_arguments, request_from


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_prompt_arguments(parser)
    add_turn_arguments(parser)
    parser.add_argument("--resume", metavar="THREAD", dest="thread", help="as for run")
    parser.add_argument("--json", action="store_true", help="print one object: ok, problems, warnings, effective")


def run(args: argparse.Namespace) -> int:
    try:
        request, _ = request_from(args, os.environ)
        adapter, resolved = check(request, os.environ)
        preview = inquiry.ask(adapter, resolved, request.limits, os.environ)
    except Refused as refused:
        preview = Preview(effective=Effective(), problems=refused.problems)
    except UserError as error:
        preview = Preview(effective=Effective(), problems=tuple(outcome.problems_of(error)))
    if args.json:
        sys.stdout.buffer.write(dump(as_json(preview)))
    else:
        _print(preview)
    return _exit_code(preview)


def as_json(preview: Preview) -> dict[str, Any]:
    effective = Outcome(job=None, status="refused", effective=preview.effective).to_json()["effective"]
    return {
        "ok": not preview.problems,
        "problems": [{"reason": p.reason, "message": p.message} for p in preview.problems],
        "warnings": list(preview.warnings),
        "effective": effective,
    }


def _exit_code(preview: Preview) -> int:
    return outcome.refused(*preview.problems).exit_code if preview.problems else 0


def _print(preview: Preview) -> None:
    for problem in preview.problems:
        sys.stderr.write(f"cc-agents: {problem.message}\n")
    for warning in preview.warnings:
        sys.stderr.write(f"cc-agents: warning: {warning}\n")
    if not preview.problems:
        sys.stdout.write("".join(f"{name:<13} {value}\n" for name, value in rows(preview.effective)))


def rows(effective: Effective) -> list[tuple[str, str]]:
    """What is in force, as lines for a person."""
    model, effort = effective.model, effective.effort
    return [
        ("model", f"{model.value} ({model.source})" if model else "none"),
        ("effort", f"{effort.value} ({effort.source})" if effort else "the model's own"),
        ("mode", effective.mode),
        ("directory", effective.cwd),
        ("writable", ", ".join(effective.writable_roots) or ("everything" if effective.mode == "yolo" else "nothing")),
        ("network", "yes" if effective.network else "no"),
        ("switched off", ", ".join(effective.switched_off)),
        ("codex", f"{effective.codex.get('version') or 'version unknown'} {effective.codex.get('path', '')}"),
    ]
