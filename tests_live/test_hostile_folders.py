"""What decides about later turns stays read-only, on the real sandbox: in its place, and by what lies above it."""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest

from tests_live import hostile
from tests_live.homes import Home, write_config
from tests_live.hostile import SIGN_IN, outcome_of
from tests_live.responses_api import ScriptedModel, run_command, say

LATER = (
    ".codex/rules/x.rules", ".codex/config.toml", ".config/cc-agents/config.toml", ".local/state/cc-agents/jobs/x",
    ".claude/settings.json", ".claude.json", "run/cc-agents/x",
)  # fmt: skip


@pytest.fixture
def at_home(home: Home, model: ScriptedModel) -> Home:
    """Everything of a user below their home directory, as it is by default."""
    below = home.home
    made = {"codex_home": ".codex", "config": ".config", "state": ".local/state", "runtime": "run", "work": "."}
    for folder in (".codex", ".config/cc-agents", ".local/state", ".claude", "run", "code"):
        (below / folder).mkdir(parents=True, mode=0o700, exist_ok=True)
    (below / "run").chmod(0o700)
    moved = dataclasses.replace(home, **{name: (below / path).resolve() for name, path in made.items()})
    (below / ".claude.json").write_text("{}")
    write_config(moved, model.base_url)
    return moved


def write_all(home: Home) -> str:
    """Tries to make each of LATER: in its place, and by moving what it lies in out of the way."""
    lines = [
        f"mkdir -p {os.path.dirname(p) or '.'} 2>/dev/null; echo turn > {p} 2>/dev/null" for p in (*LATER, "notes.txt")
    ]
    lines += [
        f"mv {top} {top}-old 2>/dev/null && mkdir -p {top}/cc-agents && echo turn > {top}/cc-agents/config.toml"
        for top in (".config", ".local", ".claude", ".codex", "run", ".local/state")
    ]
    return "\n".join([f"cd {home.home}", *lines, "true"])


def made_by_the_turn(home: Home) -> set[str]:
    found = set()
    for folder, _, files in os.walk(home.home):
        for name in files:
            path = Path(folder, name)
            if path.stat().st_size == 5 and path.read_text() == "turn\n":
                found.add(str(path.relative_to(home.home)))
    return found


@pytest.mark.rule("rule.futureTurnsProtected")
@pytest.mark.parametrize("without", [None, "kept", "pins"], ids=["kept", "none is kept", "the way to it is not pinned"])
@pytest.mark.parametrize("signed_in", [True, False], ids=["signed in", "with a key"])
def test_a_write_turn_in_the_home_directory_can_not_decide_about_later_turns(
    codex: str, at_home: Home, model: ScriptedModel, without: str | None, signed_in: bool
) -> None:
    if signed_in:
        (at_home.codex_home / "auth.json").write_text(json.dumps({"OPENAI_API_KEY": SIGN_IN}))
    elif without is not None:
        pytest.skip("the same mounts")
    model.extend(run_command(write_all(at_home)), say("done"))
    ran = hostile.cc_agents(at_home, codex, "run", "--json", "--mode", "write", "go", without=without, cwd=at_home.home)
    made = made_by_the_turn(at_home)
    assert "notes.txt" in made
    if without is None:  # else our own state may have been moved away under us
        assert outcome_of(ran)["status"] == "completed", outcome_of(ran)
        assert made == {"notes.txt"}
    else:
        assert ".config/cc-agents/config.toml" in made


@pytest.mark.rule("rule.futureTurnsProtected")
@pytest.mark.parametrize("without", [None, "kept"], ids=["kept", "taken out"])
def test_what_is_missing_of_them_can_not_be_made(
    codex: str, at_home: Home, model: ScriptedModel, without: str | None
) -> None:
    (at_home.home / ".claude.json").unlink()
    (at_home.home / ".claude").rmdir()
    (at_home.home / ".config" / "cc-agents").rmdir()
    model.extend(run_command(write_all(at_home)), say("done"))
    ran = hostile.cc_agents(at_home, codex, "run", "--json", "--mode", "write", "go", without=without, cwd=at_home.home)
    assert without is not None or outcome_of(ran)["status"] == "completed", outcome_of(ran)
    made = made_by_the_turn(at_home)
    assert (made == {"notes.txt"}) is (without is None), made


