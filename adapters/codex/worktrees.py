"""A linked git worktree: its git directory lies elsewhere, and a commit in write mode fails there.

Owns: finding that directory and the words of the warning. Runs no git. Serves rule.directories.
"""

from __future__ import annotations

import os
import shlex

from adapters.codex.folders import Folders
from adapters.contract import AgentRequest


def outside(request: AgentRequest, folders: Folders) -> tuple[str, ...]:
    """A warning in write mode, where the git directory is not among the writable folders."""
    if request.mode != "write":
        return ()
    writable = (os.path.realpath(request.cwd), *folders.roots)
    missing = [git for git in git_dirs(request.cwd) if git not in writable]
    if not missing:
        return ()
    words = " ".join(f"--add-dir {shlex.quote(git)}" for git in missing)
    return (
        f"{request.cwd} is in a linked git worktree, whose git directory lies elsewhere and is not writable: a commit "
        f"fails. To allow it, and with it git's hooks and configuration: {words}",
    )


def git_dirs(cwd: str) -> tuple[str, ...]:
    """Of a linked worktree around `cwd`: the git directory that all share, and its own; () where it isn't linked."""
    folder = cwd
    while not os.path.lexists(os.path.join(folder, ".git")):
        if folder == os.path.dirname(folder):
            return ()
        folder = os.path.dirname(folder)
    named = _word(os.path.join(folder, ".git"), "gitdir: ")
    if named is None:
        return ()
    own = os.path.realpath(os.path.join(folder, named))
    shared = os.path.realpath(os.path.join(own, _word(os.path.join(own, "commondir"), "") or ""))
    return tuple(dict.fromkeys((shared, own)))


def _word(path: str, head: str) -> str | None:
    """What follows `head` on the first line of a small file; None if it is no such file."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            line = file.readline().rstrip("\n")
    except OSError:
        return None
    return line.removeprefix(head) if line.startswith(head) else None
