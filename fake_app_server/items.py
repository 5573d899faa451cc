"""Items, turns, usage and errors with every field that Codex 0.171 sends.

Owns: the shapes, taken from recordings of the real one. Does not own: when they are sent (steps).
Serves spec:cc-agents.fakes.
"""

from __future__ import annotations

import shlex
from typing import Any

from fake_app_server.wire import new_id, now_ms

Item = dict[str, Any]

USAGE_FIELDS = (
    "totalTokens",
    "inputTokens",
    "cachedInputTokens",
    "cacheWriteInputTokens",
    "outputTokens",
    "reasoningOutputTokens",
)
MESSAGES = {
    "usageLimitExceeded": "You\u2019ve hit your usage limit. Try again at 9:13 AM.",
    "serverOverloaded": "Selected model is at capacity. Please try a different model.",
    "rateLimitExceeded": "rate limit exceeded: slow down",
    "contextWindowExceeded": "Codex ran out of room in the model's context window.",
    "internalServerError": "We\u2019re currently experiencing high demand, which may cause temporary errors.",
    "unauthorized": "unauthorized",
    "modelNotFound": "The model does not exist or you do not have access to it.",
}
RETRY_MESSAGE = "Reconnecting... 1/5"


def timed(item: Item) -> Item:
    return {**item, "startedAtMs": now_ms(), "completedAtMs": None}


def ended(item: Item) -> Item:
    return {**item, "completedAtMs": now_ms()}


def user_message(content: list[Any]) -> Item:
    texts = [{"text_elements": [], **part} if part.get("type") == "text" else part for part in content]
    return timed({"type": "userMessage", "id": new_id(), "clientId": None, "content": texts})


def agent_message(text: str, phase: str | None, **given: Any) -> Item:
    item = {
        "type": "agentMessage",
        "moderation": None,
        "id": f"msg_{new_id()}",
        "text": text,
        "phase": phase,
        "memoryCitation": None,
        "delivery": None,
        "questions": None,
    }
    return timed({**item, **given})


def command(run: str, cwd: str, process: int) -> Item:
    return timed(
        {
            "type": "commandExecution",
            "id": f"exec-{new_id()}",
            "pluginId": None,
            "scriptPath": None,
            "command": f"/bin/bash -lc {shlex.quote(run)}",
            "cwd": cwd,
            "processId": str(process),
            "source": "unifiedExecStartup",
            "status": "inProgress",
            "commandActions": [{"type": "unknown", "command": run}],
            "aggregatedOutput": None,
            "exitCode": None,
            "durationMs": None,
        }
    )


def usage(tokens: int | dict[str, Any]) -> dict[str, int]:
    """A bare number counts as input, so that sums and differences stay exact in every field."""
    given = {"inputTokens": tokens} if isinstance(tokens, int) else tokens
    found = {field: int(given.get(field, 0)) for field in USAGE_FIELDS}
    if "totalTokens" not in given:
        found["totalTokens"] = found["inputTokens"] + found["outputTokens"]
    return found


def turn_error(given: Any, kind: Any = None) -> Item:
    """The `error` of a turn: from a message, or from some of its fields."""
    fields = {"message": given} if isinstance(given, str) else dict(given or {})
    kind = fields.get("codexErrorInfo", kind if kind is not None else "other")
    if isinstance(kind, str):
        default = MESSAGES.get(kind, f"the scripted turn failed: {kind}")
    else:
        default = f"the scripted turn failed: {next(iter(kind or ()), '')}"
    return {
        "message": default,
        "codexErrorInfo": kind,
        "additionalDetails": None,
        "misalignment": None,
        **fields,
    }


def answer_of(items: list[Item]) -> Item | None:
    """The one item of turn/completed: the last final answer, or else the last message without a phase."""
    messages = [i for i in items if i.get("type") == "agentMessage" and i.get("delivery") is None]
    for phase in ("final_answer", None):
        found = [i for i in messages if i.get("phase") == phase]
        if found:
            return found[-1]
    return None


RATE_LIMITS = {
    "limitId": "codex",
    "limitName": None,
    "normalModelSlug": None,
    "primary": None,
    "secondary": None,
    "credits": None,
    "individualLimit": None,
    "spendControlReached": None,
    "planType": None,
    "rateLimitReachedType": None,
}
