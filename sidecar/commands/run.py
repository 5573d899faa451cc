"""`cc-agents run`: one turn, from the command line to the exact answer; or in the background, to the job's id."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from typing import Any

from adapters.contract import Refused
from sidecar import outcome, paths
from sidecar.config import Settings
from sidecar.errors import EXIT_FAILED, EXIT_INTERRUPTED, UserError
from sidecar.hosts import foreground
from sidecar.intake.turn_options import add_output_arguments, add_prompt_arguments, add_turn_arguments, request_from
from sidecar.records import dump
from sidecar.request import TurnRequest
from sidecar.views.render import EventsView, JsonView, View


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_prompt_arguments(parser)
    add_resume_arguments(parser)
    add_run_arguments(parser)


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """What every verb that runs a turn has: how it shall be, where it goes on, what is shown."""
    add_turn_arguments(parser)
    parser.add_argument("--background", action="store_true", help="print the job's id and return; the turn goes on")
    add_output_arguments(parser)


def add_resume_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--resume", metavar="JOB|THREAD", dest="thread", help="go on with this thread of Codex")
    group.add_argument("--last", action="store_true", help="go on with the last thread of this directory")


def run(args: argparse.Namespace) -> int:
    return told(args, lambda: _request(args))


def _request(args: argparse.Namespace) -> tuple[TurnRequest, Settings]:
    resume(args)
    return request_from(args, os.environ)


def resume(args: argparse.Namespace) -> None:
    """A thread's id in the place of the job, or of --last."""
    if args.thread is not None or args.last:
        from sidecar.intake import following
        from sidecar.store import Store

        store = Store(paths.state_dir(os.environ))
        if args.last:
            args.thread = following.last(store, args.cwd, os.environ).thread
        else:
            args.thread, _ = following.find(store, args.thread)


def told(args: argparse.Namespace, make: Callable[[], tuple[TurnRequest, Settings]]) -> int:
    """Runs the request that `make` answers, as the output options say; a refusal is an outcome too."""
    view = view_for(args)
    try:
        try:
            request, settings = make()
        except KeyboardInterrupt:  # it may be waiting for a prompt on stdin
            view.outcome(outcome.stopped_early())
            return EXIT_INTERRUPTED
        if args.background:
            return in_background(request, settings, args.json)
        return foreground.run(request, settings, os.environ, view)
    except Refused as refused:
        ended = outcome.refused(*refused.problems)
    except UserError as error:
        ended = outcome.refused(*outcome.problems_of(error))
    view.outcome(ended)
    return ended.exit_code


def in_background(request: TurnRequest, settings: Settings, as_json: bool) -> int:
    """Prints the job's id as soon as the turn is known to run or to wait for a slot. Raises Refused."""
    from sidecar.hosts import background

    word: dict[str, Any] = {}
    try:
        for said in background.start(request, settings, os.environ):
            word = {**word, **said}
    except KeyboardInterrupt:
        sys.stderr.write(f"cc-agents: job {word.get('job', 'unknown')} goes on in the background\n")
        return EXIT_INTERRUPTED
    ended = word.get("outcome")
    if as_json:
        shown = {"job": word.get("job"), "state": word.get("state", "died"), "thread": word.get("thread")}
        sys.stdout.buffer.write(dump(ended or shown))
    elif "job" in word:
        sys.stdout.write(f"{word['job']}\n")
    if ended is not None:
        for line in (ended["error"] or {"message": ""})["message"].splitlines():
            sys.stderr.write(f"cc-agents: {ended['status']}: {line}\n")
        return int(ended["exit_code"])
    if "state" not in word:
        why = word.get("fault") or f"see {word['dir']}" if "dir" in word else word.get("fault", "it told nothing")
        sys.stderr.write(f"cc-agents: the sidecar died at its start: {why}\n")
        return EXIT_FAILED
    if "why" in word:
        sys.stderr.write(f"cc-agents: {word['why']}\n")
    return 0


def view_for(args: argparse.Namespace) -> View:
    if args.events:
        return EventsView(os.environ, quiet=args.quiet, attended=args.attended)
    return (JsonView if args.json else View)(os.environ, quiet=args.quiet)
