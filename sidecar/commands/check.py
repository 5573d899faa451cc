"""`cc-agents check`: resolves and refuses as `run` does, and starts no turn."""

from __future__ import annotations

import argparse
import os
import sys

from adapters.contract import Effective, Preview, Refused
from sidecar import outcome
from sidecar.begin import check
from sidecar.commands.run import add_resume_arguments, resume
from sidecar.errors import UserError
from sidecar.intake.turn_options import add_prompt_arguments, add_turn_arguments, request_from
from sidecar.records import dump
from sidecar.views import check_report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_prompt_arguments(parser)
    add_turn_arguments(parser)
    add_resume_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print one object: ok, problems, warnings, effective")


def run(args: argparse.Namespace) -> int:
    from sidecar import inquiry  # with an event loop in it: not for --help

    try:
        resume(args)
        request, _ = request_from(args, os.environ)
        adapter, resolved = check(request, os.environ)
        preview = inquiry.ask(adapter, resolved, request.limits, os.environ)
    except Refused as refused:
        preview = check_report.refused(refused.problems)
    except UserError as error:
        preview = check_report.refused(outcome.problems_of(error))
    if args.json:
        sys.stdout.buffer.write(dump(check_report.as_json(preview)))
    else:
        _print(preview)
    return _exit_code(preview)


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
        ("added", ", ".join(effective.added)),
        ("codex", f"{effective.codex.get('version') or 'version unknown'} {effective.codex.get('path', '')}"),
    ]
