"""A turn request as JSON: of `serve`, of a line of a batch.

Owns: the check against sidecar/schemas/request.json, and the way from there to a TurnRequest. Does not own what a
value means (request.py), the wire (server.py). Serves rule.serve, rule.yoloStated.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import cache
from typing import Any

from adapters.contract import Problem, Refused, Review
from adapters.values import replace
from sidecar import paths
from sidecar.config import Setting, Settings, load_settings
from sidecar.intake import following
from sidecar.request import Flags, TurnRequest, build
from sidecar.store import Store

SOURCE = "request"
OPTIONS = {"model": "model", "effort": "effort", "timeout_s": "timeout", "idle_timeout_s": "idle_timeout"}
OPTIONS |= {"start_timeout_s": "start_timeout", "grace_s": "grace"}
LIMITS = ("timeout_s", "idle_timeout_s")  # null is no limit here
SCHEMAS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "schemas")


@cache
def schema(name: str) -> Any:
    """One of the public schemas: request, event, outcome."""
    with open(os.path.join(SCHEMAS, f"{name}.json"), "rb") as file:
        return json.load(file)


def from_json(given: Any, environ: Mapping[str, str]) -> tuple[TurnRequest, Settings]:
    """Raises Refused or UserError with everything that is wrong with it."""
    if problems := faults(given):
        raise Refused(*problems)
    settings = _with_options(load_settings(environ, {}), given)
    thread = given.get("resume")
    if thread is not None:
        thread, _ = following.find(Store(paths.state_dir(environ)), thread)
    review = given.get("review")
    flags = Flags(
        prompt=given["prompt"],
        mode=given.get("mode"),
        cwd=given.get("cwd"),
        add_dirs=tuple(given.get("add_dirs") or ()),
        network=given.get("network", False),
        thread=thread,
        output_schema=given.get("output_schema"),
        images=tuple(given.get("images") or ()),
        review=None if review is None else Review(base=review.get("base")),
        max_tokens=given.get("max_tokens"),
        label=given.get("label"),
        adapter=given.get("adapter"),
    )
    return build(flags, settings, environ), settings


def faults(given: Any) -> list[Problem]:
    """What the schema says against a request."""
    import jsonschema  # slow to import; `run` never needs it

    validator = jsonschema.Draft202012Validator(schema("request"))
    found = sorted(validator.iter_errors(given), key=lambda e: list(map(str, e.path)))
    return [Problem(reason="bad_request", message=_sentence(e.path, e.message)) for e in found]


def _sentence(path: Any, message: str) -> str:
    where = ".".join(map(str, path))
    return f"{where}: {message}" if where else message


def _with_options(settings: Settings, given: Mapping[str, Any]) -> Settings:
    said = {
        option: Setting(value=given[key], source=SOURCE)
        for key, option in OPTIONS.items()
        if given.get(key) is not None or (key in LIMITS and key in given)
    }
    return replace(settings, **said)
