"""The table rule -> example -> tests, and what is wrong with it.

Owns: joining specs with tests, the faults of `--check`, and the table as text and as JSON.
Does not own: reading the files (specs/parser.py, specs/marks.py), the drawing (specs/drawing.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specs.marks import FoundTest, load_tests
from specs.model import Rule, Spec
from specs.parser import load_specs


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    root: Path
    specs: tuple[Spec, ...]
    tests: tuple[FoundTest, ...]

    @property
    def rules(self) -> tuple[Rule, ...]:
        return tuple(rule for spec in self.specs for rule in spec.rules)

    @property
    def unmarked(self) -> tuple[FoundTest, ...]:
        """Tests that name no rule."""
        return tuple(test for test in self.tests if not test.rules)

    def tests_of(self, key: str) -> tuple[FoundTest, ...]:
        return tuple(test for test in self.tests if key in dict(test.rules))


def load_table(root: Path) -> Table:
    """The specs and tests below `root`. Raises SpecError or MarkError."""
    return Table(root=root, specs=load_specs(root), tests=load_tests(root))


def faults(table: Table) -> list[str]:
    """All that is wrong, one line each; empty when specs and tests hold together."""
    return [*_relation_faults(table), *_rule_faults(table), *_test_faults(table)]


def _relation_faults(table: Table) -> list[str]:
    known = {spec.id for spec in table.specs}
    found: list[str] = []
    for spec in table.specs:
        for relation in spec.relations:
            where = f"{spec.path}:{relation.line}: {spec.id} {relation.kind} {relation.target}"
            if relation.kind == "satisfiedBy":
                if not (table.root / relation.target).exists():
                    found.append(f"{where}, which is not in this checkout")
            elif relation.target not in known:
                found.append(f"{where}, which is no spec")
    return found


def _rule_faults(table: Table) -> list[str]:
    found: list[str] = []
    for rule in table.rules:
        where = f"{rule.path}:{rule.line}: {rule.key}"
        tests = table.tests_of(rule.key)
        if not rule.examples:
            found.append(f"{where} has no example")
        if not tests and not rule.owed:
            found.append(f"{where} has no test")
        if tests and rule.owed:
            names = ", ".join(f"{test.path}::{test.name}" for test in tests[:3])
            found.append(f"{rule.path}:{rule.owed.line}: {rule.key} is no longer owed: {names}")
    return found


def _test_faults(table: Table) -> list[str]:
    known = {rule.key for rule in table.rules}
    return [
        f"{test.path}:{line}: {test.name} names {key}, which is no rule"
        for test in table.tests
        for key, line in test.rules
        if key not in known
    ]


def counts(table: Table) -> dict[str, int]:
    tested = [rule for rule in table.rules if table.tests_of(rule.key)]
    return {
        "specs": len(table.specs),
        "rules": len(table.rules),
        "examples": sum(len(rule.examples) for rule in table.rules),
        "rules_with_tests": len(tested),
        "rules_with_live_tests_only": sum(all(t.live for t in table.tests_of(r.key)) for r in tested),
        "rules_owed": sum(rule.owed is not None for rule in table.rules),
        "tests": len(table.tests),
        "tests_without_rule": len(table.unmarked),
    }


def as_text(table: Table) -> str:
    lines: list[str] = []
    for spec in table.specs:
        lines += [f"{spec.id}  {spec.title}", f"  {spec.path}"]
        for rule in spec.rules:
            lines += ["", f"  {rule.key}: {_first_sentence(rule.statement)}"]
            for example in rule.examples:
                lines += [f"    {word.lower():<5} {said}" for word, said in example.steps]
            lines += _test_lines(table, rule)
        lines.append("")
    lines += [f"{name.replace('_', ' ')}: {number}" for name, number in counts(table).items()]
    if owed := [rule for rule in table.rules if rule.owed]:
        lines += ["", "owed:"]
        lines += [f"  {rule.key}: {rule.owed.reason}" for rule in owed if rule.owed]
    return "\n".join(lines) + "\n"


def _test_lines(table: Table, rule: Rule) -> list[str]:
    tests = table.tests_of(rule.key)
    lines = [f"    test  {test.path}::{test.name}" for test in tests]
    if rule.owed:
        lines.append(f"    owed  {rule.owed.reason}")
    elif not tests:
        lines.append("    test  none")
    return lines


def _first_sentence(statement: str) -> str:
    head, dot, _ = statement.partition(". ")
    return head + "." if dot else statement


def as_json(table: Table) -> dict[str, Any]:
    return {
        "specs": [_spec_json(table, spec) for spec in table.specs],
        "tests_without_rule": [f"{test.path}::{test.name}" for test in table.unmarked],
        "counts": counts(table),
        "faults": faults(table),
    }


def _spec_json(table: Table, spec: Spec) -> dict[str, Any]:
    return {
        "id": spec.id,
        "title": spec.title,
        "path": spec.path,
        "intent": dict(spec.intent),
        "relations": [{"kind": r.kind, "target": r.target, "because": r.because} for r in spec.relations],
        "questions": [{"key": q.key, "text": q.text, "provisional": q.provisional} for q in spec.questions],
        "rules": [_rule_json(table, rule) for rule in spec.rules],
        "design": dict(spec.design),
    }


def _rule_json(table: Table, rule: Rule) -> dict[str, Any]:
    return {
        "key": rule.key,
        "line": rule.line,
        "statement": rule.statement,
        "examples": [[f"{word} {said}" for word, said in example.steps] for example in rule.examples],
        "tests": [f"{test.path}::{test.name}" for test in table.tests_of(rule.key)],
        "owed": rule.owed.reason if rule.owed else None,
    }
