"""Codex's failures as kinds: the protocol's own error kind first, the HTTP status second, the message last.

Owns the classification. Does not own exit codes. Serves rule.errorKinds; facts: codex-facts section 11.
"""

from __future__ import annotations

import re
from typing import Any

from adapters.contract import Kind, TurnError

KIND_OF_INFO: dict[str, Kind] = {
    "serverOverloaded": "capacity",
    "flexUnavailable": "capacity",
    "policyCapacityUnavailable": "capacity",
    "internalServerError": "capacity",
    "rateLimitExceeded": "rate-limit",
    "usageLimitExceeded": "quota",
    "sessionBudgetExceeded": "quota",
    "unauthorized": "auth",
    # these are certain too: no text may turn them into something else
    "contextWindowExceeded": "other",
    "modelNotFound": "other",
    "badRequest": "other",
    "cyberPolicy": "other",
    "bioPolicy": "other",
    "misalignmentPolicyViolation": "other",
    "tooManyDenials": "other",
    "threadRollbackFailed": "other",
    "sandboxError": "other",
    "inferenceHookDenied": "other",
    "activeTurnNotSteerable": "other",
}

KIND_OF_STATUS: dict[int, Kind] = {
    401: "auth",
    403: "auth",
    402: "quota",
    429: "rate-limit",
    500: "capacity",
    502: "capacity",
    503: "capacity",
    504: "capacity",
    529: "capacity",
}

# Only for errors that the protocol calls "other" or names no kind for; the first match counts.
KIND_OF_TEXT: tuple[tuple[re.Pattern[str], Kind], ...] = (
    # an account without access to a model is not an account that is signed out
    (re.compile(r"model is not supported when using Codex with", re.I), "other"),
    (
        re.compile(r"refresh token|not (?:logged|signed) in|please (?:log|sign) in|401 unauthorized", re.I),
        "auth",
    ),
    (re.compile(r"missing environment variable|invalid api key|incorrect api key", re.I), "auth"),
    (re.compile(r"usage[_ ]limit|insufficient_quota|quota exceeded|billing", re.I), "quota"),
    (re.compile(r"rate[_ ]limit|too many requests|slow_down", re.I), "rate-limit"),
    (re.compile(r"at capacity|server_is_overloaded|overloaded|high demand", re.I), "capacity"),
)

REASON_OF_INFO = {"contextWindowExceeded": "context_window"}


# Codex opens its databases before it answers anything, and gives up when another start has them: exit 1 with this.
BUSY_START = ("failed to initialize sqlite state runtime", "failed to initialize state runtime", "database is locked")


def is_busy_start(message: str) -> bool:
    return any(text in message for text in BUSY_START)


def classify(info: Any, message: str, *, details: str | None = None, retry_at: int | None = None) -> TurnError:
    """A TurnError for a Codex error.

    `info` is codexErrorInfo as it came: None, a string, or an object with one key whose value may hold
    httpStatusCode. Unknown strings and objects are kept and decided by status and text.
    """
    name, status = _name_and_status(info)
    kind = KIND_OF_INFO.get(name)
    if kind is None and status is not None:
        kind = KIND_OF_STATUS.get(status)
    if kind is None:
        kind = _by_text(f"{message}\n{details or ''}")
    text = message.strip() or (details or "").strip() or "Codex reported an error without a message"
    return TurnError(
        kind=kind,
        reason=REASON_OF_INFO.get(name) or _snake(name) or "codex_error",
        message=text,
        codex_error_info=info,
        http_status=status,
        retry_at=retry_at if kind in ("quota", "rate-limit") else None,
    )


def _name_and_status(info: Any) -> tuple[str, int | None]:
    if isinstance(info, str):
        return ("", None) if info == "other" else (info, None)
    if isinstance(info, dict) and info:
        name, value = next(iter(info.items()))
        status = value.get("httpStatusCode") if isinstance(value, dict) else None
        return str(name), status if isinstance(status, int) else None
    return "", None


def _by_text(text: str) -> Kind:
    for pattern, kind in KIND_OF_TEXT:
        if pattern.search(text):
            return kind
    return "other"


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
