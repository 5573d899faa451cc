"""What `check` answers, as a value and as JSON: for the command and for `turn/check`. Owns that shape."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from adapters.contract import Effective, Preview, Problem
from sidecar.outcome import Outcome


def refused(problems: Iterable[Problem]) -> Preview:
    return Preview(effective=Effective(), problems=tuple(problems))


def as_json(preview: Preview) -> dict[str, Any]:
    effective = Outcome(job=None, status="refused", effective=preview.effective).to_json()["effective"]
    return {
        "ok": not preview.problems,
        "problems": [{"reason": p.reason, "message": p.message} for p in preview.problems],
        "warnings": list(preview.warnings),
        "effective": effective,
    }
