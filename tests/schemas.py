"""The public schemas, as a test holds something against them. Owns no test."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
from referencing import Registry, Resource

FOLDER = Path(__file__).resolve().parent.parent / "sidecar" / "schemas"
NAMES = ("request", "event", "outcome")


@cache
def validator(name: str) -> Any:
    schemas = {n: json.loads((FOLDER / f"{n}.json").read_text(encoding="utf-8")) for n in NAMES}
    registry = Registry().with_resources((s["$id"], Resource.from_contents(s)) for s in schemas.values())
    return jsonschema.Draft202012Validator(schemas[name], registry=registry)


def valid(name: str, value: Any) -> bool:
    """True, or an AssertionError that says all that is wrong."""
    wrong = [f"{'.'.join(map(str, e.path))}: {e.message}" for e in validator(name).iter_errors(value)]
    assert not wrong, wrong
    return True
