"""The usage of a turn is its own: the cases of the field, through the whole command.

Serves rule.exactFinal. The arithmetic alone: test_usage_sums.py.
"""

from __future__ import annotations

import json

import pytest
from turns import ANSWER, START, Steps, User, usage_of

pytestmark = pytest.mark.rule("rule.exactFinal")

END = ANSWER[1:]


def counted(*steps: dict[str, object]) -> Steps:
    return [*START, *steps, *END]


def test_the_last_request_is_not_the_turn(user: User) -> None:
    ran = user.turn(counted({"usage": [1100, 100]}, {"usage": [1400, 300]}, {"usage": [1900, 500]})).completed()
    assert usage_of(ran.outcome) == 1900, "a new thread began at nothing"


def test_a_resumed_thread_counts_from_the_total_that_codex_replays(user: User) -> None:
    scenario = {
        "known_threads": ["0a"],
        "replay_usage": [1000, 100, "OLD"],
        "turn": counted({"usage": [1100, 100]}, {"usage": [1400, 300]}, {"usage": [1900, 500]}),
    }
    ran = user.turn(scenario, "--resume", "0a").completed()
    assert usage_of(ran.outcome) == 900


def test_without_a_replay_a_resumed_thread_counts_from_the_first_total_less_its_request(user: User) -> None:
    scenario = {"known_threads": ["0a"], "turn": counted({"usage": [50_600, 600]}, {"usage": [50_900, 300]})}
    assert usage_of(user.turn(scenario, "--resume", "0a").completed().outcome) == 900


def test_a_replay_that_is_late_does_not_count_as_ours(user: User) -> None:
    late = {"usage": [50_000, 4000], "turn": "OLD"}
    scenario = {"known_threads": ["0a"], "turn": counted(late, {"usage": [50_600, 600]})}
    assert usage_of(user.turn(scenario, "--resume", "0a").completed().outcome) == 600


def test_a_compaction_that_repeats_the_total_adds_nothing(user: User) -> None:
    ran = user.turn(counted({"usage": [240, 120]}, {"usage": [240, 13_954]}, {"usage": [300, 60]})).completed()
    assert usage_of(ran.outcome) == 300


def test_cached_and_reasoning_tokens_are_parts_and_never_counted_twice(user: User) -> None:
    tokens = {"inputTokens": 1000, "cachedInputTokens": 800, "outputTokens": 50, "reasoningOutputTokens": 20}
    ran = user.turn(counted({"usage": [tokens, None]})).completed()
    assert ran.outcome["usage"] == {
        "input_tokens": 1000,
        "cached_input_tokens": 800,
        "cache_write_input_tokens": 0,
        "output_tokens": 50,
        "reasoning_output_tokens": 20,
        "total_tokens": 1050,
    }
    assert "1850" not in json.dumps(ran.outcome["usage"])


def test_a_turn_without_usage_has_none_and_not_zero(user: User) -> None:
    ran = user.turn(ANSWER).completed()
    assert ran.outcome["usage"] is None
    assert ran.outcome["child_usage"] is None


def test_tokens_of_sub_agents_are_told_apart(user: User) -> None:
    ran = user.turn(counted({"usage": [240, 120], "thread": "C", "turn": "c"}, {"usage": [360, 120]})).completed()
    assert usage_of(ran.outcome) == 360
    assert ran.outcome["child_usage"]["total_tokens"] == 120


def test_a_failed_turn_still_says_what_it_used(user: User) -> None:
    ran = user.turn([*START, {"usage": [70, 70]}, {"done": "failed", "error": {"message": "x"}}])
    assert (ran.code, usage_of(ran.outcome)) == (1, 70)


@pytest.mark.rule("rule.limits")
def test_a_limit_of_tokens_ends_a_turn_that_only_spends(user: User) -> None:
    spends = [{"usage": [n * 100, 100]} for n in range(1, 6)]
    ran = user.turn([*START, *spends, {"stall": True}], "--max-tokens", "450", "--grace", "2")
    ran.ended_as("interrupted", "token_limit", 8)
    assert usage_of(ran.outcome) == 500
    assert ran.outcome["confirmed"] is True


@pytest.mark.rule("rule.limits")
def test_tokens_of_sub_agents_count_against_the_limit(user: User) -> None:
    child = {"usage": [500, 500], "thread": "C", "turn": "c"}
    ran = user.turn([*START, child, {"stall": True}], "--max-tokens", "450")
    ran.ended_as("interrupted", "token_limit", 8)
