"""PreToolUse hook of the plugin's own tools: what one of its agents calls is allowed, and carries the agent's id.

Owns: that one decision; for everybody else it says nothing, and Claude Code asks as it always does.
The id lets the server keep one thread of Codex for each agent. Standard library only. Serves rule.identityIsThread.
"""

from __future__ import annotations

import json
import sys
from typing import Any

TOOL_OF = {"cc-agents:gpt": "run", "cc-agents:gpt-writer": "write", "cc-agents:gpt-reviewer": "review"}


def decision(call: dict[str, Any]) -> dict[str, Any] | None:
    """What the hook prints for this call, or None."""
    tool = TOOL_OF.get(str(call.get("agent_type")))
    if tool is None or call.get("tool_name") != "mcp__plugin_cc-agents_gpt__" + tool or not call.get("agent_id"):
        return None
    return {
        "hookEventName": "PreToolUse",
        "permissionDecision": "allow",
        "permissionDecisionReason": "an agent of cc-agents calls its own tool",
        "updatedInput": {**call.get("tool_input", {}), "agent": call["agent_id"]},
    }


if __name__ == "__main__":
    decided = decision(json.load(sys.stdin))
    if decided is not None:
        json.dump({"hookSpecificOutput": decided}, sys.stdout)
