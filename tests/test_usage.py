"""`cc-agents usage`: sums that count nothing twice, unknown that is no 0, prices that are the user's or none.

Serves rule.usageTold.
"""

from __future__ import annotations

import json
import time
from html.parser import HTMLParser
from typing import Any

import pytest
from test_jobs import background, kill_owner
from turns import ANSWER, START, User, wait_for

from sidecar.commands.usage import bar
from sidecar.views import usage_page
from sidecar.views.usage_report import Sum, cost_of

pytestmark = pytest.mark.rule("rule.usageTold")


def used(tokens_in: int, cached: int, out: int) -> list[dict[str, Any]]:
    counts = {"inputTokens": tokens_in, "cachedInputTokens": cached, "outputTokens": out}
    counts |= {"totalTokens": tokens_in + out}
    return [*START, {"usage": [counts, None]}, *ANSWER[1:]]


def report(user: User, *words: str) -> dict[str, Any]:
    ran = user.run("usage", "--json", *words)
    assert ran.code == 0, ran.err
    found: dict[str, Any] = json.loads(ran.out)
    return found


def test_cached_tokens_are_counted_once_and_a_turn_without_usage_is_unknown(user: User) -> None:
    user.turn(used(1000, 800, 50)).completed()
    user.turn(ANSWER).completed()
    told = report(user)["total"]
    assert (told["total_tokens"], told["cached_input_tokens"], told["turns"], told["unknown"]) == (1050, 800, 2, 1)
    shown = user.run("usage").out.decode()
    assert "1,050 tokens, 1,000 in (800 cached), 50 out" in shown
    assert "1 turns told no usage" in shown
    assert "COST" not in shown


def test_the_sums_are_by_day_model_directory_and_thread(user: User) -> None:
    first = user.turn(used(100, 0, 10)).completed().outcome
    other = user.root / "other"
    other.mkdir()
    user.turn(used(200, 0, 20), "--cwd", str(other), "--model", "gpt-5.5").completed()
    told = report(user)
    assert [(d["key"], d["total_tokens"]) for d in told["day"]] == [(time.strftime("%Y-%m-%d"), 330)]
    assert {m["key"]: m["total_tokens"] for m in told["model"]}["gpt-5.5"] == 220
    assert {d["key"]: d["total_tokens"] for d in told["directory"]} == {str(user.work): 110, str(other): 220}
    assert {t["key"]: t["total_tokens"] for t in told["thread"]}[first["thread"]] == 110
    assert report(user, "--days", "1")["total"]["turns"] == 2
    only = user.run("usage", "--by", "model").out.decode()
    assert only.startswith("MODEL")
    assert "DIRECTORY" not in only


def test_the_usage_of_a_turn_whose_sidecar_died_is_what_was_last_known(user: User) -> None:
    user.plays([*used(500, 0, 5)[:2], {"stall": True}])
    job = background(user)
    wait_for(lambda: b'"usage"' in user.run("events", job).out)
    kill_owner(user, job)
    told = report(user)["total"]
    assert (told["total_tokens"], told["unknown"]) == (505, 0)


def test_sub_agents_are_told_apart(user: User) -> None:
    child = {
        "usage": [
            {"inputTokens": 70, "outputTokens": 7, "totalTokens": 77},
            {"inputTokens": 70, "outputTokens": 7, "totalTokens": 77},
        ]
    }
    child |= {"thread": "0199aaaa-0000-7000-8000-0000000000cc", "turn": "t-child"}
    user.turn([*START, child, *used(100, 0, 10)[1:]]).completed()
    told = report(user)["total"]
    assert (told["total_tokens"], told["child_tokens"]) == (110, 77)
    assert "sub-agents used 77 more" in user.run("usage").out.decode()


