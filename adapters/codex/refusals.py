"""Why there is no turn, as an end and in words for its author. Owns those words; does not own who decides."""

from __future__ import annotations

import json

from adapters.codex.watch import End
from adapters.contract import Kind, Problem, TurnError
from adapters.jsonrpc import RpcError

KIND_OF_REASON: dict[str, Kind] = {"not_signed_in": "auth"}


def refusal(problems: list[Problem]) -> End:
    reason = problems[0].reason
    error = TurnError(
        kind=KIND_OF_REASON.get(reason, "other"), reason=reason, message="\n".join(p.message for p in problems)
    )
    return End(status="refused", error=error)


def thread_problem(error: RpcError, thread: str | None) -> Problem:
    text = error.message
    if thread is not None and ("no rollout found" in text or "invalid session id" in text):
        return Problem(reason="thread_unknown", message=f"Codex knows no thread {thread}: {text}")
    if "already has an active writer" in text:
        return Problem(reason="thread_busy", message=f"thread {thread} is in use by another process: {text}")
    return Problem(reason="codex_refused", message=f"Codex refused {json.dumps(error.method)[1:-1]}: {text}")
