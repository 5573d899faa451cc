"""Which message is the answer: the rule alone. Serves rule.exactFinal and rule.neverEmptySuccess."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.codex.answer import Answer

pytestmark = pytest.mark.rule("rule.exactFinal")


def item(text: Any, phase: Any = "final_answer", ident: Any = "m", **more: Any) -> dict[str, Any]:
    return {"type": "agentMessage", "id": ident, "text": text, "phase": phase, **more}


def answer_of(*items: dict[str, Any]) -> Answer:
    answer = Answer()
    for each in items:
        answer.completed(each)
    return answer


@pytest.mark.parametrize(
    ("said", "final"),
    [
        ([], ""),
        ([("c", "commentary")], "c"),
        ([("c", "commentary"), ("p", "partial_answer")], "p"),
        ([("p", "partial_answer"), ("n", None)], "n"),
        ([("n", None), ("f", "final_answer")], "f"),
        ([("f", "final_answer"), ("n", None), ("c", "commentary")], "f"),
        ([("n1", None), ("n2", "a_phase_of_tomorrow")], "n2"),
        ([("f1", "final_answer"), ("f2", "final_answer")], "f2"),
        ([("f1", "final_answer"), ("", "final_answer")], "f1"),
    ],
)
def test_the_last_of_the_best_rank_that_says_something(said: list[tuple[str, Any]], final: str) -> None:
    assert answer_of(*(item(t, p, f"m{n}") for n, (t, p) in enumerate(said))).final == final


def test_order_is_that_of_completion_not_of_the_start() -> None:
    answer = Answer()
    answer.started(item("", ident="first"))
    answer.started(item("", ident="second"))
    answer.completed(item("B", ident="second"))
    answer.completed(item("A", ident="first"))
    assert answer.final == "A"


def test_an_item_that_completes_again_replaces_what_it_said() -> None:
    assert answer_of(item("one"), item("two")).final == "two"


def test_deltas_stand_in_for_a_text_that_is_missing_and_for_nothing_else() -> None:
    answer = Answer()
    answer.delta("m", "A")
    answer.delta("m", "B")
    assert (answer.final, answer.partial) == ("", "AB")
    answer.completed(item(None))
    assert answer.final == "AB"
    answer.delta("m", "late")
    assert answer.final == "AB"


def test_what_the_end_carries_counts_only_if_it_was_not_seen() -> None:
    answer = answer_of(item("seen"))
    answer.summary([item("other words"), "no item", item("new", ident="n"), 5])
    assert answer.final == "new"
    answer.summary("no list")
    answer.summary(None)
    assert answer.final == "new"


def test_async_messages_are_never_the_answer_nor_partial_text() -> None:
    answer = answer_of(item("question", delivery="async"))
    assert (answer.final, answer.partial, answer.has_final_answer) == ("", "", False)


def test_a_review_is_the_answer_whatever_was_said_beside_it() -> None:
    answer = answer_of({"type": "exitedReviewMode", "id": "r", "review": "R"}, item("R2"))
    assert answer.final == "R"


@pytest.mark.parametrize("blank", [" ", "\n", "\u00a0", "\x00"])
def test_white_space_is_a_text_like_any_other(blank: str) -> None:
    assert answer_of(item(blank)).final == blank


@pytest.mark.parametrize(
    ("text", "exact", "repaired"),
    [
        ("\ud83d\ude00", "😀", True),
        ("a\ud83dz", "a\ufffdz", True),
        ("\udc00", "\ufffd", True),
        ("\ud83d\ud83d\ude00", "\ufffd😀", True),
        ("\ufeffé", "\ufeffé", False),
        ("é😀\u2028", "é😀\u2028", False),
    ],
)
def test_half_a_surrogate_pair_is_replaced_and_told_and_two_halves_join(text: str, exact: str, repaired: bool) -> None:
    answer = answer_of(item(text))
    assert (answer.final, answer.repaired) == (exact, repaired)


def test_other_items_are_no_messages() -> None:
    answer = answer_of({"type": "commandExecution", "id": "c", "text": "x"}, {"type": "plan", "text": "p"}, {})
    assert (answer.final, answer.partial) == ("", "")
