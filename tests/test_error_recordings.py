"""Every failure that was provoked on the real Codex, as recorded: its kind, its reason and the exit code of `run`.

Serves rule.errorKinds and rule.exitCodes. Facts: section 11 of the notes on Codex 0.171.
"""

from __future__ import annotations

import pytest
from peer import by, converse
from recordings import Replay, names, recording

from adapters.contract import Limits
from sidecar.outcome import Timing, of_ending

OTHER, CAPACITY, RATE, QUOTA, AUTH = ("other", 1), ("capacity", 6), ("rate-limit", 5), ("quota", 4), ("auth", 3)
# recording -> (kind, exit code), reason
TABLE: dict[str, tuple[tuple[str, int], str]] = {
    "conn_drop": (OTHER, "codex_error"),
    "default_429_rate": (RATE, "response_too_many_failed_attempts"),
    "default_500": (CAPACITY, "internal_server_error"),
    "default_503_overloaded": (CAPACITY, "server_overloaded"),
    "default_failed_overloaded": (CAPACITY, "server_overloaded"),
    "default_failed_rate_limit": (RATE, "rate_limit_exceeded"),
    "default_failed_server_error": (OTHER, "codex_error"),
    "default_stream_cut": (OTHER, "codex_error"),
    "default_usage": (QUOTA, "usage_limit_exceeded"),
    "error_event": (OTHER, "codex_error"),
    "failed_bio_policy": (OTHER, "bio_policy"),
    "failed_context_length_exceeded": (OTHER, "context_window"),
    "failed_cyber_policy": (OTHER, "cyber_policy"),
    "failed_flex_unavailable": (CAPACITY, "flex_unavailable"),
    "failed_insufficient_quota": (QUOTA, "usage_limit_exceeded"),
    "failed_invalid_prompt": (OTHER, "codex_error"),
    "failed_model_not_found": (OTHER, "model_not_found"),
    "failed_policy_capacity_unavailable": (CAPACITY, "policy_capacity_unavailable"),
    "failed_rate_limit_exceeded": (RATE, "rate_limit_exceeded"),
    "failed_server_error": (OTHER, "codex_error"),
    "failed_server_is_overloaded": (CAPACITY, "server_overloaded"),
    "failed_slow_down": (RATE, "rate_limit_exceeded"),
    "failed_usage_limit_reached": (QUOTA, "codex_error"),
    "failed_usage_not_included": (QUOTA, "usage_limit_exceeded"),
    "failed_whatever": (OTHER, "codex_error"),
    "http400": (OTHER, "codex_error"),
    "http400_ctx": (OTHER, "context_window"),
    "http400_plain": (OTHER, "codex_error"),
    "http401": (AUTH, "http_connection_failed"),
    "http402": (QUOTA, "http_connection_failed"),
    "http403": (AUTH, "http_connection_failed"),
    "http404": (OTHER, "model_not_found"),
    "http413": (OTHER, "http_connection_failed"),
    "http429_empty": (RATE, "response_too_many_failed_attempts"),
    "http429_quota": (QUOTA, "usage_limit_exceeded"),
    "http429_rate": (RATE, "response_too_many_failed_attempts"),
    "http429_usage_limit": (QUOTA, "usage_limit_exceeded"),
    "http429_usage_not_included": (QUOTA, "usage_limit_exceeded"),
    "http500": (CAPACITY, "internal_server_error"),
    "http502_html": (CAPACITY, "http_connection_failed"),
    "http503": (CAPACITY, "http_connection_failed"),
    "http503_overloaded": (CAPACITY, "server_overloaded"),
    "http503_slow": (RATE, "rate_limit_exceeded"),
    "http529": (CAPACITY, "http_connection_failed"),
    "incomplete_filter": (OTHER, "codex_error"),
    "incomplete_max": (OTHER, "codex_error"),
    "stream_cut": (OTHER, "codex_error"),
    "stream_cut_before_item": (OTHER, "codex_error"),
}


def test_every_recorded_failure_is_in_the_table() -> None:
    assert {name.removeprefix("errors/") for name in names("errors")} == {*TABLE, "refused"}


@pytest.mark.rule("rule.boundedAlways")
async def test_retries_for_ever_are_no_progress_and_end_at_the_idle_limit() -> None:
    codex = Replay(recording("errors/refused"))
    ending = await converse(codex, limits=Limits(start_s=60.0, grace_s=0.1, idle_s=0.2))
    assert ending.error is not None
    assert (ending.status, ending.error.reason, ending.confirmed) == ("interrupted", "idle_timeout", False)
    assert codex.asked("turn/interrupt")


@pytest.mark.rule("rule.errorKinds")
@pytest.mark.rule("rule.exitCodes")
@pytest.mark.parametrize("name", TABLE)
async def test_a_recorded_failure_has_its_kind_its_reason_and_its_exit_code(name: str) -> None:
    codex = Replay(recording(f"errors/{name}"), cut=by(1009))
    ending = await converse(codex)
    (kind, code), reason = TABLE[name]
    assert ending.error is not None
    assert (ending.status, ending.error.kind, ending.error.reason) == ("failed", kind, reason)
    assert ending.final_text == ""
    assert ending.confirmed is True
    assert ending.error.message.strip()
    outcome = of_ending(ending, job="j", timing=Timing(), processes_ended=0, signal=None, warnings=())
    assert outcome.exit_code == code
    assert len(codex.asked("turn/start")) == 1, "nothing is tried again"


@pytest.mark.rule("rule.errorKinds")
async def test_the_message_of_a_failure_is_that_of_codex() -> None:
    ending = await converse(Replay(recording("errors/http429_usage_limit")))
    assert ending.error is not None
    last = [e["msg"] for e in recording("errors/http429_usage_limit") if e["msg"].get("method") == "turn/completed"]
    assert ending.error.message == last[0]["params"]["turn"]["error"]["message"]
