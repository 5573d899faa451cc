"""`cc-agents events JOB`: the journal as it is, one JSON object a line; --follow until the job is over. Light."""

from __future__ import annotations

import argparse
import os
import time

from sidecar import paths
from sidecar.store import Store
from sidecar.views.screen import write_all

POLL_S = 0.1  # the journal is flushed at every event but deltas


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", help="a job, the beginning of its id, or a thread")
    parser.add_argument("--follow", action="store_true", help="go on until the job has ended")


def run(args: argparse.Namespace) -> int:
    store = Store(paths.state_dir(os.environ))
    name = store.find(args.job).job
    rest, offset = b"", 0
    while True:
        over = store.read(name).state not in ("queued", "running")  # looked at first: nothing is written after
        data = _read(store.read(name).path("events.ndjson"), offset)
        offset += len(data)
        *lines, rest = (rest + data).split(b"\n")
        if lines:
            write_all(1, b"".join(line + b"\n" for line in lines))
        if over or not args.follow:
            return 0
        if not data:
            time.sleep(POLL_S)


def _read(path: str, offset: int) -> bytes:
    try:
        with open(path, "rb") as file:
            file.seek(offset)
            return file.read()
    except FileNotFoundError:
        return b""
