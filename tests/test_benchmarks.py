"""What the benchmarks make of their measurements: the judgement, the table, the picture, growth, the floor's messages.

Owns made-up figures only: nothing is measured here, and the command is tried without a codex.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from benchmarks import plans
from benchmarks.chart import MET, MISSED, as_svg
from benchmarks.figure import Budget, Figure, Spread, figure
from benchmarks.growth import bend, fit
from benchmarks.measure import cpu_s, measure
from benchmarks.table import as_markdown, as_text, cells, number

pytestmark = pytest.mark.rule("rule.missedBudgets")

ROOT = Path(__file__).resolve().parent.parent
MISSED_TURN = figure(
    "cold.wall", "run", "ms", [600, 620, 640], "codex exec", [480, 500, 530], budget=Budget(at_most=1.10, of="ratio")
)
MET_TURN = figure("cold.memory", "memory", "MB", [23.2], budget=Budget(at_most=40))
UNJUDGED = figure("cold.node", "run", "ms", [620], "Node <plugin>", [310])


# --- the judgement ----------------------------------------------------------------------------------------------


def test_a_missed_budget_is_told_in_its_row() -> None:
    assert cells(MISSED_TURN) == ("run", "620 ±10 ms", "500 ±12.5 ms codex exec", "1.24", "ratio 1.10", "no")


def test_a_figure_without_a_budget_is_neither_met_nor_missed() -> None:
    assert UNJUDGED.met is None
    assert cells(UNJUDGED)[3:] == ("2.00", "", "")


@pytest.mark.parametrize(
    ("of", "judged"), [("ours", 200.0), ("worst", 300.0), ("over", 150.0), ("ratio", 4.0)], ids=str
)
def test_a_budget_says_which_number_it_is_about(of: str, judged: float) -> None:
    def made(at_most: float) -> Figure:
        budget = Budget(at_most=at_most, of=of)  # type: ignore[arg-type]
        return figure("a.b", "it", "ms", [100, 200, 300], "floor", [50], budget=budget)

    assert made(judged).judged == judged
    assert made(judged).met is True
    assert made(judged - 0.01).met is False


def test_the_spread_is_the_width_of_the_middle_half() -> None:
    spread = Spread.of([10, 1, 2, 3, 4])
    assert (spread.median, spread.low, spread.high, spread.quartiles, spread.count) == (3, 1, 10, 2, 5)
    assert Spread.of([7]).quartiles == 0


# --- how it looks -----------------------------------------------------------------------------------------------


def test_the_text_table_has_a_line_for_each_figure_and_says_no_for_a_miss() -> None:
    text = as_text([MISSED_TURN, MET_TURN, UNJUDGED])
    lines = text.splitlines()
    assert [line.split()[-1] for line in lines[2:4]] == ["no", "yes"]
    assert lines[0].index("met") == lines[2].index("no")


def test_the_worst_is_shown_where_the_budget_is_about_it() -> None:
    budget = Budget(at_most=250, of="worst")
    row = cells(figure("kill.last", "kill", "ms", [20, 30, 971], budget=budget))
    assert row[1].endswith("worst 971 ms")
    assert row[4:] == ("worst 250 ms", "no")


def test_the_markdown_table_has_as_many_cells_in_every_line() -> None:
    lines = as_markdown([MISSED_TURN, MET_TURN]).splitlines()
    assert {line.count("|") for line in lines} == {7}
    assert len(lines) == 4


@pytest.mark.parametrize(
    ("value", "said"), [(1234.5, "1,234"), (620, "620"), (59.74, "59.7"), (1.098, "1.10"), (0, "0"), (40, "40")]
)
def test_a_number_has_three_figures_or_so(value: float, said: str) -> None:
    assert number(value) == said


def test_the_picture_is_xml_with_a_bar_for_each_budget_in_the_colour_of_its_judgement() -> None:
    root = ElementTree.fromstring(as_svg([MISSED_TURN, MET_TURN, UNJUDGED], "a < b"))
    bars = [rect for rect in root.iter("{http://www.w3.org/2000/svg}rect") if rect.get("fill") != "#fff"]
    assert [bar.get("fill") for bar in bars] == [MISSED, MET]
    missed, met = (float(bar.get("width", 0)) for bar in bars)
    assert met == pytest.approx(missed * (23.2 / 40) / (1.24 / 1.10), rel=0.02)


def test_a_bar_far_over_its_budget_stays_in_the_picture() -> None:
    far = figure("kill.last", "kill", "ms", [100_000], budget=Budget(at_most=250))
    root = ElementTree.fromstring(as_svg([far], "far"))
    width = float(root.get("viewBox", "").split()[2])
    assert all(
        float(rect.get("x", 0)) + float(rect.get("width", 0)) <= width for rect in root.iter() if rect.get("width")
    )


# --- growth -----------------------------------------------------------------------------------------------------


def test_a_line_through_points_gives_the_cost_of_one_more_and_of_none() -> None:
    line = fit([(10, 25), (50, 105), (200, 405)])
    assert (line.each, line.base) == (pytest.approx(2), pytest.approx(5))


@pytest.mark.parametrize(("power", "least", "most"), [(1, 0.99, 1.01), (2, 4.0, 4.3), (0.5, 0.4, 0.6)])
def test_growth_is_one_for_a_line_more_for_squares_and_less_for_roots(power: float, least: float, most: float) -> None:
    assert least < bend([(size, size**power) for size in (10, 50, 200)]) < most


def test_two_sizes_are_no_growth() -> None:
    with pytest.raises(ValueError, match="three sizes"):
        bend([(1, 1), (2, 2)])
    with pytest.raises(ValueError, match="two sizes"):
        fit([(1, 1), (1, 2)])


# --- the floor --------------------------------------------------------------------------------------------------

SENT = [
    {"id": 1, "method": "initialize", "params": {}},
    {"method": "initialized"},
    {"id": 2, "method": "thread/start", "params": {"config": {"permissions": {"p": {}}, "default_permissions": "p"}}},
    {"id": 3, "method": "turn/start", "params": {"threadId": "old", "input": [{"type": "text", "text": "go"}]}},
]


def test_the_floor_sends_what_we_sent_with_and_without_the_profile() -> None:
    plan = plans.plan_of(["codex", "app-server"], SENT)
    assert plan["opening"] == SENT[:3]
    assert plan["turn"] == SENT[3]
    plain = plans.with_sandbox(plan)["opening"][-1]["params"]
    assert plain == {"config": {}, "sandbox": "read-only"}
    assert plan["opening"] == SENT[:3], "the plan itself is left as it was"
    assert plans.with_prompt(plan, "other")["turn"]["params"]["input"][0]["text"] == "other"


def test_the_bare_driver_runs_a_turn_of_the_fake(tmp_path: Path) -> None:
    from fake_app_server.shim import write_shim

    codex = write_shim(tmp_path, scenario={"turn": [{"start": True}, {"msg": ["ANSWER", None]}, {"done": "completed"}]})
    plan = plans.plain_plan([str(codex), "app-server"], str(tmp_path), "go")
    env = {"PATH": "/usr/bin:/bin"}
    one = measure(plans.bare_argv(plans.write_plan(tmp_path / "one", plan)), env, tmp_path)
    assert one.stdout == b"ANSWER"
    assert 0 < one.self_cpu_s <= one.cpu_s
    many = plans.write_plan(tmp_path / "many", {**plan, "times": 5, "at_once": 2})
    assert measure(plans.many_argv(many), env, tmp_path).stdout == b"5"


def test_the_cpu_of_another_process_is_told_until_it_was_waited_for() -> None:
    spin = [sys.executable, "-I", "-S", "-c", "sum(range(1_000_000))"]
    with subprocess.Popen(spin) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        ended = cpu_s(process.pid)
    assert ended is not None
    assert ended > 0
    assert cpu_s(process.pid) is None


# --- the command ------------------------------------------------------------------------------------------------


def bench(*words: str) -> subprocess.CompletedProcess[str]:
    argv, env = [sys.executable, "-m", "benchmarks", *words], {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
    return subprocess.run(argv, env=env, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)


def test_without_a_codex_it_says_so_in_one_line_and_what_can_be_measured_all_the_same() -> None:
    ran = bench("--codex", "/nowhere/codex")
    assert ran.returncode == 2
    assert ran.stdout == ""
    (line,) = ran.stderr.splitlines()
    assert "/nowhere/codex is not an executable file" in line
    assert "--only verbs kill floods many" in line


def test_help_names_the_parts() -> None:
    ran = bench("--help")
    assert ran.returncode == 0
    assert "cold, warm, verbs, stop, kill, floods, many" in " ".join(ran.stdout.split())


def test_a_figure_as_json_has_its_judgement() -> None:
    told = json.loads(json.dumps(MISSED_TURN.to_json()))
    assert (told["ratio"], told["judged"], told["met"]) == (1.24, 1.24, False)
