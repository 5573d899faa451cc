"""`cc-agents steer JOB TEXT`: into the running turn, once it has started; or the text comes back."""

from __future__ import annotations

import argparse
import os
import sys

from sidecar import paths, reach
from sidecar.config import parse_duration
from sidecar.errors import EXIT_REFUSED, UserError
from sidecar.intake.turn_options import read_prompt
from sidecar.store import Store
from sidecar.views.screen import write_all


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", help="a job, the beginning of its id, or a thread")
    parser.add_argument("text", nargs="?", help="what to say; - or nothing reads stdin")
    parser.add_argument("--file", metavar="F", dest="text_file", help="read the text from a file")
    parser.add_argument("--wait", metavar="10m", default="10m", help="how long the turn may take to start (10m)")


def run(args: argparse.Namespace) -> int:
    """0 when Codex has taken the text. Else the text is on stdout again, as it was, and the exit code is 2."""
    text = read_prompt(args.text, args.text_file)
    try:
        within_s = parse_duration(args.wait)
    except ValueError as error:
        raise UserError("bad_option", f"--wait {error}") from None
    store = Store(paths.state_dir(os.environ))
    view = store.find(args.job)
    try:
        answer = reach.ask(store, paths.runtime_dir(os.environ), view, {"do": "steer", "text": text}, within_s)
        why = None if answer.get("ok") else str(answer.get("why"))
    except UserError as error:
        why = error.message
    if why is None:
        sys.stderr.write(f"cc-agents: job {view.job} was steered\n")
        return 0
    sys.stderr.write(f"cc-agents: not steered: {why}\n")
    write_all(1, text.encode())
    return EXIT_REFUSED
