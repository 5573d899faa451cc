"""Reads the spec files `*.sdp.md` below specs/.

Owns: the form of a spec file, and one clear line (file, line number, fault) where a file breaks it.
Does not own: whether rules and tests agree (specs/table.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from specs.model import RELATION_KINDS, Example, Owed, Question, Relation, RelationKind, Rule, Spec, SpecError

INTENT_KEYS = ("actor", "problem", "outcome", "value")
SECTIONS = ("Intent", "Open questions", "Behaviour", "Design")

_SPEC_ID = re.compile(r"spec:[a-z0-9-]+\.[a-z0-9-]+")
_RULE_KEY = re.compile(r"rule\.[a-z][A-Za-z0-9]*")
_QUESTION_KEY = re.compile(r"question\.[a-z][A-Za-z0-9]*")
_FIELD = re.compile(r"([A-Za-z]+):(?:\s+(.*))?")
_STEP = re.compile(r"- (Given|When|Then|And) (.+)")
_STEP_ORDER = re.compile(r"Given( And)* When( And)* Then( And)*")


def load_specs(root: Path) -> tuple[Spec, ...]:
    """Every `*.sdp.md` below `root`/specs, in the order of their paths. Raises SpecError at the first fault."""
    specs: dict[str, Spec] = {}
    keys: dict[str, Rule] = {}
    for path in sorted((root / "specs").rglob("*.sdp.md")):
        spec = parse_spec(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))
        if spec.id in specs:
            raise SpecError(spec.path, 1, f"{spec.id} is already the id of {specs[spec.id].path}")
        specs[spec.id] = spec
        for rule in spec.rules:
            if rule.key in keys:
                first = keys[rule.key]
                raise SpecError(rule.path, rule.line, f"{rule.key} is already at {first.path}:{first.line}")
            keys[rule.key] = rule
    return tuple(specs.values())


def parse_spec(path: str, text: str) -> Spec:
    """One spec file. Raises SpecError, which names `path` and the line."""
    return _Parser(path, text).spec()


@dataclass(slots=True)
class _Block:
    """A heading with the lines below it, up to the next heading of its level."""

    title: str
    line: int
    lines: list[tuple[int, str]] = field(default_factory=list)


class _Parser:
    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.lines = [(number, line.rstrip()) for number, line in enumerate(text.splitlines(), 1)]

    def fail(self, line: int, message: str) -> NoReturn:
        raise SpecError(self.path, line, message)

    def spec(self) -> Spec:
        values, relations, body = self.header()
        summary, sections = self.split(body, "## ")
        found: dict[str, _Block] = {}
        for block in sections:
            if block.title not in SECTIONS:
                self.fail(block.line, f"unknown section {block.title!r}; there are {', '.join(SECTIONS)}")
            if block.title in found:
                self.fail(block.line, f"a second section {block.title!r}")
            found[block.title] = block
        if not (text := _joined(summary)):
            self.fail(1, "no summary between the header and the first section")
        if "Intent" not in found:
            self.fail(1, "no section 'Intent'")
        return Spec(
            id=values["id"],
            title=values["title"],
            path=self.path,
            summary=text,
            relations=relations,
            intent=self.intent(found["Intent"]),
            questions=tuple(map(self.question, self.entries(found.get("Open questions"), _QUESTION_KEY))),
            rules=tuple(self.rule(values["id"], b) for b in self.entries(found.get("Behaviour"), _RULE_KEY)),
            design=tuple(self.pairs(found["Design"])) if "Design" in found else (),
        )

    # --- the header ---------------------------------------------------------------------------------------

    def header(self) -> tuple[dict[str, str], tuple[Relation, ...], list[tuple[int, str]]]:
        if not self.lines or self.lines[0][1] != "---":
            self.fail(1, "the file must begin with a header between two '---' lines")
        ends = [number for number, line in self.lines[1:] if line == "---"]
        if not ends:
            self.fail(1, "the header has no closing '---'")
        values: dict[str, str] = {}
        relations: list[Relation] = []
        kind: RelationKind | None = None
        for number, line in self.lines[1 : ends[0] - 1]:
            if line.startswith("  - ") and kind:
                relations.append(self.relation(kind, number, line[4:]))
                continue
            key, value = self.header_field(number, line)
            kind = next((k for k in RELATION_KINDS if k == key), None)
            if kind is None:
                if key in values:
                    self.fail(number, f"a second {key!r} in the header")
                values[key] = value
        for key in ("id", "title"):
            if not values.get(key):
                self.fail(1, f"the header has no {key!r}")
        if not _SPEC_ID.fullmatch(values["id"]):
            self.fail(1, f"the id {values['id']!r} is not of the form spec:project.name")
        return values, tuple(relations), self.lines[ends[0] :]

    def header_field(self, number: int, line: str) -> tuple[str, str]:
        match = _FIELD.fullmatch(line)
        if not match:
            self.fail(number, f"not a line of the header: {line!r}")
        key, value = match[1], (match[2] or "").strip()
        if key not in ("id", "title", *RELATION_KINDS):
            self.fail(number, f"unknown key {key!r} in the header")
        if key in RELATION_KINDS and value:
            self.fail(number, f"{key!r} takes a list: put each on a line of its own, as '  - target'")
        return key, value

    def relation(self, kind: RelationKind, number: int, text: str) -> Relation:
        target, _, because = text.partition(" because ")
        if not target.strip() or " " in target.strip():
            self.fail(number, f"a relation is 'target' or 'target because reason', not {text!r}")
        return Relation(kind=kind, target=target.strip(), because=because.strip(), line=number)

    # --- the sections -------------------------------------------------------------------------------------

    def split(self, lines: list[tuple[int, str]], mark: str) -> tuple[list[str], list[_Block]]:
        before: list[str] = []
        blocks: list[_Block] = []
        for number, line in lines:
            if line.startswith(mark):
                blocks.append(_Block(line[len(mark) :].strip(), number))
            elif blocks:
                blocks[-1].lines.append((number, line))
            else:
                before.append(line)
        return before, blocks

    def entries(self, block: _Block | None, form: re.Pattern[str]) -> Iterator[_Block]:
        if block is None:
            return
        before, entries = self.split(block.lines, "### ")
        if _joined(before):
            self.fail(block.line, f"text in {block.title!r} before its first '###' heading")
        seen: set[str] = set()
        for entry in entries:
            if not form.fullmatch(entry.title):
                self.fail(entry.line, f"the heading {entry.title!r} is not a key of the form {form.pattern}")
            if entry.title in seen:
                self.fail(entry.line, f"a second {entry.title}")
            seen.add(entry.title)
            yield entry

    def pairs(self, block: _Block) -> Iterator[tuple[str, str]]:
        for number, line in block.lines:
            if not line:
                continue
            match = _FIELD.fullmatch(line.removeprefix("- ")) if line.startswith("- ") else None
            if not match or not match[2]:
                self.fail(number, f"expected '- key: text' in {block.title!r}, not {line!r}")
            yield match[1], match[2]

    def intent(self, block: _Block) -> tuple[tuple[str, str], ...]:
        pairs = tuple(self.pairs(block))
        if tuple(key for key, _ in pairs) != INTENT_KEYS:
            self.fail(block.line, f"'Intent' must have {', '.join(INTENT_KEYS)}, in this order")
        return pairs

    def question(self, block: _Block) -> Question:
        fields = {"Decider": "", "Provisional": ""}
        text: list[str] = []
        for _, line in block.lines:
            key, _, value = line.partition(": ")
            if key in fields:
                fields[key] = value.strip()
            else:
                text.append(line)
        for key, value in fields.items():
            if not value:
                self.fail(block.line, f"{block.title} has no '{key}: …' line")
        if not (joined := _joined(text)):
            self.fail(block.line, f"{block.title} has no text")
        decider, provisional = fields.values()
        return Question(key=block.title, line=block.line, text=joined, decider=decider, provisional=provisional)

    def rule(self, spec: str, block: _Block) -> Rule:
        statement: list[str] = []
        examples: list[_Block] = []
        owed: Owed | None = None
        for number, line in block.lines:
            if line == "Example:":
                examples.append(_Block("Example", number))
            elif line.startswith("Owed:"):
                if owed or not (reason := line.removeprefix("Owed:").strip()):
                    self.fail(number, f"{block.title} needs one 'Owed:' line, with its reason")
                owed = Owed(line=number, reason=reason)
            elif examples:
                examples[-1].lines.append((number, line))
            else:
                statement.append(line)
        if not (text := _joined(statement)):
            self.fail(block.line, f"{block.title} has no statement")
        return Rule(
            key=block.title,
            spec=spec,
            path=self.path,
            line=block.line,
            statement=text,
            examples=tuple(self.example(block.title, e) for e in examples),
            owed=owed,
        )

    def example(self, key: str, block: _Block) -> Example:
        steps: list[tuple[str, str]] = []
        for number, line in block.lines:
            if match := _STEP.fullmatch(line):
                steps.append((match[1], match[2]))
            elif line.startswith("  ") and steps:
                word, said = steps[-1]
                steps[-1] = (word, f"{said} {line.strip()}")
            elif line:
                self.fail(number, f"expected '- Given|When|Then|And …' in the example of {key}, not {line!r}")
        if not _STEP_ORDER.fullmatch(" ".join(word for word, _ in steps)):
            self.fail(block.line, f"the example of {key} must have Given, When and Then, in this order")
        return Example(line=block.line, steps=tuple(steps))


def _joined(lines: list[str]) -> str:
    """Paragraphs on a line each, wrapped lines joined."""
    paragraphs = "\n".join(lines).strip().split("\n\n")
    return "\n".join(" ".join(p.split()) for p in paragraphs if p.strip())
