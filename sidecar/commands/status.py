"""`cc-agents status`: the jobs as a table, or all about one of them. Light: rule.lightStart."""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import Any

from sidecar import paths
from sidecar.leftovers import recover
from sidecar.records import dump
from sidecar.store import JobView, Store
from sidecar.views.briefs import brief
from sidecar.views.tables import age, columns, folder, plain, span, state_of

SHOWN = 20  # of the newest; those that are not over are always shown
TASK_CHARS = 50  # of a prompt: enough to know a job again


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", nargs="?", help="a job, the beginning of its id, or a thread")
    parser.add_argument("--here", action="store_true", help="only jobs of this directory")
    parser.add_argument("--all", action="store_true", help=f"all jobs, not the newest {SHOWN}")
    parser.add_argument("--json", action="store_true", help="objects instead of a table")


def run(args: argparse.Namespace) -> int:
    store = Store(paths.state_dir(os.environ))
    if args.job is not None:
        return _one(store.find(args.job), as_json=args.json)
    views = store.list_jobs(cwd=os.path.realpath(os.getcwd()) if args.here else None)
    if not args.all:
        views = [v for n, v in enumerate(views) if n < SHOWN or v.state in ("queued", "running")]
    if args.json:
        sys.stdout.buffer.write(dump([brief(v) for v in views], indent=2))
        return 0
    sys.stdout.write(table(views) if views else "no jobs\n")
    for view in views:
        if view.state == "torn":
            sys.stderr.write(f"cc-agents: job {view.job} is damaged: {view.reason}\n")
    return 0


def table(views: list[JobView]) -> str:
    rows = [("JOB", "STATE", "AGE", "MODE", "DIRECTORY", "TASK")]
    for v in views:
        mode = str(v.record.get("mode") or "-")
        rows.append((v.job, state_of(v), age(v.created_at), mode, folder(v.cwd, os.environ), task(v)))
    return columns(rows, right=(2,))


def task(view: JobView) -> str:
    """What a job is about, in a few words: its label, or how its prompt begins."""
    label = view.record.get("label")
    if label:
        return plain(str(label))
    request = view.request() or {}
    if request.get("review"):
        return f"review against {plain(request['review'].get('base') or 'the last commit')}"
    words = plain(" ".join(str(request.get("prompt") or "")[: 2 * TASK_CHARS].split()))
    return words if len(words) <= TASK_CHARS else words[: TASK_CHARS - 1] + "…"


def _one(view: JobView, *, as_json: bool) -> int:
    outcome = recover.outcome_of(view)
    if as_json:
        sys.stdout.buffer.write(dump({**brief(view), "outcome": outcome}, indent=2))
        return 0
    rows = [(name, plain(value)) for name, value in facts(view, outcome) if value]
    sys.stdout.write(columns(rows))
    return 0


def facts(view: JobView, outcome: dict[str, Any] | None) -> list[tuple[str, str]]:
    record = view.record
    told: dict[str, Any] = outcome or {}
    error: dict[str, Any] = told.get("error") or {}
    model = ((told.get("effective") or {}).get("model") or {}).get("value")
    started = record.get("started_at")
    took = (told.get("timing") or {}).get("duration_s")
    rows = [
        ("job", view.job),
        ("state", f"{state_of(view)}: {view.reason}" if view.reason else state_of(view)),
        ("why", f"{error.get('kind')}/{error.get('reason')}: {error.get('message')}" if error else ""),
        ("task", task(view)),
        ("mode", str(record.get("mode") or "")),
        ("model", str(model or "")),
        ("directory", folder(view.cwd, os.environ)),
        ("thread", view.thread or "none yet"),
        ("asked for", f"{age(view.created_at)} ago"),
        ("running for", span(time.time() - started) if isinstance(started, float) and view.state == "running" else ""),
        ("took", f"{took:.1f} s" if isinstance(took, float) and not error.get("reason") == recover.DIED else ""),
        ("tokens", tokens(told.get("usage") or recover.usage_of(view))),
        ("warnings", "; ".join(told.get("warnings") or [])),
        ("files", view.dir),
    ]
    if view.state == "died":
        rows.append(("next", f"cc-agents result {view.job} takes the answer from the thread, if there is one"))
    return rows


def tokens(usage: Any) -> str:
    if not usage:
        return "not known"
    cached = f" ({usage['cached_input_tokens']:,} cached)" if usage.get("cached_input_tokens") else ""
    return f"{usage.get('input_tokens', 0):,} in{cached}, {usage.get('output_tokens', 0):,} out"
