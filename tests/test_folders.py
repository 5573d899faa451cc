"""Which folders a write turn may write and which not. Serves rule.futureTurnsProtected, rule.extraWritableFolders.

That the mounts hold is shown on the real sandbox: tests_live/test_hostile_config.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from peer import request

from adapters.codex import folders
from adapters.codex.binary import Binary, parts
from adapters.codex.folders import Folders, lay_out, links_of
from adapters.contract import Mode

KEPT = (".codex", ".claude", ".claude.json", ".config/cc-agents", ".local/state/cc-agents")


class Machine:
    """A home with everything in it that decides about later turns; the lists of the request are as ours make them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root / "home"
        self.work = root / "work"
        self.runtime = root / "run" / "cc-agents"
        for folder in (self.home, self.work, self.runtime, *(self.home / k for k in KEPT if not k.endswith("json"))):
            folder.mkdir(parents=True)
        for file in (self.home / ".claude.json", self.home / ".codex" / "auth.json"):
            file.write_text("{}")

    def lay_out(self, mode: Mode = "write", env: Mapping[str, str] | None = None, **fields: Any) -> Folders:
        named = [str(self.home / k) for k in KEPT[1:]]
        fields = {"cwd": str(self.work), "protected": (*named, str(self.runtime)), **fields}
        given = request(mode=mode, private=(str(self.runtime),), **fields)
        environ = {"HOME": str(self.home), "TMPDIR": str(self.root / "tmp"), **(env or {})}
        (self.root / "tmp").mkdir(exist_ok=True)
        return lay_out(given, environ, codex_home=str(self.home / ".codex"))


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """/tmp is another folder here: the tests' own lies below it."""
    slash_tmp = tmp_path / "slash-tmp"
    slash_tmp.mkdir()
    monkeypatch.setattr(folders, "SLASH_TMP", str(slash_tmp))
    return Machine(tmp_path)


def messages(found: Folders) -> str:
    return "\n".join(p.message for p in found.problems)


@pytest.mark.rule("rule.futureTurnsProtected")
def test_a_project_of_its_own_needs_nothing_kept(machine: Machine) -> None:
    found = machine.lay_out()
    assert (found.roots, found.pinned, found.read_only, found.problems, found.warnings) == ((), (), (), (), ())


@pytest.mark.rule("rule.execRulesClosed")
@pytest.mark.parametrize("mode", ["read-only", "write"])
def test_the_sign_in_and_our_sockets_are_denied(machine: Machine, mode: Mode) -> None:
    assert machine.lay_out(mode).denied == (str(machine.home / ".codex" / "auth.json"), str(machine.runtime))


def test_yolo_has_no_folders_at_all(machine: Machine) -> None:
    assert machine.lay_out("yolo", cwd=str(machine.home)) == Folders()


@pytest.mark.rule("rule.futureTurnsProtected")
def test_in_the_home_directory_all_of_it_is_kept_and_the_way_to_it_is_pinned(machine: Machine) -> None:
    found = machine.lay_out(cwd=str(machine.home))
    assert set(found.read_only) == {str(machine.home / k) for k in KEPT}
    way = (".config", ".local", ".local/state")
    assert set(found.pinned) == {str(machine.home / w) for w in way}, "else it is renamed, and made anew"
    assert found.problems == ()


@pytest.mark.rule("rule.futureTurnsProtected")
def test_of_what_is_missing_the_first_part_is_kept(machine: Machine) -> None:
    (machine.home / ".config" / "cc-agents").rmdir()
    (machine.home / ".config").rmdir()
    (machine.home / ".claude.json").unlink()
    found = machine.lay_out(cwd=str(machine.home))
    assert {str(machine.home / ".config"), str(machine.home / ".claude.json")} <= set(found.read_only)
    assert str(machine.home / ".config") not in found.pinned


