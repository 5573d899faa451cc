"""Codex's failures as kinds: kind first, status second, text last. Serves rule.errorKinds."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.codex.errors import classify

pytestmark = pytest.mark.rule("rule.errorKinds")

INFOS: dict[str, str] = {
    "serverOverloaded": "capacity", "flexUnavailable": "capacity", "policyCapacityUnavailable": "capacity",
    "internalServerError": "capacity", "rateLimitExceeded": "rate-limit", "usageLimitExceeded": "quota",
    "sessionBudgetExceeded": "quota", "unauthorized": "auth", "contextWindowExceeded": "other",
    "modelNotFound": "other", "badRequest": "other", "cyberPolicy": "other", "bioPolicy": "other",
    "misalignmentPolicyViolation": "other", "tooManyDenials": "other", "threadRollbackFailed": "other",
    "sandboxError": "other", "inferenceHookDenied": "other",
}  # fmt: skip
MISLEADING = "rate limit: 401 unauthorized, at capacity, usage_limit"
STATUSES = {
    401: "auth", 402: "quota", 403: "auth", 404: "other", 413: "other", 418: "other", 429: "rate-limit",
    500: "capacity", 502: "capacity", 503: "capacity", 504: "capacity", 529: "capacity",
}  # fmt: skip
OBJECTS = (
    "httpConnectionFailed",
    "responseStreamConnectionFailed",
    "responseStreamDisconnected",
    "responseTooManyFailedAttempts",
)
TEXTS = {
    "Selected model is at capacity. Please try a different model.": "capacity",
    "server_is_overloaded": "capacity",
    "We\u2019re currently experiencing high demand": "capacity",
    "Rate limit reached for gpt": "rate-limit",
    "Too Many Requests": "rate-limit",
    "insufficient_quota": "quota",
    "You've hit your usage_limit": "quota",
    "Missing environment variable: `KEY`": "auth",
    "Your refresh token was already used": "auth",
    "You are not logged in": "auth",
    "the model is not supported when using Codex with a ChatGPT account; please sign in": "other",
    "something else went wrong": "other",
    "": "other",
}


@pytest.mark.parametrize(("info", "kind"), INFOS.items())
def test_the_kind_of_the_protocol_outweighs_any_text(info: str, kind: str) -> None:
    error = classify(info, MISLEADING)
    assert (error.kind, error.message, error.codex_error_info) == (kind, MISLEADING, info)


@pytest.mark.parametrize("name", OBJECTS)
@pytest.mark.parametrize(("status", "kind"), STATUSES.items())
def test_a_status_decides_where_the_kind_does_not(name: str, status: int, kind: str) -> None:
    error = classify({name: {"httpStatusCode": status}}, "x")
    assert (error.kind, error.http_status) == (kind, status)


@pytest.mark.parametrize(("text", "kind"), TEXTS.items())
@pytest.mark.parametrize("info", [None, "other"])
def test_the_text_decides_where_nothing_else_does(info: str | None, text: str, kind: str) -> None:
    assert classify(info, text).kind == kind
    assert classify(info, "", details=text).kind == kind


@pytest.mark.parametrize(
    "info",
    [
        5,
        [],
        {},
        {"x": 5},
        {"x": None},
        {"": {}},
        {"x": {"httpStatusCode": "429"}},
        True,
        {"x": {"httpStatusCode": None}},
    ],
)
def test_any_shape_of_tomorrow_is_kept_and_is_other(info: Any) -> None:
    error = classify(info, "boom")
    assert (error.kind, error.message, error.codex_error_info) == ("other", "boom", info)
    assert error.reason


def test_a_reason_is_one_word_and_stable() -> None:
    assert classify("usageLimitExceeded", "x").reason == "usage_limit_exceeded"
    assert classify("contextWindowExceeded", "x").reason == "context_window"
    assert classify("other", "x").reason == classify(None, "x").reason == "codex_error"


def test_there_is_always_a_message() -> None:
    assert classify(None, " ", details="why").message == "why"
    assert classify(None, "").message


@pytest.mark.parametrize(
    ("info", "kept"), [("usageLimitExceeded", 9), ("rateLimitExceeded", 9), ("serverOverloaded", None)]
)
def test_a_time_to_come_back_is_kept_where_waiting_helps(info: str, kept: int | None) -> None:
    assert classify(info, "x", retry_at=9).retry_at == kept
