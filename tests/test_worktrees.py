"""A linked worktree in write mode: the warning has the exact words that mend it. Serves rule.directories."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from peer import request

from adapters.codex.folders import Folders
from adapters.codex.worktrees import git_dirs, outside
from adapters.contract import Mode

pytestmark = pytest.mark.rule("rule.directories")


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """A worktree as git makes it; its repository lies in a folder whose name needs quotes."""
    own = tmp_path / "the repo" / ".git" / "worktrees" / "wt"
    own.mkdir(parents=True)
    (own / "commondir").write_text("../..\n")
    worktree = tmp_path / "wt"
    (worktree / "deep" / "er").mkdir(parents=True)
    (worktree / ".git").write_text(f"gitdir: {own}\n")
    return worktree


def said(cwd: Path, mode: Mode = "write", **folders: Any) -> str:
    return "".join(outside(request(mode=mode, cwd=str(cwd)), Folders(**folders)))


def test_both_git_directories_are_named_in_words_that_can_be_pasted(linked: Path) -> None:
    shared = linked.parent / "the repo" / ".git"
    for cwd in (linked, linked / "deep" / "er"):
        assert said(cwd).endswith(f"--add-dir '{shared}' --add-dir '{shared}/worktrees/wt'")


def test_only_what_is_missing_is_offered_and_nothing_outside_of_write_mode(linked: Path) -> None:
    shared = str(linked.parent / "the repo" / ".git")
    assert said(linked, roots=(shared,)).endswith(f": --add-dir '{shared}/worktrees/wt'")
    assert said(linked, roots=(shared, f"{shared}/worktrees/wt")) == ""
    assert said(linked, "read-only") == said(linked, "yolo") == ""


def test_a_repository_of_its_own_a_submodule_and_no_repository_are_told_apart(tmp_path: Path, linked: Path) -> None:
    assert git_dirs(str(tmp_path)) == ()
    (tmp_path / "plain" / ".git").mkdir(parents=True)
    assert git_dirs(str(tmp_path / "plain")) == ()
    module = tmp_path / "plain" / "sub"
    module.mkdir()
    (module / ".git").write_text("gitdir: ../.git/modules/sub\n")
    assert git_dirs(str(module)) == (str(tmp_path / "plain" / ".git" / "modules" / "sub"),)
    (module / ".git").write_text("something else")
    assert git_dirs(str(module)) == ()
