"""Another harness fits behind the contract without a change in the sidecar.

Serves rule.oneContract, rule.spawnsNothing. The other harness: echo_adapter.py.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import anyio
import pytest
from peer import Codex, converse, done, message, started
from turns import User

from adapters import registry
from adapters.contract import Adapter, BegunEvent, Event, Refused
from sidecar import slots
from sidecar.begin import Begun, begin
from sidecar.config import load_settings
from sidecar.control import TurnControl
from sidecar.outcome import Outcome
from sidecar.request import Flags, build
from sidecar.turn import Turn

pytestmark = pytest.mark.rule("rule.oneContract")


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.ADAPTERS, "echo", "echo_adapter:EchoAdapter")


def run(user: User, prompt: str, **flags: Any) -> tuple[Outcome, list[Event], list[str]]:
    """The outcome, the events, and the slots that were taken when the turn began."""
    settings = load_settings(user.env, {})
    begun = begin(
        build(Flags(prompt=prompt, cwd=str(user.work), adapter="echo", **flags), settings, user.env), settings, user.env
    )
    events: list[Event] = []
    taken: list[str] = []

    def show(event: Event) -> None:
        events.append(event)
        if isinstance(event, BegunEvent):
            taken.extend(
                key for key in ("echo", "codex") for h in slots.holders(begun.runtime, key) if h.job == begun.job.id
            )

    return anyio.run(see_through, begun, show), events, taken


async def see_through(begun: Begun, show: Any) -> Outcome:
    return await Turn(begun, TurnControl(), show).run()


def test_a_turn_of_another_harness_goes_the_same_way_with_a_slot_of_its_own(user: User) -> None:
    outcome, events, taken = run(user, "  héllo 漢字 🎉")
    assert (outcome.status, outcome.final_text, outcome.exit_code) == ("completed", "  héllo 漢字 🎉", 0)
    assert taken == ["echo"]
    assert [type(e).__name__ for e in events] == ["BegunEvent", "TextDelta"]
    (job,) = user.jobs()
    assert (job / "final.txt").read_text() == "  héllo 漢字 🎉"


def test_it_is_an_adapter_in_the_words_of_the_contract() -> None:
    assert isinstance(registry.load("echo"), Adapter)
    assert isinstance(registry.load(), Adapter)


def test_what_it_refuses_and_what_it_has_no_mode_for_is_refused_before_anything_is_made(user: User) -> None:
    for prompt, mode in (("silence", None), ("go", "yolo")):
        with pytest.raises(Refused):
            run(user, prompt, mode=mode)
    assert user.nothing_was_made()


def test_an_adapter_that_nobody_registered_is_refused_with_those_there_are(user: User) -> None:
    settings = load_settings(user.env, {})
    request = build(Flags(prompt="go", cwd=str(user.work), adapter="nope"), settings, user.env)
    with pytest.raises(Refused, match="unknown adapter 'nope': one of codex, echo"):
        begin(request, settings, user.env)


@pytest.mark.rule("rule.spawnsNothing")
def test_the_codex_adapter_starts_no_process_from_check_to_ending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("the adapter started a process")

    for module, name in ((subprocess, "Popen"), (os, "fork"), (os, "posix_spawn"), (os, "execve"), (os, "system")):
        monkeypatch.setattr(module, name, never)
    ending = anyio.run(converse, Codex([started(), message("A"), done()]))
    assert ending.final_text == "A"
