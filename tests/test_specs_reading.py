"""Spec files and rule marks are read exactly, and what can't be read is told with its file and line.

Owns: the form of one spec file and of the marks in one test file. Does not own: whether they agree (test_specs.py).
Serves spec:cc-agents.evidence.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from specs.marks import MarkError, read_tests
from specs.model import SpecError
from specs.parser import load_specs, parse_spec

pytestmark = pytest.mark.rule("rule.specsHold")

SPEC = """\
---
id: spec:toy.greeter
title: It greets
dependsOn:
  - spec:toy.greeter because it is alone
satisfiedBy:
  - code
---

A greeter.

## Intent

- actor: A guest.
- problem: Silence.
- outcome: A greeting.
- value: Warmth.

## Open questions

### question.language

Which one?

Decider: owner
Provisional: English.

## Behaviour

### rule.greets

It greets by name,
once.

Example:
- Given a guest Ada
- And a cold day
- When she comes
- Then it says
  "Hello Ada"

### rule.farewell

It says goodbye.

Example:
- Given Ada
- When she goes
- Then it says "Bye"

Owed: nobody has left yet

## Design

- tone: friendly
"""


def rules_of(source: str) -> dict[str, list[str]]:
    return {test.name: [key for key, _ in test.rules] for test in read_tests("tests/test_x.py", source)}


# --- where the marks are --------------------------------------------------------------------------------------


def test_marks_are_found_on_functions_classes_parameters_and_modules() -> None:
    source = """\
import pytest
from pytest import mark

slow = [pytest.param(1, marks=pytest.mark.rule("rule.e"))]
pytestmark = [pytest.mark.asyncio, pytest.mark.rule("rule.a")]

@pytest.mark.rule("rule.b", "rule.c")
async def test_one(): pass

@mark.rule("rule.a")
@pytest.mark.parametrize("x", [pytest.param(1, marks=mark.rule("rule.d"))])
def test_two(x): pass

@pytest.mark.parametrize("x", slow)
def test_three(x): pass

@pytest.mark.rule("rule.f")
class TestGroup:
    pytestmark = pytest.mark.rule("rule.g")

    @pytest.mark.rule("rule.h")
    def test_inside(self): pass
"""
    assert rules_of(source) == {
        "test_one": ["rule.a", "rule.b", "rule.c"],
        "test_two": ["rule.a", "rule.d"],
        "test_three": ["rule.a", "rule.e"],
        "TestGroup::test_inside": ["rule.a", "rule.f", "rule.g", "rule.h"],
    }


def test_what_is_no_test_does_not_count_as_one() -> None:
    source = """\
@pytest.mark.rule("rule.a")
def helper(): pass

class Fake:
    @pytest.mark.rule("rule.b")
    def test_shaped(self): pass

