"""Going on with a thread: which one is meant, and what the new turn takes over from the job before.

Owns: finding the thread of a job, of an id or of the last job here; the mode that is sent again, whole.
Does not own: the thread's lock (threads.py), what the harness says of it. Serves rule.followUp, rule.yoloStated.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from typing import Any

from adapters.contract import Problem, Refused, Sourced
from adapters.values import replace
from sidecar import paths
from sidecar.errors import UserError
from sidecar.intake import header
from sidecar.request import TurnRequest
from sidecar.store import JobView, Store

JOB_PREFIX = "j"  # a job's id begins so; a thread's id is hexadecimal


def find(store: Store, text: str) -> tuple[str, JobView | None]:
    """The thread of a job, or the thread with that id; and the newest job of it, if one is known.

    Raises UserError (`job_unknown`), Refused (`thread_unknown`) for a job that never got a thread.
    """
    try:
        view = store.find(text)
    except UserError:
        if text.lower().startswith(JOB_PREFIX):
            raise
        return text, None
    if view.thread is None:
        raise refused("thread_unknown", f"job {view.job} has no thread: it never started one")
    return view.thread, view


def last(store: Store, cwd: str | None, environ: Mapping[str, str]) -> JobView:
    """The newest job of a directory that has a thread. Raises Refused."""
    folder = os.path.realpath(paths.expand(cwd, environ) if cwd else os.getcwd())
    for view in store.list_jobs(cwd=folder):
        if view.thread is not None:
            return view
    raise refused("thread_unknown", f"no job in {folder} has a thread yet")


def take_over(args: argparse.Namespace, view: JobView, prompt: str) -> None:
    """Puts what the job before had into the options that say nothing: its directory, and its mode as a whole.

    A mode that is stated, as a flag or in the header, starts afresh: no folder and no network comes with it.
    Raises Refused where the job ran in yolo and the new request doesn't state a mode.
    """
    args.cwd = args.cwd or view.cwd
    stated = args.mode or header.split(prompt)[0].mode
    if stated is not None:
        return
    before = view.request() or {}
    mode = before.get("mode") or "read-only"
    if mode == "yolo":
        raise refused("bad_request", f"job {view.job} ran in yolo, which counts for one turn: state --mode yolo again")
    args.mode = mode
    args.add_dir = [*_texts(before.get("add_dirs")), *args.add_dir]
    args.network = args.network or before.get("network") is True


def same_model(request: TurnRequest, args: argparse.Namespace, view: JobView, prompt: str) -> TurnRequest:
    """The request with the model and effort that the job had, where nobody states others: a changed model makes
    Codex compact the thread with the old one first."""
    head, _ = header.split(prompt)
    if args.model is not None or head.model is not None:
        return request
    agent = replace(request.agent, model=_of(view, "model") or request.agent.model)
    if args.effort is None and head.effort is None:
        agent = replace(agent, effort=_of(view, "effort") or agent.effort)
    return replace(request, agent=agent)


def _of(view: JobView, name: str) -> Sourced | None:
    node: Any = view.record
    for key in ("outcome", "effective", name, "value"):
        node = node.get(key) if isinstance(node, Mapping) else None
    return Sourced(value=node, source=f"job {view.job}") if isinstance(node, str) else None


def _texts(value: Any) -> list[str]:
    return [v for v in value if isinstance(v, str)] if isinstance(value, list) else []


def refused(reason: str, message: str) -> Refused:
    return Refused(Problem(reason=reason, message=message))
