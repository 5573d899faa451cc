"""What Codex asks of us in a turn is declined in the right shape, under its own id, and told.

Serves rule.approvalsNever. The table against the schema of the real Codex: tests_live.
"""

from __future__ import annotations

from typing import Any

import pytest
from turns import ANSWER, START, User

pytestmark = pytest.mark.rule("rule.approvalsNever")

END = ANSWER[1:]
REJECTED = {"rejection": "cc-agents runs every turn without approvals"}
SHAPES: dict[str, tuple[dict[str, Any], str]] = {
    "item/commandExecution/requestApproval": ({"decision": "decline"}, "git push"),
    "item/fileChange/requestApproval": ({"decision": "decline"}, ""),
    "item/permissions/requestApproval": ({"permissions": {}}, ""),
    "item/tool/requestUserInput": ({"answers": {}}, ""),
    "mcpServer/elicitation/request": ({"action": "decline"}, "May I?"),
    "item/tool/call": ({"contentItems": [], "success": False}, "lookup"),
    "applyPatchApproval": ({"decision": {"denied": REJECTED}}, ""),
    "execCommandApproval": ({"decision": {"denied": REJECTED}}, "git push"),
}
PARAMS: dict[str, dict[str, Any]] = {
    "item/commandExecution/requestApproval": {"command": "git push"},
    "mcpServer/elicitation/request": {"serverName": "notes", "message": "May I?"},
    "item/tool/call": {"tool": "lookup"},
    "execCommandApproval": {"command": ["git", "push"]},
}


def test_each_request_is_declined_in_its_own_shape_and_the_turn_goes_on(user: User) -> None:
    asks = [
        {"ask": {"method": m, "params": PARAMS.get(m, {}), "expect_result": shape}} for m, (shape, _) in SHAPES.items()
    ]
    ran = user.turn([*START, *asks, *END]).completed()
    assert [(d["method"], d["subject"]) for d in ran.outcome["declined"]] == [(m, s) for m, (_, s) in SHAPES.items()]
    assert [a["result"] for a in user.logged("answer")] == [shape for shape, _ in SHAPES.values()]


def test_what_was_declined_is_a_line_on_stderr(user: User) -> None:
    ask = {"method": "item/commandExecution/requestApproval", "params": {"command": "git push"}}
    ran = user.turn([*START, {"ask": ask}, *END]).completed()
    assert "declined: item/commandExecution/requestApproval git push" in ran.err


@pytest.mark.parametrize("ident", [0, "0"], ids=repr)
def test_an_id_goes_back_as_it_came(user: User, ident: int | str) -> None:
    ask = {"method": "item/fileChange/requestApproval", "id": ident, "expect_result": {"decision": "decline"}}
    user.turn([*START, {"ask": ask}, *END]).completed()
    (answer,) = user.logged("answer")
    assert (answer["id"], type(answer["id"])) == (ident, type(ident))


@pytest.mark.parametrize("method", ["future/x/request", "account/chatgptAuthTokens/refresh", "attestation/generate"])
def test_what_we_cannot_do_gets_an_error_at_once_and_is_counted(user: User, method: str) -> None:
    ran = user.turn([*START, {"ask": {"method": method}}, *END]).completed()
    (answer,) = user.logged("answer")
    assert answer["error"]["code"] == -32601
    assert [d["method"] for d in ran.outcome["declined"]] == [method]


def test_a_request_while_the_thread_is_opened_is_declined_too(user: User) -> None:
    ask = {"ask": {"method": "mcpServer/elicitation/request", "expect_result": {"action": "decline"}}}
    scenario = {"on": {"thread/start": [ask, {"reply": {"default": True}}]}, "turn": ANSWER}
    ran = user.turn(scenario).completed()
    assert len(ran.outcome["declined"]) == 1


def test_a_flood_of_requests_is_answered_each_and_kept_in_part(user: User) -> None:
    asks = {"repeat": {"times": 250, "steps": [{"ask": {"method": "item/fileChange/requestApproval"}}]}}
    ran = user.turn([*START, asks, *END]).completed()
    assert len(user.logged("answer")) == 250
    assert len(ran.outcome["declined"]) == 100
    assert any("150 more declined" in w for w in ran.outcome["warnings"])
