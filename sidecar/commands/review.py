"""`cc-agents review`: Codex's own reviewer over the uncommitted changes, or over those against a base."""

from __future__ import annotations

import argparse
import os

from adapters.contract import Review
from sidecar.commands.run import add_run_arguments, told
from sidecar.config import Settings
from sidecar.intake.turn_options import request_from
from sidecar.request import TurnRequest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--base", metavar="REF", help="review what is different from this branch or commit")
    add_run_arguments(parser)


def run(args: argparse.Namespace) -> int:
    return told(args, lambda: _request(args))


def _request(args: argparse.Namespace) -> tuple[TurnRequest, Settings]:
    return request_from(args, os.environ, "", review=Review(base=args.base))
