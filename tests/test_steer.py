"""A steer goes into the running turn, once it has started, and its author learns what became of it.

Serves rule.threadResumes and rule.steer. In memory; through the command: the tests of jobs.
"""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
import pytest
from peer import LIMITS, Codex, Hand, Note, converse, done, message, started

from adapters.contract import Ending, Limits

pytestmark = pytest.mark.rule("rule.threadResumes")


async def until(fact: Any) -> None:
    while not fact():
        await anyio.lowlevel.checkpoint()


async def steered(answer: Any, *, limits: Limits = LIMITS) -> tuple[Codex, Note, Ending]:
    codex, hand, note = Codex(answers={"turn/steer": answer}), Hand(), Note("use tabs")
    endings: list[Ending] = []

    async def talk() -> None:
        endings.append(await converse(codex, hand=hand, limits=limits))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(talk)
        await until(lambda: codex.asked("turn/start"))
        hand.ask(steer=note)
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        assert codex.asked("turn/steer") == [], "the turn has not started yet"
        codex.say(started())
        await until(lambda: codex.asked("turn/steer"))
        if answer is not None:
            await until(lambda: note.accepted or note.refused)
        codex.say(message("A") + done())
    return codex, note, endings[0]


async def test_a_steer_waits_for_the_start_and_names_the_turn() -> None:
    codex, note, ending = await steered({"turnId": "U"})
    assert codex.asked("turn/steer") == [
        {"threadId": "T", "expectedTurnId": "U", "input": [{"type": "text", "text": "use tabs"}]}
    ]
    assert (note.accepted, note.refused, ending.final_text) == (True, None, "A")


async def test_a_steer_that_codex_refuses_is_refused_in_its_words_and_the_turn_goes_on() -> None:
    words = "expected active turn id `U` but found `V`"
    _, note, ending = await steered({"error": {"code": -32600, "message": words}})
    assert (note.accepted, note.refused) == (False, words)
    assert ending.status == "completed"