@pytest.mark.rule("rule.futureTurnsProtected")
def test_a_sign_in_that_is_missing_is_not_denied_where_its_folder_is_kept(machine: Machine) -> None:
    (machine.home / ".codex" / "auth.json").unlink()
    assert machine.lay_out(cwd=str(machine.home)).denied == (str(machine.runtime),)
    assert str(machine.home / ".codex" / "auth.json") in machine.lay_out().denied


@pytest.mark.rule("rule.futureTurnsProtected")
@pytest.mark.parametrize("folder", [".codex", ".codex/sub", ".claude", ".config/cc-agents"])
@pytest.mark.parametrize("field", ["cwd", "add_dirs", "writable_dirs"])
def test_a_writable_folder_inside_of_it_is_refused(machine: Machine, folder: str, field: str) -> None:
    path = machine.home / folder
    path.mkdir(exist_ok=True)
    found = machine.lay_out(**{field: str(path) if field == "cwd" else (str(path),)})
    assert str(path) in messages(found)
    assert "later turns" in messages(found)
    assert machine.lay_out("read-only", cwd=str(path)).problems == ()


@pytest.mark.rule("rule.futureTurnsProtected")
def test_a_link_that_the_turn_could_replace_is_refused(machine: Machine) -> None:
    (machine.home / ".claude").rename(machine.root / "dotfiles")
    (machine.home / ".claude").symlink_to(machine.root / "dotfiles")
    assert str(machine.home / ".claude") in messages(machine.lay_out(cwd=str(machine.home)))
    assert machine.lay_out().problems == ()


@pytest.mark.rule("rule.futureTurnsProtected")
def test_a_link_further_down_is_kept_with_its_folder(machine: Machine) -> None:
    (machine.home / ".config" / "cc-agents").rmdir()
    (machine.home / "dotfiles").mkdir()
    (machine.home / ".config" / "cc-agents").symlink_to(machine.home / "dotfiles")
    found = machine.lay_out(cwd=str(machine.home))
    assert found.problems == ()
    assert {str(machine.home / ".config"), str(machine.home / "dotfiles")} <= set(found.read_only)


@pytest.mark.rule("rule.futureTurnsProtected")
def test_a_configuration_that_is_linked_into_a_writable_folder_is_kept_there(machine: Machine) -> None:
    dotfiles = machine.root / "dotfiles"
    (dotfiles / "codex").mkdir(parents=True)
    (dotfiles / "codex" / "config.toml").touch()
    (machine.home / ".codex" / "config.toml").symlink_to(dotfiles / "codex" / "config.toml")
    found = machine.lay_out(cwd=str(dotfiles))
    assert found.read_only == (str(dotfiles / "codex" / "config.toml"),)
    assert found.pinned == (str(dotfiles / "codex"),)


@pytest.mark.rule("rule.futureTurnsProtected")
def test_of_a_project_what_claude_code_loads_is_kept_unless_it_was_stated(machine: Machine) -> None:
    (machine.work / ".claude").mkdir()
    (machine.work / ".mcp.json").touch()
    kept = {str(machine.work / ".claude"), str(machine.work / ".mcp.json")}
    assert set(machine.lay_out().read_only) == kept
    stated = machine.lay_out(add_dirs=(str(machine.work / ".claude"),))
    assert set(stated.read_only) == {str(machine.work / ".mcp.json")}
    assert stated.problems == ()


@pytest.mark.rule("rule.futureTurnsProtected")
def test_a_link_of_the_project_is_told(machine: Machine) -> None:
    (machine.work / ".claude").symlink_to(machine.root)
    found = machine.lay_out()
    assert (found.problems, found.read_only) == ((), ())
    assert str(machine.work / ".claude") in found.warnings[0]


@pytest.mark.rule("rule.directories")
@pytest.mark.parametrize("name", [".git", ".codex", ".agents"])
def test_a_link_that_makes_codexs_sandbox_refuse_is_refused_by_name(machine: Machine, name: str) -> None:
    (machine.work / name).symlink_to(machine.root / "gone")
    assert str(machine.work / name) in messages(machine.lay_out())
    assert machine.lay_out("read-only").problems == ()


