"""Specs as values: what a spec file `*.sdp.md` says, and the error that names the line where it breaks its form.

Owns: the types. Does not own: reading the files (specs/parser.py), whether rules and tests agree (specs/table.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

RelationKind: TypeAlias = Literal["refines", "dependsOn", "satisfiedBy"]
RELATION_KINDS: tuple[RelationKind, ...] = ("refines", "dependsOn", "satisfiedBy")


class SpecError(Exception):
    """A spec file breaks the form. Its text is one line: file, line number, what is wrong."""

    def __init__(self, path: str, line: int, message: str) -> None:
        super().__init__(f"{path}:{line}: {message}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    line: int
    steps: tuple[tuple[str, str], ...]  # ("Given" | "When" | "Then" | "And", what)


@dataclass(frozen=True, slots=True, kw_only=True)
class Owed:
    """Why a rule has no test yet."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    key: str
    spec: str
    path: str
    line: int
    statement: str
    examples: tuple[Example, ...] = ()
    owed: Owed | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    key: str
    line: int
    text: str
    decider: str
    provisional: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """`target` is a spec id, or for satisfiedBy a path below the root of the checkout."""

    kind: RelationKind
    target: str
    because: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    id: str
    title: str
    path: str
    summary: str
    relations: tuple[Relation, ...] = ()
    intent: tuple[tuple[str, str], ...] = ()
    questions: tuple[Question, ...] = ()
    rules: tuple[Rule, ...] = ()
    design: tuple[tuple[str, str], ...] = ()
