"""`cc-agents doctor` on a machine of its own: a line for each link of the chain, and an exit code. Serves rule.doctor.

The real sandbox: tests_live/test_doctor.py. Here a script stands for `codex sandbox`.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from turns import User, one_page

pytestmark = pytest.mark.rule("rule.doctor")

HELD = "echo held"


def codex(user: User, sandbox: str = HELD, scenario: Any = None) -> None:
    """The fake app-server, and a script for everything else that codex can do."""
    shim = user.plays(scenario)
    user.codex_is(f'case "$1" in sandbox) {sandbox} ;; *) exec "{shim}" "$@" ;; esac')


def look(user: User, *words: str) -> tuple[int, dict[str, list[dict[str, str]]]]:
    """The exit code, and the findings by their name."""
    ran = user.run("doctor", "--json", *words)
    said = ran.outcome
    assert said["ok"] is (ran.code == 0), one_page(said)
    found: dict[str, list[dict[str, str]]] = {}
    for finding in said["findings"]:
        assert set(finding) == {"level", "name", "text", "todo"}
        found.setdefault(finding["name"], []).append(finding)
    return ran.code, found


def failures(found: dict[str, list[dict[str, str]]]) -> set[str]:
    return {name for name, lines in found.items() if any(line["level"] == "failure" for line in lines)}


def test_a_machine_on_which_all_is_well_has_a_line_for_each_link(user: User) -> None:
    codex(user, scenario={"config": {"mcp_servers": {"notes": {"command": "x"}}}})
    code, found = look(user)
    assert (code, failures(found)) == (0, set()), one_page(found)
    names = {"option", "state", "runtime", "codex", "codex home", "codex answers", "write mode", "signed in", "model"}
    assert names | {"switched off", "sandbox", "slots", "orphans"} == set(found)
    assert "mcp_servers.notes" in found["switched off"][0]["text"]
    assert str(user.root / "codex.sh") in found["codex"][0]["text"]
    assert user.methods().count("thread/start") == 0
    assert user.run("doctor").out.decode().splitlines()[-1] == "Ready for turns."


def test_the_last_line_says_that_turns_cannot_be_run_and_why(user: User) -> None:
    user.env["CC_AGENTS_CODEX_BIN"] = "/nowhere/codex"
    ran = user.run("doctor")
    assert (ran.code, ran.out.decode().splitlines()[-1].split(":")[0]) == (1, "Not ready")
    assert "codex" in ran.out.decode().splitlines()[-1]


def test_each_option_is_told_with_its_value_and_its_source(user: User) -> None:
    codex(user)
    user.env["CC_AGENTS_MODEL"] = "gpt-5.5"
    _, found = look(user)
    told = {line["text"] for line in found["option"]}
    assert "model = gpt-5.5 (CC_AGENTS_MODEL)" in told
    assert "timeout = 1800 s (default)" in told


def test_a_line_for_people_has_level_name_words_and_what_to_do(user: User) -> None:
    codex(user, sandbox="exit 3")
    ran = user.run("doctor")
    *lines, empty, last = ran.out.decode().splitlines()
    assert (ran.code, empty, last) == (1, "", "Not ready: sandbox.")
    assert all(line.split()[0] in ("ok", "warning", "failure") for line in lines)
    (line,) = [line for line in lines if line.startswith("failure")]
    assert line.split()[1] == "sandbox"
    assert " -> " in line


@pytest.mark.parametrize(
    ("sandbox", "said"),
    [
        ("echo made; echo held", "could write"),
        ("echo read; echo held", "read the sign-in"),
        ("echo 'bwrap: no permissions' >&2; exit 1", "bwrap: no permissions"),
        ("exit 2", "exit code 2"),
    ],
)
def test_a_sandbox_that_does_not_hold_is_a_failure(user: User, sandbox: str, said: str) -> None:
    codex(user, sandbox=sandbox)
    code, found = look(user)
    assert (code, failures(found)) == (1, {"sandbox"})
    assert said in found["sandbox"][0]["text"]


def test_what_the_trial_makes_is_removed(user: User) -> None:
    codex(user, sandbox='while [ "$1" != sh ]; do shift; done; : > "$2"; echo made; echo held')
    assert look(user)[0] == 1
    assert not [p for p in (user.root / "state" / "cc-agents").iterdir() if p.name.startswith("doctor")]


def test_a_machine_without_codex_is_told_how_to_get_it(user: User) -> None:
    user.env["CC_AGENTS_CODEX_BIN"] = str(user.root / "gone")
    code, found = look(user)
    assert code == 1
    assert "npm install" in found["codex"][0]["text"]
    assert "slots" in found, "the rest is looked at all the same"


def test_a_codex_that_is_too_old_is_a_failure_with_the_command_that_updates_it(user: User) -> None:
    codex(user, scenario={"version": "0.144.0"})
    code, found = look(user)
    assert (code, failures(found)) == (1, {"codex_too_old"})
    assert "0.144.0" in found["codex_too_old"][0]["text"]
    assert "npm install -g @openai/codex@latest" in found["codex_too_old"][0]["text"]


def test_a_newer_codex_is_a_warning(user: User) -> None:
    codex(user, scenario={"version": "9.0.0"})
    code, found = look(user)
    assert code == 0
    assert [line for line in found["codex"] if line["level"] == "warning" and "9.0.0" in line["text"]]


def test_a_codex_that_is_not_signed_in_is_a_failure(user: User) -> None:
    codex(user, scenario={"account": {"account": None, "requiresOpenaiAuth": True}})
    code, found = look(user)
    assert (code, failures(found)) == (1, {"not_signed_in"})
    assert "signed in" not in found


def test_a_configuration_that_does_not_load_is_told_in_codexs_own_words(user: User) -> None:
    user.codex_is("echo 'Error loading config.toml:150:77: missing escaped value' >&2; exit 1")
    code, found = look(user)
    assert code == 1
    assert "config.toml:150:77: missing escaped value" in found["codex answers"][0]["text"]


def test_an_option_that_is_wrong_is_a_failure_and_the_rest_is_looked_at(user: User) -> None:
    codex(user)
    user.env["CC_AGENTS_TIMEOUT"] = "soon"
    code, found = look(user)
    assert (code, failures(found)) == (1, {"options"})
    assert "sandbox" in found


def test_a_link_that_makes_codexs_sandbox_refuse_is_told_by_name(user: User) -> None:
    codex(user)
    (user.work / ".codex").symlink_to(user.root)
    code, found = look(user)
    assert code == 0, "read-only works"
    assert str(user.work / ".codex") in found["project"][0]["text"]
    assert found["write mode"][0]["level"] == "warning"


def test_managed_configuration_that_outranks_a_switch_is_a_failure(user: User) -> None:
    name = {"type": "legacyManagedConfigTomlFromFile", "file": "/etc/codex/managed_config.toml"}
    layers = [{"name": name, "config": {"notify": ["x"]}}, {"name": {"type": "sessionFlags"}, "config": {}}]
    codex(user, scenario={"layers": layers})
    code, found = look(user)
    assert (code, failures(found)) == (1, {"mode_not_enforced"})


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_state_folder_that_can_not_be_written_is_a_failure(user: User) -> None:
    codex(user)
    (user.root / "state").mkdir(mode=stat.S_IRUSR | stat.S_IXUSR)
    assert "state" in failures(look(user)[1])


def test_a_state_folder_that_is_a_file_is_a_failure(user: User) -> None:
    codex(user)
    (user.root / "state").write_text("")
    assert "state" in failures(look(user)[1])


def test_a_turn_that_runs_is_told_with_its_slot(user: User) -> None:
    with user.running([{"start": True}, {"stall": True}]):
        while not user.logged("recv") or "turn/start" not in user.methods():
            pass
        codex(user)
        _, found = look(user)
    assert any(str(user.work) in line["text"] for line in found["slots"])
    assert [line["level"] for line in found["orphans"]] == ["ok"], "its guard lives"


def test_doctor_works_from_inside_of_a_turn(user: User) -> None:
    codex(user)
    user.env["CC_AGENTS_TURN"] = "j0"
    assert look(user)[0] == 0


def test_json_is_one_object(user: User, tmp_path: Path) -> None:
    codex(user)
    ran = user.run("doctor", "--json")
    assert set(json.loads(ran.out)) == {"ok", "findings"}
