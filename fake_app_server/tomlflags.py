"""Reads `-c key=value` flags as Codex does: a key split on every dot, a value in TOML or else plain text.

Owns: the flags' grammar (inline values only). Does not own: what the values mean (config).
Serves spec:cc-agents.fakes. Written out here because tomllib is not in Python 3.10.
"""

from __future__ import annotations

import json
import re
from typing import Any

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<basic>"(?:[^"\\]|\\.)*")
    | (?P<literal>'[^']*')
    | (?P<bare>[A-Za-z0-9_+.-]+)
    | (?P<mark>[\[\]{},=])
    )""",
    re.VERBOSE,
)
_DONE = ("", "")


class NotToml(ValueError):
    """The text is not an inline TOML value. Raised by the parser, answered by taking the text as it is."""


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        at, text = 0, text.strip()
        while at < len(text):
            found = _TOKEN.match(text, at)
            if not found:
                raise NotToml(text)
            self._tokens.append((str(found.lastgroup), found[str(found.lastgroup)]))
            at = found.end()
        self._at = 0

    def peek(self) -> str:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else ""

    def take(self) -> tuple[str, str]:
        token = self._tokens[self._at] if self._at < len(self._tokens) else _DONE
        self._at += 1
        return token

    def must(self, mark: str) -> None:
        if self.take() != ("mark", mark):
            raise NotToml(mark)

    def value(self) -> Any:
        kind, text = self.take()
        if kind == "mark":
            if text == "[":
                return self.array()
            if text == "{":
                return self.table()
        if kind == "bare":
            return _scalar(text)
        return _quoted(kind, text)

    def array(self) -> list[Any]:
        found = []
        while self.peek() != "]":
            found.append(self.value())
            if self.peek() != "]":
                self.must(",")
        self.must("]")
        return found

    def table(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while self.peek() != "}":
            kind, text = self.take()
            path = text.split(".") if kind == "bare" else [_quoted(kind, text)]
            self.must("=")
            put(found, path, self.value())
            if self.peek() != "}":
                self.must(",")
        self.must("}")
        return found

    def whole(self) -> Any:
        value = self.value()
        if self._at < len(self._tokens):
            raise NotToml(self.peek())
        return value


def _scalar(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    try:
        return float(text) if set(text) & set(".eE") else int(text)
    except ValueError as error:
        raise NotToml(text) from error


def _quoted(kind: str, text: str) -> str:
    if kind == "basic":
        try:
            return str(json.loads(text))
        except ValueError as error:
            raise NotToml(text) from error
    if kind == "literal":
        return text[1:-1]
    raise NotToml(text)


def put(table: dict[str, Any], path: list[str], value: Any) -> None:
    """Sets table[a][b][c] for the path [a, b, c], making what is missing on the way."""
    for part in path[:-1]:
        below = table.setdefault(part, {})
        if not isinstance(below, dict):
            below = table[part] = {}
        table = below
    table[path[-1]] = value


def read_value(text: str) -> Any:
    try:
        return _Parser(text).whole()
    except NotToml:
        return text


def read_flags(argv: list[str]) -> dict[str, Any]:
    """What all `-c key=value`, `--config`, `--enable` and `--disable` of an argv set, as one nested table."""
    found: dict[str, Any] = {}
    rest = iter(argv)
    for word in rest:
        if word in ("-c", "--config"):
            key, _, text = next(rest, "").partition("=")
            put(found, key.strip().split("."), read_value(text))
        elif word in ("--enable", "--disable"):
            put(found, ["features", next(rest, "")], word == "--enable")
    return found
