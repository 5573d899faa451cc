"""A mode as a permission profile, and the comparison with what Codex answers. Serves rule.modes and rule.readBack."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from peer import opened, request

from adapters.codex.modes import Access, access_of, differences, layers_that_say, thread_params
from adapters.contract import MODES, Mode


def access(mode: Mode = "read-only", **fields: Any) -> Access:
    return access_of(request(mode=mode, **fields), codex_home="/home/a/.codex", profile="p-1")


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
def test_what_decides_about_later_turns_stays_read_only_below_a_writable_folder() -> None:
    given = access("write", cwd="/home/a", protected=("/home/a/.config/cc-agents", "/home/a/.claude"))
    files = asked(given)["config"]["permissions"]["p-1"]["filesystem"]
    for path in ("/home/a/.codex", "/home/a/.config/cc-agents", "/home/a/.claude"):
        assert files[path] == "read"


@pytest.mark.rule("rule.extraWritableFolders")
def test_added_and_extra_folders_are_roots_in_write_mode_alone(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    folders = {"add_dirs": (str(tmp_path / "link"),), "writable_dirs": ("/srv/data", str(tmp_path / "real"))}
    assert access("write", **folders).roots == (str(tmp_path / "real"), "/srv/data")
    assert access("read-only", **folders).roots == access("yolo", **folders).roots == ()
    assert access("write", add_dirs=("/",), cwd="/").roots == ()


@pytest.mark.rule("rule.modes")
def test_the_network_is_off_unless_asked_for_or_yolo() -> None:
    assert [access(m).network for m in MODES] == [False, False, True]
    assert [access(m, network=True).network for m in MODES] == [True, True, True]


@pytest.mark.rule("rule.readBack")
@pytest.mark.parametrize("network", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_an_answer_that_says_what_was_asked_has_no_difference(mode: Mode, network: bool) -> None:
    given = access(mode, network=network, add_dirs=("/srv/lib",))
    assert differences(given, "m", opened(asked(given))) == []


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


@pytest.mark.rule("rule.readBack")
def test_layers_are_named_by_kind_and_file_and_ours_is_left_out() -> None:
    layers: list[dict[str, Any]] = [
        {"name": {"type": "sessionFlags"}, "config": {"sandbox_mode": "x"}},
        {"name": {"type": "user", "file": "/c.toml"}, "config": {"sandbox_mode": "x", "model": "m", "tui": {}}},
        {"name": {"type": "project", "dotCodexFolder": "/p/.codex"}, "config": {"approval_policy": None}},
        {"name": "odd", "config": {"permissions": {}}},
        {"name": None, "config": 5},
        {},
    ]
    assert layers_that_say(layers) == ["user /c.toml: sandbox_mode, model", "odd: permissions"]
