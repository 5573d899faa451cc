"""Interrupts and limits on the real codex: whether confirmed is told, thread and partial text are kept, it goes on.

Serves rule.interruptConfirmed, rule.limits.
"""

from __future__ import annotations

import json
import shlex
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests_live import escapes, script
from tests_live.conftest import CHECKOUT, CcAgents, WriteConfig
from tests_live.escapes import outcome, record, running, survivors, wait_for
from tests_live.homes import Home
from tests_live.responses_api import ScriptedModel, run_command, say, silence, step, tokens
from tests_live.script import Body, Part

HALF = say("half of it", phase="commentary", deltas=["half", " of it"])
LONG = ("--grace", "30s")


def goes_on(cc_agents: CcAgents, model: ScriptedModel, told: dict[str, Any]) -> None:
    """The thread can be resumed, and answers."""
    model.extend(say("again"))
    ran = cc_agents("run", "--json", "--resume", told["thread"], "go on")
    after = json.loads(ran.stdout)
    assert (after["status"], after["final_text"], after["thread"]) == ("completed", "again", told["thread"]), after


# --- interrupts -----------------------------------------------------------------------------------------------


@pytest.mark.rule("rule.interruptConfirmed")
def test_while_it_streams_the_end_is_confirmed_the_text_kept_and_the_thread_goes_on(
    codex: str, home: Home, model: ScriptedModel, write_config: WriteConfig, cc_agents: CcAgents
) -> None:
    model.extend(step(HALF, silence()))
    write_config(home, model)
    with running(home, codex, *LONG) as cli:
        wait_for(lambda: b"half of it" in escapes.journal(home))
        cli.send_signal(signal.SIGINT)
        told = outcome(cli)
    assert (told["status"], told["confirmed"], told["exit_code"]) == ("interrupted", True, 130)
    assert (told["partial_text"], told["final_text"]) == ("half of it", "")
    goes_on(cc_agents, model, told)


@pytest.mark.rule("rule.interruptConfirmed")
def test_before_the_first_byte_of_the_model_the_end_is_confirmed(
    codex: str, home: Home, model: ScriptedModel, write_config: WriteConfig
) -> None:
    model.extend(silence())
    write_config(home, model)
    with running(home, codex, *LONG) as cli:
        model.wait_for_requests(1)
        wait_for(lambda: b'"begun"' in escapes.journal(home))
        cli.send_signal(signal.SIGTERM)
        told = outcome(cli)
    assert (told["status"], told["confirmed"], told["exit_code"]) == ("interrupted", True, 143)


@pytest.mark.rule("rule.interruptConfirmed")
def test_in_a_command_codex_confirms_and_its_children_are_gone_with_the_outcome(
    codex: str, home: Home, model: ScriptedModel, write_config: WriteConfig, cc_agents: CcAgents
) -> None:
    shapes = ("setsid", "double_fork", "ignore_term", "nohup")
    model.extend(step(HALF, run_command(escapes.leave(home, shapes, then="sleep 600"))))
    write_config(home, model)
    with running(home, codex, "--mode", "yolo", *LONG) as cli:
        wait_for(lambda: len(escapes.pids(home, shapes)) == len(shapes))
        cli.send_signal(signal.SIGINT)
        told = outcome(cli)
    assert survivors(home) == []
    assert (told["confirmed"], told["exit_code"], told["partial_text"]) == (True, 130, "half of it")
    goes_on(cc_agents, model, told)


@pytest.mark.rule("rule.interruptConfirmed")
def test_between_turn_start_and_turn_started_codex_is_ended_and_does_not_run_on(
    codex: str, home: Home, model: ScriptedModel, write_config: WriteConfig
) -> None:
    model.extend(silence())
    write_config(home, model)
    held = home.root / "codex"
    words = [sys.executable, "-I", str(CHECKOUT / "tests_live" / "hold.py"), '"turn/start"', "--", codex]
    held.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    held.chmod(0o700)
    with running(home, str(held), *LONG) as cli:
        model.wait_for_requests(1)  # Codex is in the turn, and we have not heard of it
        cli.send_signal(signal.SIGINT)
        told = outcome(cli)
    assert (told["status"], told["confirmed"], told["exit_code"]) == ("interrupted", False, 130)
    assert told["thread"]
    model.wait_for_hang_up()


FACTS: dict[str, Callable[[Home], Any]] = {
    "the job is made": lambda home: escapes.jobs(home),
    "the guard has its record": lambda home: record(home),
    "codex has opened its state": lambda home: any(Path(home.codex_home).glob("*.sqlite*")),
}


@pytest.mark.rule("rule.interruptConfirmed")
@pytest.mark.parametrize("fact", FACTS)
def test_while_codex_boots_the_end_is_an_outcome_too(
    codex: str, home: Home, model: ScriptedModel, write_config: WriteConfig, fact: str
) -> None:
    write_config(home, model)
    model.extend(silence())
    with running(home, codex, *LONG) as cli:
        wait_for(lambda: FACTS[fact](home))
        cli.send_signal(signal.SIGINT)
        told = outcome(cli)
    assert (told["status"], told["exit_code"], told["final_text"]) == ("interrupted", 130, "")


# --- limits ---------------------------------------------------------------------------------------------------


@pytest.mark.rule("rule.limits")
@pytest.mark.parametrize(
    ("limit", "reason"),
    [(("--timeout", "12s"), "timeout"), (("--idle-timeout", "6s"), "idle_timeout")],
    ids=["timeout", "idle-timeout"],
)
def test_a_limit_of_time_ends_the_turn_with_8_and_the_thread_goes_on(
    home: Home,
    model: ScriptedModel,
    write_config: WriteConfig,
    cc_agents: CcAgents,
    limit: tuple[str, str],
    reason: str,
) -> None:
    model.extend(step(HALF, silence()))
    write_config(home, model)
    ran = cc_agents("run", "--json", *limit, "go")
    told = json.loads(ran.stdout)
    assert (told["status"], told["error"]["reason"], ran.returncode) == ("interrupted", reason, 8), told
    assert (told["partial_text"], told["confirmed"]) == ("half of it", True)
    goes_on(cc_agents, model, told)


@pytest.mark.rule("rule.limits")
def test_a_limit_of_tokens_ends_the_turn_with_8_and_the_thread_goes_on(
    home: Home, model: ScriptedModel, write_config: WriteConfig, cc_agents: CcAgents
) -> None:
    def third(body: Body) -> Part:
        """Whether it is asked for before the interrupt is a race."""
        return say("again") if "go on" in script.user_texts(body) else silence()

    commands = (
        step(HALF, run_command("true"), usage=tokens(100, output=20)),
        step(run_command("true"), usage=tokens(200, output=20)),
    )
    model.extend(*commands, third)
    write_config(home, model)
    ran = cc_agents("run", "--json", "--max-tokens", "150", "go")
    told = json.loads(ran.stdout)
    assert (told["status"], told["error"]["reason"], ran.returncode) == ("interrupted", "token_limit", 8), told
    assert (told["partial_text"], told["confirmed"]) == ("half of it", True)
    assert told["usage"]["total_tokens"] == 340
    goes_on(cc_agents, model, told)
