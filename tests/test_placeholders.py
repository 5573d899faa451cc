"""What Codex's sandbox leaves behind is removed, and nothing else. Serves rule.leavesNothing."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest
from turns import ANSWER, User

from adapters.codex.placeholders import missing, remove

pytestmark = pytest.mark.rule("rule.leavesNothing")


@pytest.fixture
def register(tmp_path: Path) -> Path:
    folder = tmp_path / "tmp" / f"codex-bwrap-synthetic-mount-targets-{os.geteuid()}"
    (folder / "0123456789abcdef").mkdir(parents=True)
    (folder / "lock").touch()
    return folder


def tidy(tmp_path: Path, *paths: str) -> set[str]:
    remove(paths, {"TMPDIR": str(tmp_path / "tmp")})
    return {os.path.basename(path) for path in paths if os.path.lexists(path)}


def test_only_what_was_missing_counts(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    found = missing([str(tmp_path)], [str(tmp_path / ".claude.json")])
    assert {os.path.basename(p) for p in found} == {".codex", ".agents", ".aws", ".claude.json"}


def test_empty_folders_and_empty_read_only_files_are_removed_and_no_others(tmp_path: Path) -> None:
    for name in (".git", ".codex"):
        (tmp_path / name).mkdir()
    (tmp_path / ".codex" / "config.toml").touch()
    for name, mode in ((".claude", 0o444), (".claude.json", 0o644)):
        (tmp_path / name).touch(mode=mode)
    (tmp_path / ".agents").symlink_to(tmp_path)
    names = (".git", ".codex", ".claude", ".claude.json", ".agents", "gone")
    assert tidy(tmp_path, *(str(tmp_path / n) for n in names)) == {".codex", ".claude.json", ".agents"}


def test_nothing_is_removed_while_another_sandbox_is_up(tmp_path: Path, register: Path) -> None:
    path = tmp_path / ".git"
    path.mkdir()
    marker = register / "0123456789abcdef" / str(os.getpid())
    marker.touch()
    assert tidy(tmp_path, str(path)) == {".git"}
    marker.rename(marker.with_name("999999999"))  # no pid is as high
    assert tidy(tmp_path, str(path)) == set()


def test_nothing_is_removed_while_another_codex_sets_one_up(tmp_path: Path, register: Path) -> None:
    path = tmp_path / ".git"
    path.mkdir()
    with open(register / "lock", "rb+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert tidy(tmp_path, str(path)) == {".git"}
    assert tidy(tmp_path, str(path)) == set()


def test_a_write_turn_leaves_its_directory_as_it_was(user: User) -> None:
    shim = user.plays(ANSWER)
    user.codex_is(f'mkdir .git .codex; echo x > .codex/config.toml; exec "{shim}" "$@"')
    user.run("run", "--json", "--mode", "write", "--", "do it").completed()
    assert [path.name for path in user.work.iterdir()] == [".codex"]
