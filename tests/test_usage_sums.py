"""A turn's usage out of a thread's totals: the arithmetic alone. Serves rule.exactFinal."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.codex.usage import FIELDS, TurnUsage, add_up, from_wire
from adapters.contract import Usage

pytestmark = pytest.mark.rule("rule.exactFinal")


def tokens(total: int) -> Usage:
    return Usage(input_tokens=total, total_tokens=total)


def spent(usage: TurnUsage) -> int | None:
    return usage.value.total_tokens if usage.value else None


def test_a_new_thread_begins_at_nothing() -> None:
    usage = TurnUsage(fresh=True)
    assert usage.value is None
    for total in (1010, 3030, 6060):
        usage.observe(own=True, total=tokens(total), last=tokens(1))
    assert spent(usage) == 6060


def test_a_resumed_thread_begins_at_the_replay_and_the_last_replay_counts() -> None:
    usage = TurnUsage(fresh=False)
    usage.observe(own=False, total=tokens(6000), last=tokens(3030))
    usage.observe(own=False, total=tokens(6060), last=tokens(3030))
    assert usage.value is None
    usage.observe(own=True, total=tokens(7070), last=tokens(1010))
    usage.observe(own=True, total=tokens(12120), last=tokens(3030))
    assert spent(usage) == 6060


def test_an_old_total_that_comes_in_the_middle_changes_nothing() -> None:
    usage = TurnUsage(fresh=False)
    usage.observe(own=False, total=tokens(100), last=None)
    usage.observe(own=True, total=tokens(150), last=tokens(50))
    usage.observe(own=False, total=tokens(100), last=None)
    assert spent(usage) == 50


@pytest.mark.parametrize(("last", "expected"), [(tokens(1010), 1010), (None, 0)])
def test_without_a_replay_it_begins_at_the_first_total_less_its_request(last: Usage | None, expected: int) -> None:
    usage = TurnUsage(fresh=False)
    usage.observe(own=True, total=tokens(7070), last=last)
    assert spent(usage) == expected


def test_what_was_counted_for_another_turn_is_given_back() -> None:
    usage = TurnUsage(fresh=True)
    usage.observe(own=True, total=tokens(500), last=tokens(500))
    usage.disown()
    assert usage.value is None
    usage.observe(own=True, total=tokens(620), last=tokens(120))
    assert spent(usage) == 120


def test_a_total_that_shrinks_is_never_a_negative_usage() -> None:
    usage = TurnUsage(fresh=False)
    usage.observe(own=False, total=tokens(1000), last=None)
    usage.observe(own=True, total=tokens(10), last=None)
    assert spent(usage) == 0


@pytest.mark.parametrize("wire", [None, 5, "x", [], True])
def test_what_is_no_object_is_no_usage(wire: Any) -> None:
    assert from_wire(wire) is None


def test_a_field_that_is_missing_or_broken_counts_nothing() -> None:
    wire = {"inputTokens": 7, "outputTokens": "many", "totalTokens": True, "reasoningOutputTokens": None, "new": 1}
    assert from_wire(wire) == Usage(input_tokens=7)
    assert from_wire(dict.fromkeys(FIELDS.values(), 3)) == Usage(**dict.fromkeys(FIELDS, 3))


def test_nothing_adds_up_to_none_and_something_to_its_sum() -> None:
    assert add_up([]) is None
    assert add_up([tokens(1), tokens(2)]) == tokens(3)