@other.rule("rule.c")
@pytest.mark.role("rule.d")
def test_unmarked(): pass
"""
    assert rules_of(source) == {"test_unmarked": []}


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("@pytest.mark.rule(KEY)\ndef test_x(): pass\n", "tests/test_x.py:1: a rule mark must hold its key"),
        ("\n@pytest.mark.rule()\ndef test_x(): pass\n", "tests/test_x.py:2: a rule mark without a key"),
        ("def test_x(:\n", "tests/test_x.py:1: not Python"),
    ],
)
def test_a_mark_that_cannot_be_read_is_told_with_file_and_line(source: str, fault: str) -> None:
    with pytest.raises(MarkError, match=re.escape(fault)):
        read_tests("tests/test_x.py", source)


# --- the form of a spec file ----------------------------------------------------------------------------------


def test_a_whole_spec_file_is_read_into_values() -> None:
    spec = parse_spec("specs/greeter.sdp.md", SPEC)
    assert (spec.id, spec.title, spec.summary) == ("spec:toy.greeter", "It greets", "A greeter.")
    assert [(r.kind, r.target, r.because, r.line) for r in spec.relations] == [
        ("dependsOn", "spec:toy.greeter", "it is alone", 5),
        ("satisfiedBy", "code", "", 7),
    ]
    assert dict(spec.intent)["outcome"] == "A greeting."
    assert [(q.key, q.text, q.decider, q.provisional) for q in spec.questions] == [
        ("question.language", "Which one?", "owner", "English.")
    ]
    greets, farewell = spec.rules
    assert (greets.key, greets.line, greets.statement) == ("rule.greets", 30, "It greets by name, once.")
    assert greets.examples[0].steps[-1] == ("Then", 'it says "Hello Ada"')
    assert greets.owed is None
    assert farewell.owed is not None
    assert (farewell.owed.reason, farewell.owed.line) == ("nobody has left yet", 51)
    assert spec.design == (("tone", "friendly"),)


def at(line: int, fault: str) -> str:
    return f"specs/greeter.sdp.md:{line}: {fault}"


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("---\nid", "id", at(1, "the file must begin with a header")),
        ("  - code\n---", "  - code", at(1, "the header has no closing '---'")),
        ("title: It greets\n", "", at(1, "the header has no 'title'")),
        ("id: spec:toy.greeter", "id: greeter", at(1, "the id 'greeter' is not of the form")),
        ("title:", "tilte:", at(3, "unknown key 'tilte' in the header")),
        ("title: It greets", "title: It greets\ntitle: Twice", at(4, "a second 'title'")),
        ("dependsOn:\n", "dependsOn: spec:toy.greeter\n", at(4, "'dependsOn' takes a list")),
        ("  - code", "  - code of ours", at(7, "a relation is 'target' or 'target because reason'")),
        ("  - code", "whatever", at(7, "not a line of the header: 'whatever'")),
        ("A greeter.\n", "", at(1, "no summary")),
        ("## Intent", "## Intents", at(12, "unknown section 'Intents'")),
        ("## Design", "## Behaviour", at(53, "a second section 'Behaviour'")),
        ("- actor: A guest.\n", "", at(12, "'Intent' must have actor, problem, outcome, value")),
        ("- actor: A guest.", "actor: A guest.", at(14, "expected '- key: text' in 'Intent'")),
        ("### question.language", "### rule.language", at(21, "the heading 'rule.language' is not a key")),
        ("Which one?\n", "", at(21, "question.language has no text")),
        ("Provisional: English.\n", "", at(21, "question.language has no 'Provisional: …' line")),
        ("## Behaviour\n", "## Behaviour\n\nLoose words.\n", at(28, "text in 'Behaviour' before its first")),
        ("### rule.farewell", "### farewell", at(42, "the heading 'farewell' is not a key of the form")),
        ("### rule.farewell", "### rule.greets", at(42, "a second rule.greets")),
        ("It says goodbye.\n", "", at(42, "rule.farewell has no statement")),
        ("- When she goes\n", "", at(46, "the example of rule.farewell must have Given, When and Then")),
        (
            "- When she goes",
            "- She goes",
            at(48, "expected '- Given|When|Then|And …' in the example of rule"),
        ),
        ("Owed: nobody has left yet", "Owed:", at(51, "rule.farewell needs one 'Owed:' line")),
        ("- tone: friendly", "- tone", at(55, "expected '- key: text' in 'Design'")),
    ],
)
def test_a_file_that_breaks_the_form_gives_one_line_with_its_place(old: str, new: str, fault: str) -> None:
    broken = SPEC.replace(old, new, 1)
    assert broken != SPEC
    with pytest.raises(SpecError, match="^" + re.escape(fault)) as caught:
        parse_spec("specs/greeter.sdp.md", broken)
    assert "\n" not in str(caught.value)


def test_an_empty_file_is_told_as_one_without_a_header() -> None:
    with pytest.raises(SpecError, match=r"^specs/empty\.sdp\.md:1: the file must begin with a header"):
        parse_spec("specs/empty.sdp.md", "")


@pytest.mark.parametrize(
    ("second", "fault"),
    [
        (SPEC.replace("rule.greets", "rule.waves"), "spec:toy.greeter is already the id of specs/a.sdp.md"),
        (SPEC.replace("spec:toy.greeter", "spec:toy.b"), "rule.greets is already at specs/a.sdp.md:30"),
    ],
)
def test_an_id_or_a_key_that_is_used_twice_is_told(tmp_path: Path, second: str, fault: str) -> None:
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "a.sdp.md").write_text(SPEC, encoding="utf-8")
    (tmp_path / "specs" / "b.sdp.md").write_text(second, encoding="utf-8")
    with pytest.raises(SpecError, match=rf"^specs/b\.sdp\.md:\d+: {re.escape(fault)}"):
        load_specs(tmp_path)
