"""Whether an answer is what the request's JSON Schema says. Owns that one check; loaded only where there is one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import jsonschema


def fault(text: str, schema: Mapping[str, Any]) -> str | None:
    """What is wrong, in one line; None where nothing is."""
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError) as error:
        return f"it is not JSON: {error}"
    validator = jsonschema.validators.validator_for(schema)(schema)
    first = min(validator.iter_errors(answer), key=lambda e: list(map(str, e.path)), default=None)
    if first is None:
        return None
    where = ".".join(map(str, first.path))
    return f"{where}: {first.message}" if where else str(first.message)
