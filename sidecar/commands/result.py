"""`cc-agents result JOB`: the final text, exactly, and not one byte more. Light, unless a sidecar died."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from sidecar import paths
from sidecar.errors import EXIT_STILL_RUNNING, UserError
from sidecar.leftovers import recover
from sidecar.records import dump
from sidecar.store import JobView, Store
from sidecar.views.screen import write_all


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", help="a job, the beginning of its id, or a thread")
    parser.add_argument("--json", action="store_true", help="print the outcome object")
    parser.add_argument("--partial", action="store_true", help="of a turn without an answer, print what it said so far")


def run(args: argparse.Namespace) -> int:
    view = Store(paths.state_dir(os.environ)).find(args.job)
    if view.state == "torn":
        raise UserError("job_torn", f"job {view.job} is damaged: {view.reason}")
    if not view.over:
        sys.stderr.write(f"cc-agents: job {view.job} is {view.state}: it has no result yet\n")
        return EXIT_STILL_RUNNING
    outcome = recover.outcome_of(view)
    if outcome is None:
        outcome = recover.recover(view, os.environ)
        for warning in outcome["warnings"]:
            sys.stderr.write(f"cc-agents: {warning}\n")
    sys.stdout.flush()
    if args.json:
        write_all(1, dump(outcome))
    else:
        _text(view, outcome, partial=args.partial)
    return int(outcome["exit_code"])


def _text(view: JobView, outcome: dict[str, Any], *, partial: bool) -> None:
    if outcome["status"] == "completed":
        text = view.final_text()
        write_all(1, (outcome["final_text"] if text is None else text).encode("utf-8", "replace"))
        return
    for line in (outcome.get("error") or {"message": ""})["message"].splitlines():
        sys.stderr.write(f"cc-agents: {outcome['status']}: {line}\n")
    if partial:
        write_all(1, outcome["partial_text"].encode("utf-8", "replace"))
    elif outcome["partial_text"]:
        sys.stderr.write("cc-agents: it had said something already: --partial prints it\n")
