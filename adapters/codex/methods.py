"""The methods of `codex app-server` by name: what the server may ask and how it is declined, what nobody reads.

Owns two tables. tests_live/test_schema.py compares them with the schema that the installed codex prints.
Shapes: codex-facts section 4. Serves rule.approvalsNever.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.jsonrpc import Refusal

_LEGACY_DENIAL = {"decision": {"denied": {"rejection": "cc-agents runs every turn without approvals"}}}

SERVER_REQUESTS: Mapping[str, Refusal] = {
    "item/commandExecution/requestApproval": Refusal(result={"decision": "decline"}),
    "item/fileChange/requestApproval": Refusal(result={"decision": "decline"}),
    "item/tool/requestUserInput": Refusal(result={"answers": {}}),
    "mcpServer/elicitation/request": Refusal(result={"action": "decline"}),
    "item/permissions/requestApproval": Refusal(result={"permissions": {}}),
    "item/tool/call": Refusal(result={"contentItems": [], "success": False}),
    "account/chatgptAuthTokens/refresh": Refusal(error="cc-agents holds no tokens"),
    "attestation/generate": Refusal(error="cc-agents attests nothing"),
    "applyPatchApproval": Refusal(result=_LEGACY_DENIAL),
    "execCommandApproval": Refusal(result=_LEGACY_DENIAL),
}

# Answered quickly and never read here; without them a turn's traffic is smaller.
UNREAD_NOTIFICATIONS = (
    "remoteControl/status/changed",
    "skills/changed",
    "app/list/updated",
    "turn/diff/updated",
    "item/fileChange/outputDelta",
    "item/fileChange/patchUpdated",
    "thread/readState/changed",
    "thread/name/updated",
)


def refusal_for(method: str) -> Refusal:
    """The refusal of one server request; what the table doesn't know gets an error, never silence."""
    return SERVER_REQUESTS.get(method) or Refusal(error=f"cc-agents does not answer {method}")


def subject_of(params: Mapping[str, Any]) -> str:
    """What a server request is about, in a few words: a command, a tool, a reason."""
    for name in ("command", "tool", "message", "reason", "serverName"):
        value = params.get(name)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, list) and value:
            return " ".join(map(str, value))
    return ""
