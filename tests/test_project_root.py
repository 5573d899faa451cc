"""When Codex is spared the search for a project's root, and when it isn't."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from turns import ANSWER, User

from adapters.codex import project_root

pytestmark = pytest.mark.rule("rule.projectInstructions")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    assert not any((above / ".git").exists() for above in (tmp_path, *tmp_path.parents))
    made = tmp_path / "shop"
    (made / ".git").mkdir(parents=True)
    (made / "web").mkdir()
    return made


def test_the_search_ends_in_a_directory_that_holds_the_marker(repository: Path) -> None:
    assert project_root.is_cwd(str(repository), [])


def test_a_worktrees_marker_is_a_file(repository: Path) -> None:
    (repository / ".git").rmdir()
    (repository / ".git").write_text("gitdir: /elsewhere\n")
    assert project_root.is_cwd(str(repository), [])


def test_below_a_root_codex_searches_itself(repository: Path) -> None:
    assert not project_root.is_cwd(str(repository / "web"), [])


def test_without_any_marker_above_the_directory_is_all_there_is(repository: Path) -> None:
    assert project_root.is_cwd(str(repository.parent), [])


@pytest.mark.parametrize("markers", [[".hg"], [".git"], []])
def test_markers_of_the_users_own_are_left_to_codex(repository: Path, markers: list[str]) -> None:
    assert not project_root.is_cwd(
        str(repository), [{"name": {"type": "user"}, "config": {"project_root_markers": markers}}]
    )


def test_where_it_cannot_be_told_codex_searches_itself(repository: Path) -> None:
    (repository / ".git").rmdir()
    (repository / ".git").symlink_to(".git")  # leads to itself
    with pytest.raises(OSError, match="symbolic links"):
        os.stat(repository / ".git")
    assert not project_root.is_cwd(str(repository), [])


@pytest.mark.parametrize(("mode", "said"), [("read-only", True), ("write", True), ("yolo", False)])
def test_a_thread_is_told_only_where_the_search_costs(user: User, mode: str, said: bool) -> None:
    user.plays(ANSWER)
    assert user.run("run", "--mode", mode, "go").code == 0
    config: dict[str, Any] = user.asked("thread/start")[0]["config"]
    assert ("project_root_markers" in config) is said
    assert config.get("project_root_markers", []) == []