@pytest.mark.rule("rule.directories")
def test_the_whole_file_system_is_no_writable_folder(machine: Machine) -> None:
    assert "--mode yolo" in messages(machine.lay_out(cwd="/"))
    assert "--mode yolo" in messages(machine.lay_out(add_dirs=("/",)))
    assert machine.lay_out("read-only", cwd="/").problems == ()


@pytest.mark.rule("rule.extraWritableFolders")
def test_an_added_folder_may_hold_the_directory_or_lie_in_it(machine: Machine) -> None:
    assert machine.lay_out(add_dirs=(str(machine.root),)).roots == (str(machine.root),)
    (machine.work / "sub").mkdir()
    assert machine.lay_out(add_dirs=(str(machine.work / "sub"), str(machine.work))).roots == (
        str(machine.work / "sub"),
    )


@pytest.mark.rule("rule.futureTurnsProtected")
def test_an_added_folder_that_holds_codexs_home_keeps_it(machine: Machine) -> None:
    found = machine.lay_out(add_dirs=(str(machine.root),))
    assert str(machine.home / ".codex") in found.read_only
    assert str(machine.home) in found.pinned


@pytest.mark.rule("rule.futureTurnsProtected")
@pytest.mark.parametrize(
    "place", ["/", "HOME", "HOME/.codex", "HOME/.codex/tmp", "ROOT", "HOME/gone", "relative", "HOME/.claude.json"]
)
def test_a_tmpdir_that_is_no_temporary_folder_is_replaced_and_told(machine: Machine, place: str) -> None:
    (machine.home / ".codex" / "tmp").mkdir()
    named = place.replace("HOME", str(machine.home)).replace("ROOT", str(machine.root))
    found = machine.lay_out(env={"TMPDIR": named})
    assert found.tmpdir == folders.SLASH_TMP
    assert "TMPDIR" in found.warnings[0]


@pytest.mark.rule("rule.profileTellsAll")
def test_a_tmpdir_of_its_own_and_one_that_is_not_set_are_left_alone(machine: Machine) -> None:
    assert machine.lay_out().tmpdir is None
    assert machine.lay_out(env={"TMPDIR": ""}).tmpdir is None
    assert machine.lay_out(env={"TMPDIR": folders.SLASH_TMP}).tmpdir is None
    assert machine.lay_out("read-only", env={"TMPDIR": str(machine.home)}).tmpdir is None


def test_links_are_found_by_the_real_folder_they_lie_in(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").symlink_to("a")
    (tmp_path / "a" / "c").symlink_to("../b/d")
    (tmp_path / "a" / "d").mkdir()
    found = links_of(str(tmp_path / "b" / "c" / "e"))
    assert found == [str(tmp_path / p) for p in ("b", "a/c", "b")]
    (tmp_path / "round").symlink_to("round")
    assert len(links_of(str(tmp_path / "round"))) == folders.MAX_LINKS


@pytest.mark.rule("rule.futureTurnsProtected")
def test_of_a_plain_codex_the_file_is_kept_and_of_npms_the_packages(machine: Machine) -> None:
    plain = Binary(path=str(machine.home / "codex"), command=str(machine.home / "codex"))
    given = request(mode="write", cwd=str(machine.home), private=(str(machine.runtime),))
    kept = lay_out(given, {"HOME": str(machine.home)}, codex_home=str(machine.home / ".codex"), codex=parts(plain))
    assert kept.problems == ()
    assert str(machine.home / "codex") in kept.read_only
    vendor = machine.home / "lib" / "codex-linux-x64" / "vendor" / "triple"
    shim = str(machine.home / "lib" / "codex" / "bin" / "codex.js")
    npms = Binary(path=str(vendor / "bin" / "codex"), command="/usr/bin/codex", shim=shim)
    assert parts(npms) == ("/usr/bin/codex", str(machine.home / "lib" / "codex"), str(vendor))
