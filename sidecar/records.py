"""Events and outcomes as the JSON that leaves us: the journal, `--events`, `serve`.

Owns that shape (sidecar/schemas/event.json). A text with a broken character still is valid JSON.
"""

from __future__ import annotations

import json
import re
import time
from typing import Any

from adapters.contract import Event, Usage
from adapters.values import as_dict
from sidecar import files
from sidecar.outcome import Outcome

_SHAPES: dict[type, tuple[str, tuple[str, ...]]] = {}  # an event's name and its fields


def _shape(event: Event) -> tuple[str, tuple[str, ...]]:
    kind = type(event)
    if kind not in _SHAPES:
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__.removesuffix("Event")).lower()
        _SHAPES[kind] = name, kind.fields
    return _SHAPES[kind]


def event_record(event: Event) -> dict[str, Any]:
    """{"event": <snake_case name>, "at": <Unix time in seconds>, ...the event's fields}."""
    name, fields = _shape(event)
    record = {"event": name, "at": round(time.time(), 3)}
    for field in fields:
        value = getattr(event, field)
        record[field] = as_dict(value) if isinstance(value, Usage) else value
    return record


def outcome_record(outcome: Outcome) -> dict[str, Any]:
    return {"event": "outcome", "at": round(time.time(), 3), "outcome": outcome.to_json()}


_ON_ONE_LINE = json.JSONEncoder(ensure_ascii=False)


def dump(record: Any, *, indent: int | None = None) -> bytes:
    """One JSON text and a newline, always valid UTF-8."""
    return files.json_line(record, json.JSONEncoder(ensure_ascii=False, indent=indent) if indent else _ON_ONE_LINE)
