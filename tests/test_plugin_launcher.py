"""Finding the cc-agents command from inside the plugin, and a reader that goes.

Serves spec:cc-agents.claude-code, rule.cliFound and rule.nothingLeaks."""

from __future__ import annotations

import io
import json
import os
import subprocess

import pytest
from plugin_server import DATA, PLUGIN, install_command, launch
from turns import ANSWER, SILENCE, User, ended, living, wait_for

from sidecar import deadlines
from sidecar.views import render
from sidecar.views.render import EventsView

cli_found = pytest.mark.rule("rule.cliFound")


@cli_found
def test_it_becomes_the_command_on_path_with_the_same_words_and_streams(user: User) -> None:
    install_command(user)
    user.plays(ANSWER)
    ran = launch(user, "run", "--", "go")
    assert (ran.returncode, ran.stdout) == (0, "ANSWER")


@cli_found
def test_where_there_is_none_it_says_how_to_install_it_and_never_finds_itself(user: User) -> None:
    user.env["PATH"] = f"{PLUGIN / 'bin'}:/usr/bin:/bin"  # as in a shell of Claude Code
    ran = subprocess.run(["cc-agents", "run", "go"], env=user.env, cwd=user.work, capture_output=True, check=False)
    assert ran.returncode == 2
    assert b"/cc-agents:setup install" in ran.stderr


@cli_found
def test_setup_says_at_once_what_else_is_missing(user: User) -> None:
    install_command(user).unlink()
    del user.env["CC_AGENTS_CODEX_BIN"]
    found = user.root / "path" / "codex"
    ran = launch(user, "plugin-setup")
    assert (ran.returncode, ran.stdout.split(".")[0]) == (2, "Codex: not on PATH")
    assert "/cc-agents:setup install" in ran.stderr
    found.touch(0o755)
    assert launch(user, "plugin-setup").stdout == f"Codex: {found}\n"


@cli_found
@pytest.mark.parametrize("said", ["cc-agents 9.0.0", "cc-agents 0.9.3"])
def test_another_version_is_refused_and_both_are_named(user: User, said: str) -> None:
    path = install_command(user, said)
    ran = launch(user, "run", "go")
    assert ran.returncode == 2
    assert all(words in ran.stderr for words in (said.split()[1], "0.1.0", str(path)))


@cli_found
def test_another_program_of_that_name_is_refused(user: User) -> None:
    install_command(user, "agents for everybody")
    assert "is another program" in launch(user, "status").stderr


@cli_found
def test_the_option_wins_over_path_and_one_that_cannot_run_is_named(user: User) -> None:
    named = install_command(user)
    install = user.root / "mine"
    named.rename(install)
    install_command(user, "cc-agents 9.0.0")
    user.env["CLAUDE_PLUGIN_OPTION_CLI"] = str(install)
    assert launch(user, "--version").stdout.startswith("cc-agents ")
    user.env["CLAUDE_PLUGIN_OPTION_CLI"] = "/nowhere/cc-agents"
    assert "/nowhere/cc-agents, which can't be run" in launch(user, "--version").stderr


@cli_found
def test_what_setup_made_wins_over_path_also_in_a_shell_that_knows_no_data_folder(user: User) -> None:
    made = install_command(user)
    data = user.home / ".claude" / "plugins" / "data" / "cc-agents-market"
    place = data / "cli-0.1.0" / "bin" / "cc-agents"
    place.parent.mkdir(parents=True)
    made.rename(place)
    install_command(user, "cc-agents 9.0.0")
    del user.env["CLAUDE_PLUGIN_DATA"]
    assert launch(user, "--version").stdout.startswith("cc-agents ")


@cli_found
def test_setup_installs_only_from_our_own_source(user: User) -> None:
    install_command(user)
    foreign = user.root / "foreign"
    foreign.mkdir()
    (foreign / "pyproject.toml").write_text('[project]\nname = "cc-agents-of-somebody"\n')
    ran = launch(user, "plugin-setup", "install", str(foreign))
    assert ran.returncode == 2
    assert str(foreign) in ran.stderr
    assert not (user.root / DATA).exists()


# --- a reader that goes -----------------------------------------------------------------------------------------


@pytest.mark.rule("rule.nothingLeaks")
def test_an_attended_turn_ends_when_nobody_can_read_its_events_any_more(user: User) -> None:
    user.plays(SILENCE)
    reading, writing = os.pipe()
    process = user.start("run", "--events", "--attended", "--", "go", stdout=writing, stderr=subprocess.DEVNULL)
    os.close(writing)
    with ended(process):
        wait_for(lambda: user.asked("turn/start"))
        os.close(reading)  # as the kernel does for one that was killed with -9
        assert process.wait(deadlines.GRACE_S + deadlines.GUARD_S) == 129
        assert not living(f"{user.root}/")
    record = json.loads((user.jobs()[0] / "record.json").read_text())
    assert record["outcome"]["error"]["message"] == "nobody reads the events any more"


@pytest.mark.rule("rule.nothingLeaks")
def test_a_turn_that_nobody_attends_goes_on_without_a_reader(user: User) -> None:
    go = user.root / "go"
    user.plays([*SILENCE[:1], {"wait": {"file": str(go)}}, *ANSWER[1:]])
    reading, writing = os.pipe()
    process = user.start("run", "--events", "--", "go", stdout=writing, stderr=subprocess.DEVNULL)
    os.close(writing)
    with ended(process):
        wait_for(lambda: user.asked("turn/start"))
        os.close(reading)
        go.touch()
        process.wait()
    assert json.loads((user.jobs()[0] / "record.json").read_text())["status"] == "completed"


@pytest.mark.rule("rule.escStops")
def test_an_attended_turn_says_that_it_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "ALIVE_S", 0.0)
    reading, writing = os.pipe()
    monkeypatch.setattr(render, "STDOUT", writing)
    view = EventsView({}, quiet=True, attended=True)
    view.screen.write(writing, b"")  # its thread starts with the first word
    with io.FileIO(reading) as pipe:
        assert json.loads(pipe.readline())["event"] == "alive"
        assert view.screen.finish(deadlines.SCREEN_FLUSH_S)
        os.close(writing)
