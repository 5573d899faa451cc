"""Every recording of the real Codex gives the same ending, whatever the reads are that its bytes come in.

Serves rule.exactFinal and rule.bytesThenLinesThenText. In memory; the failed turns are in test_error_recordings.py.
"""

from __future__ import annotations

import json

import pytest
from peer import Cut, Hand, at, by, converse, whole
from recordings import Replay, lines_of, names, recording

from adapters.contract import BegunEvent, Ending, Event, Stop
from adapters.jsonrpc import LineSplitter

pytestmark = pytest.mark.rule("rule.bytesThenLinesThenText")

# Not here: the two interrupted ones and the breach (below); steer has two turns, it is in the splits alone.
TOKENS = {
    "approval_asked_declined": 240,
    "approval_patch_declined": 240,
    "big_answer": 120,
    "big_command_output": 240,
    "escalation_never": 240,
    "goal_autocontinue": 240,
    "happy_turn": 120,
    "start_sequence_read": 1080,
    "start_sequence_write": 1080,
    "subagent": 360,
    "three_request_turn_fresh": 6060,
    "three_request_turn_resumed": 6060,
    "turn_phases_commands": 240,
}
THREAD = "01a22b98-57dc-7dd1-8ddc-c9652f501a24"
LARGE = ("big_answer",)  # cut into reads of 97 bytes instead of one


async def play(name: str, cut: Cut = whole) -> tuple[Ending, Replay]:
    codex = Replay(recording(name), cut=cut)
    thread = THREAD if name == "three_request_turn_resumed" else None
    return await converse(codex, thread=thread), codex


def told(ending: Ending) -> tuple[object, ...]:
    return ending.status, ending.final_text, ending.partial_text, ending.usage, ending.child_usage, ending.error


def expected_final(name: str) -> str:
    """By the rule of the notes, from the recording alone: the last final answer, or else the last without a phase."""
    starts = [e["msg"] for e in recording(name) if e["dir"] == "in"]
    turn = next(m["result"]["turn"]["id"] for m in starts if "turn" in m.get("result", {}))
    own = [m["params"]["item"] for m in starts if m.get("method") == "item/completed" and m["params"]["turnId"] == turn]
    said = [i for i in own if i["type"] == "agentMessage" and not i.get("delivery")]
    for phase in ("final_answer", None):
        texts: list[str] = [i["text"] for i in said if i["phase"] == phase]
        if texts:
            return texts[-1]
    return ""


@pytest.mark.rule("rule.exactFinal")
@pytest.mark.parametrize("name", TOKENS)
async def test_a_recorded_turn_has_its_answer_and_its_own_usage(name: str) -> None:
    ending, codex = await play(name)
    assert (ending.status, ending.final_text, ending.confirmed) == ("completed", expected_final(name), True)
    assert ending.usage is not None
    assert ending.usage.total_tokens == TOKENS[name]
    assert not codex.asked("turn/interrupt")


@pytest.mark.parametrize("name", TOKENS)
async def test_a_recorded_turn_ends_the_same_one_byte_a_read(name: str) -> None:
    expected = told((await play(name))[0])
    assert told((await play(name, by(97 if name in LARGE else 1)))[0]) == expected


async def test_a_recorded_turn_ends_the_same_with_a_read_ending_at_every_byte() -> None:
    expected = told((await play("happy_turn"))[0])
    for offset in range(32):
        assert told((await play("happy_turn", by(32, offset)))[0]) == expected, offset


@pytest.mark.parametrize("name", ["happy_turn", "errors/http401"])
async def test_a_recorded_turn_ends_the_same_in_any_two_reads(name: str) -> None:
    expected = told((await play(name))[0])
    size = sum(map(len, lines_of(name)))
    for position in range(1, size, 13):
        assert told((await play(name, at(position)))[0]) == expected, position


@pytest.mark.parametrize("name", [*names(), *names("errors")])
def test_every_line_of_a_recording_survives_a_cut_at_each_of_its_bytes(name: str) -> None:
    for sent in lines_of(name):
        for position in range(1, len(sent), 1 if len(sent) < 20_000 else 101):
            splitter = LineSplitter()
            got = [*splitter.feed(sent[:position]), *splitter.feed(sent[position:] + b"{}")]
            assert got == [sent[:-1]]
            assert splitter.rest() == b"{}"


@pytest.mark.rule("rule.interruptConfirmed")
@pytest.mark.parametrize("name", ["interrupt_streaming", "interrupt_command"])
async def test_a_recorded_interrupt_is_asked_for_and_confirmed(name: str) -> None:
    codex, hand = Replay(recording(name)), Hand()

    def stop(event: Event) -> None:
        if isinstance(event, BegunEvent):
            hand.ask(stop=Stop(reason="interrupted", message="by the test"))

    ending = await converse(codex, hand=hand, events=stop)
    assert (ending.status, ending.confirmed, ending.final_text) == ("interrupted", True, "")
    assert codex.asked("turn/interrupt") == [{"threadId": ending.thread, "turnId": ending.turn}]


@pytest.mark.rule("rule.mcpOff")
async def test_a_recorded_server_that_starts_ends_the_turn() -> None:
    ending, _ = await play("mcp_server_starting")
    assert ending.error is not None
    assert (ending.status, ending.error.reason) == ("failed", "mode_not_enforced")


@pytest.mark.rule("rule.approvalsNever")
async def test_a_recorded_approval_is_declined_under_its_own_id() -> None:
    ending, codex = await play("approval_asked_declined")
    assert [json.dumps(r) for r in codex.replied] == ['{"id": 0, "result": {"decision": "decline"}}']
    assert [d["method"] for d in ending.declined] == ["item/commandExecution/requestApproval"]


async def test_the_tokens_of_a_sub_agent_are_told_apart() -> None:
    ending, _ = await play("subagent")
    assert ending.child_usage is not None
    assert (ending.final_text, ending.child_usage.total_tokens) == ("parent answer", 240)
