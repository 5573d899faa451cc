"""A mode as a permission profile, and the comparison with what Codex answers. Serves rule.modes and rule.readBack."""

from __future__ import annotations

from typing import Any

import pytest
from peer import opened, request

from adapters.codex.folders import Folders, lay_out
from adapters.codex.modes import Access, access_of, differences, thread_params
from adapters.contract import MODES, Mode

HOME = {"HOME": "/home/a"}


def access(mode: Mode = "read-only", folders: Folders | None = None, **fields: Any) -> Access:
    given = request(mode=mode, **fields)
    return access_of(given, folders or lay_out(given, HOME, codex_home="/home/a/.codex"), profile="p-1")


def asked(given: Access) -> dict[str, Any]:
    return {**thread_params(given, {}), "model": "m"}


@pytest.mark.rule("rule.execRulesClosed")
@pytest.mark.parametrize("mode", ["read-only", "write"])
def test_a_sandboxed_mode_is_a_profile_with_a_denied_path_and_never_a_sandbox(mode: Mode) -> None:
    params = asked(access(mode))
    assert "sandbox" not in params
    files = params["config"]["permissions"]["p-1"]["filesystem"]
    assert files["/home/a/.codex/auth.json"] == "deny"
    assert params["config"]["default_permissions"] == "p-1"


@pytest.mark.rule("rule.futureTurnsProtected")
def test_what_is_kept_is_read_what_lies_on_the_way_is_write_and_a_denied_path_wins() -> None:
    folders = Folders(roots=("/r",), pinned=("/r/way",), read_only=("/r/way/kept", "/run/x"), denied=("/run/x",))
    files = asked(access("write", folders))["config"]["permissions"]["p-1"]["filesystem"]
    kinds = {"/r": "write", "/r/way": "write", "/r/way/kept": "read", "/run/x": "deny"}
    assert {path: files[path] for path in kinds} == kinds


@pytest.mark.rule("rule.modes")
def test_the_network_is_off_unless_asked_for_or_yolo() -> None:
    assert [access(m).network for m in MODES] == [False, False, True]
    assert [access(m, network=True).network for m in MODES] == [True, True, True]


@pytest.mark.rule("rule.readBack")
@pytest.mark.parametrize("network", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_an_answer_that_says_what_was_asked_has_no_difference(mode: Mode, network: bool) -> None:
    folders = Folders(roots=("/srv/lib",), pinned=("/srv/lib/way",), denied=("/x",)) if mode == "write" else None
    given = access(mode, folders, network=network)
    assert differences(given, "m", opened(asked(given))) == []


@pytest.mark.rule("rule.readBack")
@pytest.mark.parametrize("mode", MODES)
def test_commands_that_would_run_elsewhere_are_a_difference_in_a_sandbox(mode: Mode) -> None:
    given = access(mode)
    answer = opened(asked(given))
    for named in ([{"environmentId": "local"}, {"environmentId": "devbox"}], [{"environmentId": "remote"}], [5], 5, []):
        found = differences(given, "m", {**answer, "thread": {"id": "T", "environments": named}})
        assert bool(found) is (mode != "yolo"), (named, found)
    alone = {**answer, "thread": {"id": "T", "environments": [{"environmentId": "local", "cwd": "/"}]}}
    assert differences(given, "m", alone) == []


FIELDS = ("sandbox", "approvalPolicy", "activePermissionProfile", "cwd", "model")
ODD: list[Any] = [
    None,
    5,
    True,
    "",
    "x",
    [],
    ["x"],
    {},
    {"type": 5},
    {"id": None},
    {"type": "dangerFullAccess", "writableRoots": [5]},
]


@pytest.mark.rule("rule.readBack")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("field", FIELDS)
def test_anything_else_in_a_field_is_a_difference_and_never_an_exception(mode: Mode, field: str) -> None:
    given = access(mode)
    answer = opened(asked(given))
    for odd in ODD:
        found = differences(given, "m", {**answer, field: odd})
        holds = mode == "yolo" and (field == "activePermissionProfile" or (field == "sandbox" and odd == ODD[-1]))
        assert bool(found) is not holds, (field, odd, found)
    without = {k: v for k, v in answer.items() if k != field}
    assert bool(differences(given, "m", without)) is not (mode == "yolo" and field == "activePermissionProfile")


@pytest.mark.rule("rule.readBack")
def test_every_difference_is_said_at_once() -> None:
    assert len(differences(access("write"), "m", {})) == 7
