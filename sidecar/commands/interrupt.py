"""`cc-agents interrupt JOB`: ends a running turn, waits until it is over, and says whether Codex confirmed it."""

from __future__ import annotations

import argparse
import os
import sys

from sidecar import paths, reach
from sidecar.control_socket import INTERRUPT_ANSWER_S
from sidecar.errors import EXIT_REFUSED
from sidecar.records import dump
from sidecar.store import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", help="a job, the beginning of its id, or a thread")
    parser.add_argument("--json", action="store_true", help="print how it ended as an object")


def run(args: argparse.Namespace) -> int:
    """0 when the turn is over now; 2 when there was none running. The process of the turn itself exits with 130."""
    store = Store(paths.state_dir(os.environ))
    view = store.find(args.job)
    answer = reach.ask(store, paths.runtime_dir(os.environ), view, {"do": "interrupt"}, INTERRUPT_ANSWER_S)
    if args.json:
        sys.stdout.buffer.write(dump({"job": view.job, **answer}))
    if not answer.get("ok"):
        sys.stderr.write(f"cc-agents: not interrupted: {answer.get('why')}\n")
        return EXIT_REFUSED
    sys.stderr.write(f"cc-agents: job {view.job} {said(answer)}\n")
    return 0


def said(answer: dict[str, object]) -> str:
    if answer.get("status") != "interrupted":
        return f"had ended before the word reached it: {answer.get('status')}"
    if answer.get("confirmed"):
        return "interrupted; confirmed by Codex"
    return f"interrupted; not confirmed by Codex, {answer.get('processes_ended')} processes were ended"
