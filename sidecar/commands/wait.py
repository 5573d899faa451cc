"""`cc-agents wait JOB...`: until all of them have ended. Light, and no process of its own: it looks at the records."""

from __future__ import annotations

import argparse
import os
import sys
import time

from sidecar import paths
from sidecar.config import parse_duration
from sidecar.errors import EXIT_FAILED, EXIT_STILL_RUNNING, UserError
from sidecar.leftovers import recover
from sidecar.records import dump
from sidecar.store import JobView, Store
from sidecar.views.tables import state_of

POLL_S = 0.1  # a look at one record costs 50 us; a person notices no tenth of a second


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("jobs", nargs="+", metavar="JOB")
    parser.add_argument("--timeout", metavar="30m", help="stop waiting (the jobs go on) after this time, exit code 10")
    parser.add_argument("--json", action="store_true", help="print the outcome of each as it ends, one a line")
    parser.add_argument("--quiet", action="store_true", help="no line on stderr for each job")


def run(args: argparse.Namespace) -> int:
    """The exit code of the turn; of several, the first in the order of asking that is not 0."""
    store = Store(paths.state_dir(os.environ))
    names = list(dict.fromkeys(store.find(text).job for text in args.jobs))
    end = time.monotonic() + _seconds(args.timeout)
    codes: dict[str, int] = {}
    while len(codes) < len(names):
        for name in names:
            if name not in codes and (view := store.read(name)).state not in ("queued", "running"):
                codes[name] = _tell(view, as_json=args.json, quiet=args.quiet)
        if len(codes) < len(names):
            if time.monotonic() > end:
                return EXIT_STILL_RUNNING
            time.sleep(POLL_S)
    return next((codes[name] for name in names if codes[name]), 0)


def _tell(view: JobView, *, as_json: bool, quiet: bool) -> int:
    outcome = recover.outcome_of(view)
    if as_json:
        told = outcome or {"job": view.job, "status": view.state, "thread": view.thread, "reason": view.reason}
        sys.stdout.buffer.write(dump(told))
        sys.stdout.buffer.flush()
    if not quiet:
        why = f": {view.reason}" if view.reason else ""
        sys.stderr.write(f"cc-agents: job {view.job} {state_of(view)}{why}\n")
    return int(outcome["exit_code"]) if outcome else EXIT_FAILED


def _seconds(text: str | None) -> float:
    if text is None:
        return float("inf")
    try:
        return parse_duration(text)
    except ValueError as error:
        raise UserError("bad_option", f"--timeout {error}") from None
