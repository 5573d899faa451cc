"""The header of a prompt: `---` lines around `key: value` lines, before the text.

Owns telling a header from text that only looks like one, and its values. Does not own what the values mean.
Serves rule.header. Pure: no I/O.
"""

from __future__ import annotations

import re

from adapters.contract import Problem
from adapters.values import Value

KEYS = ("model", "effort", "mode", "network", "add-dir", "label")
FENCE = "---"
_LINE = re.compile(r"^([A-Za-z][A-Za-z0-9_-]*)[ \t]*:(.*)$")
_YES, _NO = ("true", "yes", "on"), ("false", "no", "off")


class Header(Value):
    """What a header said. Values are as written, without the blanks around them; None where it said nothing."""

    model: str | None = None
    effort: str | None = None
    mode: str | None = None
    network: bool | None = None
    add_dirs: tuple[str, ...] = ()
    label: str | None = None
    problems: tuple[Problem, ...] = ()


def split(prompt: str) -> tuple[Header, str]:
    """The header and the prompt without it. Text without a closing fence, or with a line between the fences that is
    no `key: value`, has no header and stays as it is, byte for byte."""
    lines = prompt.split("\n")
    if lines[0].rstrip("\r") != FENCE:
        return Header(), prompt
    pairs: list[tuple[str, str]] = []
    for number, line in enumerate(lines[1:], start=1):
        if (line := line.rstrip("\r")) == FENCE:
            return _header(pairs), "\n".join(lines[number + 1 :])
        match = _LINE.match(line)
        if match:
            pairs.append((match[1], match[2].strip()))
        elif line.strip():
            break
    return Header(), prompt


def _header(pairs: list[tuple[str, str]]) -> Header:
    problems: list[Problem] = []
    values: dict[str, str] = {}
    add_dirs: list[str] = []
    for key, value in pairs:
        if key not in KEYS:
            problems.append(_problem(f"unknown key {key!r} in the prompt's header: one of {', '.join(KEYS)}"))
        elif not value:
            problems.append(_problem(f"{key} in the prompt's header has no value"))
        elif key == "add-dir":
            add_dirs.append(value)
        elif key in values:
            problems.append(_problem(f"{key} stands twice in the prompt's header"))
        else:
            values[key] = value
    network = values.get("network")
    if network is not None and network.lower() not in _YES + _NO:
        problems.append(_problem(f"network in the prompt's header is yes or no, not {network!r}"))
    return Header(
        model=values.get("model"),
        effort=values.get("effort"),
        mode=values.get("mode"),
        network=None if network is None else network.lower() in _YES,
        add_dirs=tuple(add_dirs),
        label=values.get("label"),
        problems=tuple(problems),
    )


def _problem(message: str) -> Problem:
    return Problem(reason="bad_request", message=message)
