"""`cc-agents slots`: who has the slots, and who waits. Light."""

from __future__ import annotations

import argparse
import os
import sys

from sidecar import paths, slots
from sidecar.config import load_settings
from sidecar.records import dump
from sidecar.store import Store
from sidecar.views.tables import age, columns, folder, plain


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="an object for each slot key")


def run(args: argparse.Namespace) -> int:
    runtime = paths.runtime_dir(os.environ)
    caps = load_settings(os.environ, {}).caps.value
    queued = [v for v in Store(paths.state_dir(os.environ)).list_jobs() if v.state == "queued"]
    found = []
    for key in slots.keys(runtime) or ["codex"]:
        holders = slots.holders(runtime, key)
        cap = caps.get(key) or slots.default_cap()
        found.append({"key": key, "cap": cap, "taken": [h._asdict() for h in holders]})
        if not args.json:
            sys.stdout.write(f"{key}: {len(holders)} of {cap} taken\n{table(holders)}")
    if args.json:
        sys.stdout.buffer.write(dump({"slots": found, "waiting": [v.job for v in queued]}, indent=2))
    elif queued:
        sys.stdout.write(f"waiting: {', '.join(v.job for v in reversed(queued))}\n")
    return 0


def table(holders: list[slots.Holder]) -> str:
    if not holders:
        return ""
    rows = [("SLOT", "JOB", "AGE", "DIRECTORY", "LABEL")]
    for h in holders:
        since = age(h.started_at) if h.started_at is not None else "-"
        rows.append((str(h.slot), h.job or "unknown", since, folder(h.cwd, os.environ), plain(h.label or "")))
    return columns(rows, right=(0, 2))
