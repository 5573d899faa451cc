"""`cc-agents run`: one turn, from the command line to the exact answer."""

from __future__ import annotations

import argparse
import os

from adapters.contract import Refused
from sidecar import foreground, outcome
from sidecar.errors import EXIT_REFUSED, UserError
from sidecar.render import EventsView, JsonView, View
from sidecar.turn_options import add_output_arguments, add_prompt_arguments, add_turn_arguments, request_from


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_prompt_arguments(parser)
    add_turn_arguments(parser)
    parser.add_argument("--resume", metavar="THREAD", dest="thread", help="go on with this thread of Codex")
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    view = view_for(args)
    try:
        request, settings = request_from(args, os.environ)
        return foreground.run(request, settings, os.environ, view)
    except Refused as refused:
        view.outcome(outcome.refused(*refused.problems))
        return EXIT_REFUSED
    except UserError as error:
        view.outcome(outcome.refused(*outcome.problems_of(error)))
        return EXIT_REFUSED


def view_for(args: argparse.Namespace) -> View:
    kind = JsonView if args.json else EventsView if args.events else View
    return kind(os.environ, quiet=args.quiet)
