"""A job in few words, as JSON: `status --json`, `jobs/list`. Owns that shape. Standard library only."""

from __future__ import annotations

from typing import Any

from sidecar.store import JobView


def brief(view: JobView) -> dict[str, Any]:
    """A job as an object: what `status --json` and `jobs/list` say of it."""
    outcome = view.record.get("outcome")
    return {
        "job": view.job,
        "state": view.state,
        "status": view.status,
        "reason": view.reason,
        "thread": view.thread,
        "turn": view.record.get("turn"),
        "mode": view.record.get("mode"),
        "cwd": view.cwd,
        "label": view.record.get("label"),
        "created_at": view.created_at,
        "started_at": view.record.get("started_at"),
        "pid": (view.record.get("owner") or {}).get("pid"),
        "exit_code": outcome.get("exit_code") if isinstance(outcome, dict) else None,
        "directory": view.dir,
    }
