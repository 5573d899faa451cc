"""Rules, examples and tests hold together both ways, and each way of falling apart is seen.

Owns: the check on this checkout, and on small made-up trees. Does not own: reading one file (test_specs_reading.py).
Serves spec:cc-agents.evidence.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from specs.__main__ import main
from specs.drawing import mermaid
from specs.table import counts, faults, load_table

pytestmark = pytest.mark.rule("rule.specsHold")

ROOT = Path(__file__).resolve().parent.parent
COMMAND_LIMIT_S = 30.0  # an interpreter start and two hundred small files, on a busy machine

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
"""
TESTS = """\
import pytest

@pytest.mark.rule("rule.greets")
def test_it_greets(): pass
"""


def tree(root: Path, spec: str = SPEC, tests: str = TESTS) -> Path:
    (root / "specs").mkdir()
    (root / "tests").mkdir()
    (root / "code").mkdir()
    (root / "specs" / "greeter.sdp.md").write_text(spec, encoding="utf-8")
    (root / "tests" / "test_greeter.py").write_text(tests, encoding="utf-8")
    return root


def without(text: str, start: str, end: str) -> str:
    return text[: text.index(start)] + text[text.index(end) :]


# --- this checkout --------------------------------------------------------------------------------------------


def test_rules_and_tests_of_this_checkout_hold_together_both_ways() -> None:
    table = load_table(ROOT)
    assert counts(table)["rules"] > 50
    assert counts(table)["tests"] > 0
    assert faults(table) == []


def test_the_drawing_of_this_checkout_names_every_rule_and_every_arrow_has_both_ends() -> None:
    table = load_table(ROOT)
    source = mermaid(table)
    assert source.splitlines()[0] == "requirementDiagram"
    drawn = set(re.findall(r'^    id: "(rule\.\w+)"$', source, re.MULTILINE))
    assert drawn == {rule.key for rule in table.rules}
    nodes = re.findall(r"^  (?:requirement|functionalRequirement|element) (\w+) \{$", source, re.MULTILINE)
    arrows = re.findall(r"^  (\w+) - (\w+) -> (\w+)$", source, re.MULTILINE)
    assert len(nodes) == len(set(nodes))
    assert {end for first, _, last in arrows for end in (first, last)} == set(nodes)
    assert {word for _, word, _ in arrows} == {"contains", "refines", "traces", "satisfies", "verifies"}


def test_every_line_of_the_drawing_is_a_line_that_mermaid_knows() -> None:
    line = re.compile(
        r'  (?:requirement|functionalRequirement|element) \w+ \{|  \}|    (?:id|text|type|docref): "[^"\n]+"'
        r"|    verifymethod: test|  \w+ - (?:contains|refines|traces|satisfies|verifies) -> \w+|  %% .+"
    )
    strange = [text for text in mermaid(load_table(ROOT)).splitlines()[1:] if not line.fullmatch(text)]
    assert strange == []


def test_the_module_runs_as_a_command_and_gives_one_json_object() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "specs", "--json"],
        cwd=ROOT,
        capture_output=True,
        timeout=COMMAND_LIMIT_S,
        check=True,
    )
    said = json.loads(run.stdout)
    ids = {spec["id"] for spec in said["specs"]}
    assert {"spec:cc-agents.runner", "spec:cc-agents.codex-adapter"} <= ids
    assert said["mermaid"].startswith("requirementDiagram\n")


# --- each kind of fault ---------------------------------------------------------------------------------------


def test_a_sound_tree_has_no_fault(tmp_path: Path) -> None:
    assert faults(load_table(tree(tmp_path))) == []


@pytest.mark.parametrize(
    ("spec", "tests", "fault"),
    [
        pytest.param(
            SPEC,
            "def test_it_greets(): pass\n",
            "specs/greeter.sdp.md:21: rule.greets has no test",
            id="a rule without a test",
        ),
        pytest.param(
            SPEC,
            TESTS + '\n@pytest.mark.rule("rule.farewell")\ndef test_bye(): pass\n',
            "specs/greeter.sdp.md:42: rule.farewell is no longer owed: tests/test_greeter.py::test_bye",
            id="an owed rule that has a test",
        ),
        pytest.param(
            SPEC,
            TESTS + '\n@pytest.mark.rule("rule.greats")\ndef test_typo(): pass\n',
            "tests/test_greeter.py:6: test_typo names rule.greats, which is no rule",
            id="a test that names no rule",
        ),
        pytest.param(
            without(SPEC, "Example:\n- Given a guest", "### rule.farewell"),
            TESTS,
            "specs/greeter.sdp.md:21: rule.greets has no example",
            id="a rule without an example",
        ),
        pytest.param(
            SPEC.replace("- spec:toy.greeter because", "- spec:toy.nobody because"),
            TESTS,
            "specs/greeter.sdp.md:5: spec:toy.greeter dependsOn spec:toy.nobody, which is no spec",
            id="a relation to an unknown spec",
        ),
        pytest.param(
            SPEC.replace("  - code\n", "  - cellar\n"),
            TESTS,
            "specs/greeter.sdp.md:7: spec:toy.greeter satisfiedBy cellar, which is not in this checkout",
            id="code that is not there",
        ),
    ],
)
def test_the_check_finds(tmp_path: Path, capsys: pytest.CaptureFixture[str], spec: str, tests: str, fault: str) -> None:
    assert main(["--check"], tree(tmp_path, spec, tests)) == 1
    assert capsys.readouterr().out == f"{fault}\n"


def test_several_faults_are_all_said_at_once(tmp_path: Path) -> None:
    tests = '@pytest.mark.rule("rule.a", "rule.b")\ndef test_x(): pass\n'
    assert len(faults(load_table(tree(tmp_path, tests=tests)))) == 3


def test_the_check_of_a_sound_tree_says_nothing_and_ends_with_0(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--check"], tree(tmp_path)) == 0
    assert capsys.readouterr().out == ""


def test_the_table_shows_the_rule_its_example_its_test_and_what_is_owed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([], tree(tmp_path)) == 0
    said = capsys.readouterr().out
    assert "  rule.greets: It greets by name, once.\n    given a guest Ada\n    and   a cold day\n" in said
    assert '    then  it says "Hello Ada"\n    test  tests/test_greeter.py::test_it_greets\n' in said
    assert "    owed  nobody has left yet\n" in said
    assert "rules: 2\nexamples: 2\nrules with tests: 1\n" in said
    assert "```mermaid\nrequirementDiagram\n" in said


def test_tests_are_read_and_never_imported(tmp_path: Path) -> None:
    assert faults(load_table(tree(tmp_path, tests="import no_such_module\nraise SystemExit(3)\n" + TESTS))) == []


def test_a_file_that_cannot_be_read_ends_the_command_with_2_and_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--check"], tree(tmp_path, spec=SPEC.replace("title: It greets\n", ""))) == 2
    assert capsys.readouterr().err == "specs/greeter.sdp.md:1: the header has no 'title'\n"
