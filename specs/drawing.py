"""The specs as a Mermaid `requirementDiagram`.

Owns: the source of the drawing: specs and rules as requirements, folders and test files as elements.
Does not own: what is drawn (specs/table.py).
"""

from __future__ import annotations

from specs.model import Relation, Spec
from specs.table import Table

# Mermaid has no "depends on"; "traces" is the relation it has for a looser tie, and a comment says which was meant.
_ARROWS = {"refines": "refines", "dependsOn": "traces", "satisfiedBy": "satisfies"}


def mermaid(table: Table) -> str:
    """The whole source. Node names are plain words, since Mermaid reads ':' and '-' in a name as syntax."""
    specs = {spec.id: f"spec{number}" for number, spec in enumerate(table.specs)}
    parts = _elements(table, {r.target for spec in table.specs for r in spec.relations if r.kind == "satisfiedBy"})
    lines = ["requirementDiagram"]
    for spec in table.specs:
        lines += _block("requirement", specs[spec.id], id=spec.id, text=spec.title)
    for rule in table.rules:
        lines += _block(
            "functionalRequirement",
            _rule_node(rule.key),
            id=rule.key,
            text=rule.statement,
            verifymethod="test",
        )
    for path, node in parts.items():
        lines += _block("element", node, type="test" if path.endswith(".py") else "code", docref=path)
    for spec in table.specs:
        lines += _spec_arrows(spec, specs, parts)
    for path, keys in _verified(table).items():
        lines += [f"  {parts[path]} - verifies -> {_rule_node(key)}" for key in keys]
    return "\n".join(lines) + "\n"


def _elements(table: Table, code: set[str]) -> dict[str, str]:
    """Code and test files, each with its node."""
    nodes = {path: f"code{number}" for number, path in enumerate(sorted(code))}
    return nodes | {path: f"suite{number}" for number, path in enumerate(_verified(table))}


def _verified(table: Table) -> dict[str, list[str]]:
    """Each test file with the known rules its tests name, in the order of the specs."""
    found: dict[str, list[str]] = {}
    for rule in table.rules:
        for path in sorted({test.path for test in table.tests_of(rule.key)}):
            found.setdefault(path, []).append(rule.key)
    return found


def _spec_arrows(spec: Spec, specs: dict[str, str], parts: dict[str, str]) -> list[str]:
    here = specs[spec.id]
    lines = [f"  {here} - contains -> {_rule_node(rule.key)}" for rule in spec.rules]
    for relation in spec.relations:
        lines += _arrow(here, relation, specs, parts)
    return lines


def _arrow(here: str, relation: Relation, specs: dict[str, str], parts: dict[str, str]) -> list[str]:
    note = [f"  %% {relation.kind}: {relation.because}"] if relation.because else []
    word = _ARROWS[relation.kind]
    if relation.kind == "satisfiedBy":
        return [*note, f"  {parts[relation.target]} - {word} -> {here}"]
    if relation.target not in specs:
        return []
    return [*note, f"  {here} - {word} -> {specs[relation.target]}"]


def _rule_node(key: str) -> str:
    return key.replace(".", "_")


def _block(kind: str, node: str, **values: str) -> list[str]:
    body = [f"    {key}: {value if key == 'verifymethod' else _quoted(value)}" for key, value in values.items()]
    return [f"  {kind} {node} {{", *body, "  }"]


def _quoted(text: str) -> str:
    """Mermaid's quoted text has no escape for a quote, and takes Markdown and line breaks for its own."""
    return '"' + " ".join(text.replace('"', "'").replace("`", "").split()) + '"'
