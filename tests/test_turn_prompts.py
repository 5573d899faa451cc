"""The prompt, from the user's fingers to Codex: byte for byte, from every place, and never on a command line.

Serves rule.promptByteForByte, rule.header, rule.refusedEarly. The header alone: test_header.py.
"""

from __future__ import annotations

import os

import pytest
from turns import ANSWER, START, User, ended, living, wait_for

pytestmark = pytest.mark.rule("rule.promptByteForByte")

ODD = "  héllo 漢字 🎉\u2028\u0085\r\n\t\\u0041 \x1b[31m\n\n\n"


def sent(user: User) -> list[str]:
    return [params["input"][0]["text"] for params in user.asked("turn/start")]


def test_every_place_gives_the_prompt_unchanged(user: User) -> None:
    (user.work / "p.txt").write_bytes(ODD.encode())
    user.plays(ANSWER)
    for words, stdin in (
        (["--", ODD], None),
        (["-"], ODD.encode()),
        ([], ODD.encode()),
        (["--prompt-file", "p.txt"], None),
    ):
        assert user.run("run", *words, stdin=stdin).code == 0
    assert sent(user) == [ODD] * 4


def test_two_megabytes_pass_and_no_process_has_them_on_its_command_line(user: User) -> None:
    words = "needle in a haystack, "
    prompt = "  " + words * 100_000 + "\n\n\n"
    (user.work / "p.txt").write_text(prompt)
    go = user.root / "go"
    with user.running([*START, {"wait": {"file": str(go)}}, *ANSWER[1:]], file="p.txt") as process:
        wait_for(lambda: sent(user))
        lines = living(f"{user.root}/")
        assert len(lines) >= 3, "the command, its guard and the codex"
        assert not any("needle" in line for line in lines)
        go.touch()
        user.finish(process).completed()
    assert sent(user) == [prompt]


def test_a_dash_in_front_is_a_prompt_after_two_dashes(user: User) -> None:
    user.turn(ANSWER, prompt="--help me").completed()
    assert sent(user) == ["--help me"]


@pytest.mark.rule("rule.refusedEarly")
@pytest.mark.parametrize("prompt", ["", " \n\t", "---\nlabel: x\n---\n  "], ids=["nothing", "blanks", "only a header"])
def test_an_empty_prompt_is_refused_and_nothing_is_made(user: User, prompt: str) -> None:
    ran = user.turn(ANSWER, prompt=prompt).ended_as("refused", "bad_request", 2)
    assert ran.error["message"] == "the prompt is empty"
    assert user.nothing_was_made()


@pytest.mark.rule("rule.refusedEarly")
def test_bytes_that_are_no_utf8_are_refused_with_their_place(user: User) -> None:
    user.plays(ANSWER)
    ran = user.run("run", "--json", "-", stdin=b"caf\xe9").ended_as("refused", "bad_request", 2)
    assert "byte 3 is 0xe9" in ran.error["message"]
    assert user.nothing_was_made()


@pytest.mark.rule("rule.refusedEarly")
def test_all_that_is_wrong_is_said_at_once_and_nothing_is_made(user: User) -> None:
    (user.work / "notes.txt").touch()
    ran = user.turn(
        ANSWER, "--cwd", "gone", "--mode", "wild", "--image", "no.png", "--add-dir", "notes.txt", prompt=" "
    )
    ran.ended_as("refused", "bad_request", 2)
    said = ran.error["message"].splitlines()
    assert len(said) == 5, said
    assert user.nothing_was_made()
    two = user.turn(ANSWER, "--timeout", "5 parsecs", "--idle-timeout", "0", "--grace", "none")
    assert len(two.ended_as("refused", "bad_option", 2).error["message"].splitlines()) == 3


def test_an_open_silent_stdin_does_not_hold_a_prompt_that_was_given(user: User) -> None:
    user.plays(ANSWER)
    reading, writing = os.pipe()
    try:
        with ended(user.start("run", "--json", "go", stdin=reading)) as process:
            user.finish(process).completed()
    finally:
        os.close(reading)
        os.close(writing)


def test_no_stdin_at_all_is_no_prompt(user: User) -> None:
    ran = user.run("run", "--json").ended_as("refused", "bad_request", 2)
    assert user.nothing_was_made()
    assert "prompt" in ran.error["message"]


@pytest.mark.rule("rule.header")
def test_the_header_counts_and_is_not_sent(user: User) -> None:
    head = "---\neffort: high\nmode: write\nnetwork: yes\nadd-dir: extra\nlabel: the fix\n---\n\n Fix it\n"
    (user.work / "extra").mkdir()
    ran = user.turn(ANSWER, prompt=head).completed()
    effective = ran.outcome["effective"]
    assert sent(user) == ["\n Fix it\n"]
    assert (effective["mode"], effective["effort"]["value"], effective["network"]) == ("write", "high", True)
    assert str(user.work / "extra") in effective["writable_roots"]


@pytest.mark.rule("rule.header")
def test_an_unknown_key_is_refused_and_a_text_that_only_looks_like_a_header_is_text(user: User) -> None:
    ran = user.turn(ANSWER, prompt="---\nefort: high\n---\nFix it").ended_as("refused", "bad_request", 2)
    assert "'efort'" in ran.error["message"]
    for text in ("---\neffort: high\nFix it", "---\nnot a key\n---\nFix it", " ---\neffort: high\n---\nFix it"):
        user.turn(ANSWER, prompt=text).completed()
        assert sent(user)[-1] == text


def test_a_schema_and_images_reach_codex(user: User) -> None:
    (user.work / "s.json").write_text('{"type":"object"}')
    (user.work / "a.png").write_bytes(b"png")
    user.turn(ANSWER, "--output-schema", "s.json", "--image", "a.png").completed()
    (params,) = user.asked("turn/start")
    assert params["outputSchema"] == {"type": "object"}
    assert params["input"][1] == {"type": "localImage", "path": str(user.work / "a.png")}


@pytest.mark.rule("rule.refusedEarly")
@pytest.mark.parametrize(
    "schema", ["{", "[]", '{"type": 5}', "NaN", '{"$schema": []}', "[" * 99999, '{"maximum": 1e999}']
)
def test_a_schema_that_is_none_is_refused(user: User, schema: str) -> None:
    (user.work / "s.json").write_text(schema)
    user.turn(ANSWER, "--output-schema", "s.json").ended_as("refused", "bad_request", 2)
    assert user.nothing_was_made()


@pytest.mark.rule("rule.secretsKept")
def test_codex_gets_the_users_environment_without_claude_codes_and_ours(user: User) -> None:
    user.env.update({"ANTHROPIC_API_KEY": "a", "CLAUDECODE": "1", "EDITOR": "vi", "CLAUDE_PLUGIN_OPTION_MODEL": ""})
    user.turn(ANSWER).completed()
    env = user.logged("start")[0]["env"]
    assert env["EDITOR"] == "vi"
    assert [name for name in env if name.startswith(("ANTHROPIC", "CLAUDE", "CC_AGENTS"))] == ["CC_AGENTS_TURN"]


@pytest.mark.rule("rule.stdoutIsTheAnswer")
def test_a_reader_of_stdout_that_went_away_is_a_failure_that_keeps_the_answer(user: User) -> None:
    user.plays([*START, {"msg": [{"repeat": "x", "times": 300_000}, "final_answer"]}, {"done": "completed"}])
    with ended(user.start("run", "go")) as process:
        assert process.stdout is not None
        process.stdout.close()
        process.stdout = None
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert b"the outcome is kept in job" in err
    assert (user.jobs()[0] / "final.txt").stat().st_size == 300_000
