"""The outcome of a job, also where its sidecar died before it could write it.

Owns the order of the places that may know: the record, the journal, the harness' thread, and at last what was
streamed. Does not own the talk with the harness (adapters). A recovered outcome is told, not written: the record is
its owner's alone. Serves rule.ownerGone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from adapters.values import replace
from sidecar.journal import read_events
from sidecar.store import JobView

DIED = "sidecar_died"
REASON = "its sidecar died before it could write an outcome"


def outcome_of(view: JobView) -> dict[str, Any] | None:
    """The outcome that the job's own sidecar wrote: into the record, or as its last act into the journal. Light."""
    outcome = view.record.get("outcome")
    if isinstance(outcome, dict):
        return outcome
    if not view.over:
        return None
    found = None
    for event, _ in read_events(view.path("events.ndjson")):
        if event.get("event") == "outcome" and isinstance(event.get("outcome"), dict):
            found = event["outcome"]
    return found


def usage_of(view: JobView) -> Mapping[str, Any] | None:
    """What the journal last knew of the turn's own usage."""
    found = None
    for event, _ in read_events(view.path("events.ndjson")):
        if event.get("event") == "usage" and isinstance(event.get("usage"), dict):
            found = event["usage"]
    return found


def streamed(view: JobView) -> str:
    """The text of the last message that was under way or done, as the journal has it."""
    parts: dict[Any, list[str]] = {}
    for event, _ in read_events(view.path("events.ndjson")):
        item = event.get("item")
        if event.get("event") == "text_delta":
            parts.setdefault(item, []).append(str(event.get("text", "")))
        elif event.get("event") == "item" and event.get("kind") == "agentMessage" and event.get("text"):
            parts.pop(item, None)
            parts[item] = [str(event["text"])]
    return "".join(next(reversed(parts.values()), []))


def recover(view: JobView, environ: Mapping[str, str]) -> dict[str, Any]:
    """The outcome of a job whose owner is gone, asked of the harness' thread if need be. Never raises UserError: what
    could not be had is a warning in it."""
    import anyio

    return anyio.run(recover_in_a_loop, view, environ)


async def recover_in_a_loop(view: JobView, environ: Mapping[str, str]) -> dict[str, Any]:
    """The same for who has an event loop already."""
    known = outcome_of(view)
    if known is not None:
        return known
    from adapters.contract import Effective, Ending, Refused, TurnError, Usage
    from sidecar import outcome as outcomes
    from sidecar.errors import UserError

    warnings = [f"{view.reason or REASON}"]
    error = TurnError(kind="other", reason=DIED, message=f"{REASON}: {view.reason}")
    ending = Ending(status="failed", error=error, thread=view.thread, turn=_text(view.record.get("turn")))
    try:
        if view.thread is not None and ending.turn is not None:
            ending = await _recall(view, view.thread, ending.turn, environ)
            found = "the answer is recovered from" if ending.status == "completed" else "its turn was looked up in"
            warnings.append(f"{found} Codex's thread")
    except (Refused, UserError) as problem:
        warnings.append(f"Codex's thread could not be read: {problem}")
    used = usage_of(view)
    if ending.status != "completed" and not ending.partial_text:
        ending = replace(ending, partial_text=streamed(view))
    started = view.record.get("started_at")
    result = outcomes.of_ending(
        replace(
            ending,
            usage=Usage(**{k: v for k, v in used.items() if isinstance(v, int)}) if used else None,
            effective=Effective(mode=view.record.get("mode") or "read-only", cwd=view.cwd or ""),
        ),
        job=view.job,
        timing=outcomes.Timing(started_at=started if isinstance(started, float) else None),
        processes_ended=0,
        signal=None,
        warnings=tuple(warnings),
    )
    return result.to_json()


async def _recall(view: JobView, thread: str, turn: str, environ: Mapping[str, str]) -> Any:
    from adapters import registry
    from adapters.contract import AgentRequest, Ending, Limits, Recalls
    from sidecar import config, inquiry
    from sidecar.errors import UserError

    adapter = registry.load(_text(view.record.get("adapter")) or registry.DEFAULT)
    if not isinstance(adapter, Recalls):
        raise UserError(DIED, f"{adapter.name} can't read a thread back")
    settings = config.load_settings(environ, {})
    request = AgentRequest(
        prompt="", mode="read-only", model=None, effort=None, cwd=_folder(view), harness_bin=settings.codex_bin.value
    )
    resolved = adapter.check(request, environ)
    limits = Limits(start_s=settings.start_timeout.value, grace_s=settings.grace.value)

    async def question(channel: Any) -> Ending:
        return await adapter.recall(channel, resolved, thread, turn, limits)

    return await inquiry.inquire(adapter, resolved, limits, environ, question)


def _folder(view: JobView) -> str:
    """Where to ask from: the job's directory, if it is still there."""
    return view.cwd if view.cwd and os.path.isdir(view.cwd) else view.dir


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