def test_a_cost_is_told_only_from_the_user_s_own_prices(user: User) -> None:
    user.turn(used(1_000_000, 400_000, 100_000), "--model", "gpt-5.5").completed()
    user.turn(used(1_000_000, 0, 0)).completed()
    config = user.root / "config" / "cc-agents"
    config.mkdir(parents=True)
    (config / "config.toml").write_text('prices = {"gpt-5.5" = {input = 2.0, cached_input = 0.5, output = 10}}\n')
    told = report(user)
    assert {m["key"]: m["cost"] for m in told["model"]}["gpt-5.5"] == pytest.approx(0.6 * 2 + 0.4 * 0.5 + 1.0)
    assert (told["total"]["priced"], told["total"]["turns"]) == (1, 2)
    assert "cost ≥ 2.40" in user.run("usage").out.decode()


@pytest.mark.parametrize(
    "prices",
    ['{"m" = {input = 1}}', '{"m" = {input = 1, output = 2, cached_input = "x"}}', '"cheap"', '{"m" = 3}'],
)
def test_half_a_price_is_refused_and_not_guessed(user: User, prices: str) -> None:
    config = user.root / "config" / "cc-agents"
    config.mkdir(parents=True)
    (config / "config.toml").write_text(f"prices = {prices}\n")
    ran = user.run("usage")
    assert ran.code == 2
    assert "prices" in ran.err


class Page(HTMLParser):
    """Every tag with its attributes, and the text of the cells."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_the_page_has_a_chart_and_the_tables_and_asks_the_network_for_nothing(user: User) -> None:
    odd = user.root / "a <b> & c"
    odd.mkdir()
    user.turn(used(1000, 800, 50), "--cwd", str(odd)).completed()
    path = user.work / "usage.html"
    assert user.run("usage", "--html", str(path)).code == 0
    page = Page(path.read_text(encoding="utf-8"))
    names = [tag for tag, _ in page.tags]
    assert names.count("svg") == 1
    assert names.count("table") == 4
    assert not {"script", "link", "img", "iframe", "object"} & set(names)
    assert not any(key in ("src", "href", "xlink:href") for _, attrs in page.tags for key in attrs)
    assert "url(" not in usage_page.STYLE
    assert str(odd) in page.texts
    heights = {a["class"]: float(a["height"] or 0) for tag, a in page.tags if tag == "rect"}
    assert heights["cached"] == pytest.approx(heights["fresh"] * 4, abs=0.1)
    assert heights["fresh"] == pytest.approx(heights["output"] * 4, abs=0.1)


def test_without_a_turn_there_is_a_report_of_nothing(user: User) -> None:
    assert "0 turns: 0 tokens" in user.run("usage").out.decode()
    path = user.work / "usage.html"
    assert user.run("usage", "--html", str(path)).code == 0
    assert "No turn was started yet" in path.read_text()
    assert user.run("usage", "--html", str(user.root / "no" / "page.html")).code == 2


def test_a_bar_is_as_long_as_its_share() -> None:
    assert [len(bar(n, 100)) for n in (0, 50, 100)] == [0, 12, 24]
    assert bar(1, 10_000) == ""
    assert bar(5, 0) == ""


def test_cached_input_has_its_own_price_and_more_cached_than_input_costs_no_negative() -> None:
    price = {"input": 1.0, "cached_input": 0.1, "output": 2.0}
    assert cost_of({"input_tokens": 10, "cached_input_tokens": 4, "output_tokens": 5}, price) * 1e6 == pytest.approx(
        16.4
    )
    assert cost_of({"input_tokens": 4, "cached_input_tokens": 9, "output_tokens": 0}, price) * 1e6 == pytest.approx(0.4)


@pytest.mark.parametrize(("value", "top"), [(0, 4), (3, 4), (9, 10), (1050, 2000), (8_000_001, 10_000_000)])
def test_the_chart_s_scale_ends_at_a_round_number(value: int, top: int) -> None:
    assert usage_page.ceiling(value) == top
    assert usage_page.parts_of(Sum(key="x", input_tokens=9, cached_input_tokens=4, output_tokens=1)) == (5, 4, 1)
