"""One turn as it was asked for, put together from prompt, header, flags and options.

Owns: `TurnRequest`, the order of the places that may say a value, and the checks that look at the file system
without changing it. Every problem is found at once. Does not own what a harness refuses (adapters).
Serves rule.refusedEarly, rule.yoloStated, rule.promptByteForByte.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from adapters.contract import MODES, AgentRequest, Limits, Mode, Problem, Refused, Review, Sourced
from adapters.values import Value
from sidecar import paths
from sidecar.config import Setting, Settings
from sidecar.intake import header

MARKER = "CC_AGENTS_TURN"  # in the environment of everything that a turn starts
DEFAULT_MODE: Mode = "read-only"


class Flags(Value):
    """What the command line or a JSON request said, before anything was looked at. None: not said."""

    prompt: str
    mode: str | None = None
    model: str | None = None
    effort: str | None = None
    cwd: str | None = None
    add_dirs: tuple[str, ...] = ()
    network: bool = False
    thread: str | None = None
    output_schema: str | Mapping[str, Any] | None = None  # a file, or the schema itself
    images: tuple[str, ...] = ()
    review: Review | None = None
    max_tokens: int | None = None
    label: str | None = None
    adapter: str | None = None


class TurnRequest(Value):
    """A request without a fault in itself. Durations in seconds, None is no limit."""

    agent: AgentRequest
    adapter: str
    timeout_s: float | None
    idle_timeout_s: float | None
    start_timeout_s: float
    grace_s: float
    max_tokens: int | None
    label: str | None

    @property
    def limits(self) -> Limits:
        return Limits(
            start_s=self.start_timeout_s, grace_s=self.grace_s, idle_s=self.idle_timeout_s, tokens=self.max_tokens
        )

    def to_json(self) -> dict[str, Any]:
        """As kept in request.json; sidecar/schemas/request.json has the shape."""
        agent = self.agent
        return {
            "prompt": agent.prompt,
            "mode": agent.mode,
            "model": agent.model.value if agent.model else None,
            "effort": agent.effort.value if agent.effort else None,
            "cwd": agent.cwd,
            "add_dirs": list(agent.add_dirs),
            "network": agent.network,
            "resume": agent.thread,
            "output_schema": agent.output_schema,
            "images": list(agent.images),
            "review": {"base": agent.review.base} if agent.review else None,
            "timeout_s": self.timeout_s,
            "idle_timeout_s": self.idle_timeout_s,
            "start_timeout_s": self.start_timeout_s,
            "grace_s": self.grace_s,
            "max_tokens": self.max_tokens,
            "label": self.label,
            "adapter": self.adapter,
        }


def build(flags: Flags, settings: Settings, environ: Mapping[str, str]) -> TurnRequest:
    """Raises Refused with every problem that the request has in itself."""
    head, prompt = header.split(flags.prompt)
    problems = list(head.problems)
    if environ.get(MARKER):
        problems.append(
            _problem("recursion", "this is inside a turn of cc-agents already: a turn starts no further turn")
        )
    if not prompt.strip() and flags.review is None:
        problems.append(_problem("bad_request", "the prompt is empty"))
    if not _is_text(prompt):
        problems.append(_problem("bad_request", "the prompt holds half a surrogate pair, which Codex can't read"))
    if flags.thread is not None and (not _is_text(flags.thread) or not flags.thread.isprintable()):
        problems.append(_problem("bad_request", f"no thread can be called {flags.thread!r}"))
    mode = _mode(head.mode, flags.mode, problems)
    cwd = _folder("--cwd", flags.cwd or os.getcwd(), os.getcwd(), environ, problems)
    base = cwd or os.getcwd()
    asked_dirs = [("--add-dir", d) for d in flags.add_dirs] + [("add-dir (header)", d) for d in head.add_dirs]
    option_dirs = [("writable_dirs", d) for d in settings.writable_dirs.value] if mode == "write" else []
    add_dirs = tuple(_folder(name, d, base, environ, problems) for name, d in asked_dirs)
    writable_dirs = tuple(_folder(name, d, base, environ, problems) for name, d in option_dirs)
    images = tuple(_file("--image", image, base, environ, problems) for image in flags.images)
    schema = None if flags.output_schema is None else _schema(flags.output_schema, base, environ, problems)
    if flags.max_tokens is not None and flags.max_tokens <= 0:
        problems.append(_problem("bad_request", "--max-tokens must be more than 0"))
    if problems:
        raise Refused(*problems)
    return TurnRequest(
        agent=AgentRequest(
            prompt=prompt,
            mode=mode,
            model=_sourced(head.model, settings.model),
            effort=_sourced(head.effort, settings.effort),
            cwd=cwd,
            add_dirs=tuple(dict.fromkeys(add_dirs)),
            writable_dirs=tuple(dict.fromkeys(writable_dirs)),
            network=flags.network if head.network is None else head.network,
            thread=flags.thread,
            output_schema=schema,
            images=images,
            review=flags.review,
            harness_bin=settings.codex_bin.value,
            protected=paths.protected_dirs(environ),
            private=paths.private_dirs(environ),
        ),
        adapter=flags.adapter or "codex",
        timeout_s=settings.timeout.value,
        idle_timeout_s=settings.idle_timeout.value,
        start_timeout_s=settings.start_timeout.value,
        grace_s=settings.grace.value,
        max_tokens=flags.max_tokens,
        label=head.label or flags.label,
    )


def _mode(in_header: str | None, in_flags: str | None, problems: list[Problem]) -> Mode:
    mode = in_header or in_flags or DEFAULT_MODE
    if mode not in MODES:
        problems.append(_problem("bad_request", f"unknown mode {mode!r}: one of {', '.join(MODES)}"))
        return DEFAULT_MODE
    return mode


def _sourced(in_header: str | None, setting: Setting[str | None]) -> Sourced | None:
    if in_header is not None:
        return Sourced(value=in_header, source="header")
    return Sourced(value=setting.value, source=setting.source) if setting.value is not None else None


def _absolute(path: str, base: str, environ: Mapping[str, str]) -> str:
    return os.path.normpath(os.path.join(base, paths.expand(path, environ)))


def _folder(name: str, path: str, base: str, environ: Mapping[str, str], problems: list[Problem]) -> str:
    full = _absolute(path, base, environ)
    if _odd(full):
        problems.append(_problem("bad_request", f"{name} {full!r} has a character that Codex can't take in a path"))
        return full
    if not os.path.exists(full):
        problems.append(_problem("bad_request", f"{name} {full} does not exist"))
    elif not os.path.isdir(full):
        problems.append(_problem("bad_request", f"{name} {full} is not a folder"))
    return os.path.realpath(full)


def _file(name: str, path: str, base: str, environ: Mapping[str, str], problems: list[Problem]) -> str:
    full = _absolute(path, base, environ)
    if _odd(full):
        problems.append(_problem("bad_request", f"{name} {full!r} has a character that Codex can't take in a path"))
    elif not os.path.isfile(full) or not os.access(full, os.R_OK):
        problems.append(_problem("bad_request", f"{name} {full} is not a file that can be read"))
    return full


def _odd(path: str) -> bool:
    """A path that isn't UTF-8 can't be said in JSON; a NUL or a line end is no path that anybody meant."""
    return any(c in path for c in "\0\n\r") or not _is_text(path)


def _is_text(text: str) -> bool:
    """Half a surrogate pair can be written in JSON, and most programs refuse the whole message for it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _schema(
    given: str | Mapping[str, Any], base: str, environ: Mapping[str, str], problems: list[Problem]
) -> Mapping[str, Any] | None:
    if not isinstance(given, str):
        return _checked(given, "output_schema", problems)
    path, found = given, list[Problem]()
    full = _file("--output-schema", path, base, environ, found)
    problems += found
    if found:
        return None
    try:
        with open(full, "rb") as file:
            schema = json.load(file)
    except (OSError, ValueError, RecursionError) as error:
        problems.append(_problem("bad_request", f"--output-schema {full} is not JSON: {error}"))
        return None
    return _checked(schema, f"--output-schema {full}", problems)


def _checked(schema: Any, where: str, problems: list[Problem]) -> Mapping[str, Any] | None:
    if not isinstance(schema, dict) or not isinstance(schema.get("$schema", ""), str):
        problems.append(_problem("bad_request", f"{where} is not a JSON Schema: an object is one"))
        return None
    import jsonschema  # slow to import, and few requests have a schema

    try:
        json.dumps(schema, allow_nan=False)  # Python reads NaN and 1e999, nobody else does
        # with a default: for a dialect that it doesn't know it would only warn, and use that one
        jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator).check_schema(schema)
    except jsonschema.SchemaError as error:
        problems.append(_problem("bad_request", f"{where} is not a JSON Schema: {error.message}"))
        return None
    except (ValueError, RecursionError) as error:
        problems.append(_problem("bad_request", f"{where} is not JSON: {error}"))
        return None
    return schema


def _problem(reason: str, message: str) -> Problem:
    return Problem(reason=reason, message=message)