@pytest.mark.rule("rule.futureTurnsProtected")
@pytest.mark.parametrize("without", [None, "tmpdir+kept"], ids=["replaced", "taken out"])
def test_a_tmpdir_that_holds_codexs_home_does_not_make_it_writable(
    codex: str, home: Home, model: ScriptedModel, without: str | None
) -> None:
    write_config(home, model.base_url)
    (home.codex_home / "auth.json").write_text("{}")
    model.extend(run_command(f"echo x > {home.codex_home}/more; echo x > $TMPDIR/here; true"), say("done"))
    env = {"TMPDIR": str(home.codex_home)}
    ran = hostile.cc_agents(home, codex, "run", "--json", "--mode", "write", "go", without=without, env=env)
    assert outcome_of(ran)["status"] == "completed", outcome_of(ran)
    assert (home.codex_home / "more").exists() is (without is not None)
    Path("/tmp/here").unlink(missing_ok=True)


@pytest.mark.rule("rule.futureTurnsProtected")
def test_a_codex_home_behind_a_link_works_and_is_denied_all_the_same(
    codex: str, home: Home, model: ScriptedModel
) -> None:
    write_config(home, model.base_url)
    (home.codex_home / "auth.json").write_text(json.dumps({"OPENAI_API_KEY": SIGN_IN}))
    real = home.codex_home.rename(home.root / "elsewhere")
    home.codex_home.symlink_to(real)
    model.extend(run_command(f"cat {home.codex_home}/auth.json {real}/auth.json; echo x > {real}/more"), say("done"))
    ran = hostile.cc_agents(home, codex, "run", "--json", "--mode", "write", "go")
    assert outcome_of(ran)["status"] == "completed", outcome_of(ran)
    assert SIGN_IN not in json.dumps(model.requests[1].body)
    assert not (real / "more").exists()


@pytest.mark.rule("rule.directories")
def test_a_link_named_codex_in_the_project_is_refused_by_name_before_codex_starts(
    codex: str, home: Home, model: ScriptedModel
) -> None:
    write_config(home, model.base_url)
    (home.work / ".codex").symlink_to(home.root)
    ran = hostile.cc_agents(home, codex, "run", "--json", "--mode", "write", "go", cwd=home.work)
    assert (ran.returncode, outcome_of(ran)["job"]) == (2, None)
    assert str(home.work / ".codex") in outcome_of(ran)["error"]["message"]
    model.extend(run_command("true"), say("done"))
    ran = hostile.cc_agents(
        home, codex, "run", "--json", "--mode", "write", "go", without="refused_folders", cwd=home.work
    )
    told = outcome_of(ran)["status"] == "refused" or "crosses writable symlink" in json.dumps(model.requests[-1].body)
    assert told, "then Codex's sandbox can hold it by now"
    model.drop_rest()


@pytest.mark.rule("rule.directories")
def test_a_commit_in_a_linked_worktree_works_with_the_words_of_the_warning(
    codex: str, home: Home, model: ScriptedModel
) -> None:
    git = "git -c user.name=a -c user.email=a@b"
    script = (
        f"git init -q 'main repo' && cd 'main repo' && {git} commit -q --allow-empty -m x && git worktree add -q ../wt"
    )
    subprocess.run(["sh", "-ec", script], cwd=home.root, check=True, env=home.environ(), capture_output=True)
    write_config(home, model.base_url)
    worktree = home.root / "wt"
    commit = run_command(f"cd {worktree} && echo x > f && git add f && {git} commit -qm two")

    def turn(*words: str) -> list[str]:
        model.extend(commit, say("done"))
        ran = hostile.cc_agents(home, codex, "run", "--json", "--mode", "write", *words, "go", cwd=worktree)
        warnings: list[str] = outcome_of(ran)["warnings"]
        return [w for w in warnings if "worktree" in w]

    (warning,) = turn()
    assert not (home.root / "main repo" / ".git" / "refs" / "heads" / "two").exists()
    assert count_commits(worktree) == 1
    assert turn(*shlex.split(warning.partition("configuration: ")[2])) == []
    assert count_commits(worktree) == 2


def count_commits(folder: Path) -> int:
    listed = subprocess.run(["git", "rev-list", "HEAD"], cwd=folder, check=True, capture_output=True)
    return len(listed.stdout.splitlines())


@pytest.mark.rule("rule.leavesNothing")
def test_write_turns_leave_their_directory_as_it_was(codex: str, home: Home, model: ScriptedModel) -> None:
    """0.171 leaves empty folders after every other turn; three are enough to see it nearly always."""
    write_config(home, model.base_url)
    for _ in range(3):
        model.extend(run_command("true"), say("done"))
        ran = hostile.cc_agents(home, codex, "run", "--json", "--mode", "write", "go", cwd=home.work)
        assert outcome_of(ran)["status"] == "completed", outcome_of(ran)
        assert os.listdir(home.work) == []
