"""`cc-agents batch FILE.jsonl`: many requests through the slots, an outcome a line on stdout in the order they end."""

from __future__ import annotations

import argparse
import os


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE.jsonl", help="a request a line (sidecar/schemas/request.json)")
    parser.add_argument("--fresh", action="store_true", help="run all again, also what an earlier run has finished")
    parser.add_argument("--retry-failed", action="store_true", help="run again what failed; what completed stays")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")


def run(args: argparse.Namespace) -> int:
    """0 when all completed, else 1."""
    import anyio

    from sidecar.hosts.batch import Batch
    from sidecar.hosts.batch_progress import Progress

    progress = Progress(os.environ, quiet=args.quiet)
    return anyio.run(Batch(args.file, os.environ, progress, again=args.fresh, failed=args.retry_failed).run)
