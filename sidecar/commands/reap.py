"""`cc-agents reap`: ends what dead turns have left, by record and by marker, never by name."""

from __future__ import annotations

import argparse
import os
import sys

from sidecar import paths
from sidecar.config import load_settings
from sidecar.errors import EXIT_FAILED
from sidecar.leftovers import tidy
from sidecar.records import dump
from sidecar.store import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print a list of objects: turn, ended, problem")


def run(args: argparse.Namespace) -> int:
    store = Store(paths.state_dir(os.environ))
    reaped = list(tidy.reap(store, paths.runtime_dir(os.environ)))
    pruned = tidy.prune(store, load_settings(os.environ, {}))
    if args.json:
        sys.stdout.buffer.write(dump([r._asdict() for r in reaped], indent=2))
    else:
        for turn, ended, problem in reaped:
            sys.stdout.write(f"{turn}: {problem or f'{ended} processes ended'}\n")
        if not any(r.ended or r.problem for r in reaped):
            sys.stdout.write("nothing was left of any turn\n")
        if pruned:
            sys.stdout.write(f"{len(pruned)} old jobs removed\n")
    return EXIT_FAILED if any(r.problem for r in reaped) else 0
