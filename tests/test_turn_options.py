"""The options of a turn on the command line, and a command whose own streams are closed.

Serves rule.promptByteForByte, rule.refusedEarly, rule.stdoutIsTheAnswer.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import pytest
from turns import ANSWER, PATIENCE_S, User

from adapters.contract import Refused
from sidecar.intake.turn_options import add_prompt_arguments, add_turn_arguments, read_prompt, request_from

pytestmark = pytest.mark.rule("rule.promptByteForByte")


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    add_prompt_arguments(parser)
    add_turn_arguments(parser)
    return parser.parse_args(words)


def test_every_flag_reaches_the_request(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir(mode=0o700)
    (tmp_path / "a.png").touch()
    env = {"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path / "run")}
    words = (
        f"--mode write --model m --effort e --cwd {tmp_path} --add-dir run --network --image a.png --timeout 1m"
        " --idle-timeout none --start-timeout 2s --grace 3 --max-tokens 4 --label l"
    ).split()
    request, settings = request_from(parsed(*words, "go"), env)
    agent = request.agent
    assert agent.model is not None
    assert (agent.prompt, agent.mode, agent.model.source, agent.network) == ("go", "write", "--model", True)
    assert (agent.add_dirs, agent.images) == ((str(tmp_path / "run"),), (str(tmp_path / "a.png"),))
    assert (request.timeout_s, request.idle_timeout_s, request.max_tokens, request.label) == (60.0, None, 4, "l")
    assert (request.start_timeout_s, request.grace_s) == (2.0, 3.0)
    assert settings.grace.source == "--grace"


@pytest.mark.parametrize("option", ["start_timeout", "grace"])
@pytest.mark.rule("rule.boundedAlways")
def test_what_waits_for_codex_cannot_be_without_an_end(user: User, option: str) -> None:
    user.env[f"CC_AGENTS_{option.upper()}"] = "none"
    ran = user.turn(ANSWER).ended_as("refused", "bad_option", 2)
    assert f"CC_AGENTS_{option.upper()} can't be none" in ran.error["message"]


def test_a_prompt_that_is_given_twice_or_cannot_be_read_is_refused(tmp_path: Path) -> None:
    for argument, file in (("go", "p.txt"), (None, str(tmp_path)), (None, str(tmp_path / "gone"))):
        with pytest.raises(Refused):
            read_prompt(argument, file)


@pytest.mark.rule("rule.refusedEarly")
@pytest.mark.parametrize(
    "words", [["--bogus", "go"], ["--max-tokens", "many", "go"], ["--mod", "write", "go"], ["a", "b"]]
)
def test_a_flag_that_is_not_there_is_one_clear_line(user: User, words: list[str]) -> None:
    ran = user.run("run", *words)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, b"", 1)
    assert user.nothing_was_made()


# --- our own streams ----------------------------------------------------------------------------------------------


@pytest.mark.rule("rule.stdoutIsTheAnswer")
@pytest.mark.parametrize(
    ("closed", "code", "out"),
    [("<&-", 0, b"ANSWER"), ("2>&-", 0, b"ANSWER"), (">&-", 1, b""), ("<&- >&- 2>&-", 1, b"")],
)
def test_a_stream_that_came_closed_never_becomes_a_file_of_ours(user: User, closed: str, code: int, out: bytes) -> None:
    user.plays(ANSWER)
    script = f'"$0" -m sidecar run -- go {closed}'
    ran = subprocess.run(
        ["/bin/sh", "-c", script, sys.executable], env=user.env, cwd=user.work, capture_output=True, timeout=PATIENCE_S
    )
    assert (ran.returncode, ran.stdout) == (code, out)
    assert (user.jobs()[0] / "final.txt").read_bytes() == b"ANSWER"


@pytest.mark.parametrize("verb", [["run"], ["check"], ["models"], ["--help"], ["--version"], ["nonsense"]])
def test_no_verb_breaks_down_without_any_stream(user: User, verb: list[str]) -> None:
    script = f'"$0" -m sidecar {" ".join(verb)} <&- >&- 2>/dev/null; echo "$?"'
    ran = subprocess.run(
        ["/bin/sh", "-c", script, sys.executable], env=user.env, cwd=user.work, capture_output=True, timeout=PATIENCE_S
    )
    assert ran.stdout.strip() in ((b"2",) if verb[0] in ("run", "check", "nonsense") else (b"0", b"1"))
