"""Which text is the answer, through the whole command and real pipes: the cases of the field.

Serves rule.exactFinal, rule.stdoutIsTheAnswer, rule.neverEmptySuccess. In memory, with every odd byte: test_bytes.py.
"""

from __future__ import annotations

import pytest
from turns import ANSWER, START, Steps, User, strict

pytestmark = pytest.mark.rule("rule.exactFinal")

DONE: Steps = [{"done": "completed"}]
CHILD = {"thread": "C", "turn": "c"}
SECRET = "sk-proj-" + "A1b2C3d4" * 6
ODD = "héllo 漢字 🎉 a\u2028b\u0085c\r\n\td \\u0041 \x00\x1b[31m" + SECRET + "\n\n"


def final(steps: Steps) -> Steps:
    return [*START, *steps, *DONE]


CASES: dict[str, tuple[Steps, str]] = {
    "commentary is no part of it": (
        final([{"msg": ["looking", "commentary"]}, {"msg": ["ANSWER", "final_answer"]}]), "ANSWER"
    ),
    "commentary alone is the answer": (final([{"msg": ["Pong.", "commentary"]}]), "Pong."),
    "the last without a phase": (final([{"msg": ["a", None]}, {"command": "ls"}, {"msg": ["b", None]}]), "b"),
    "a final answer before later commentary": (
        final([{"msg": ["A", "final_answer"]}, {"msg": ["bye", "commentary"]}]), "A"
    ),
    "the last of two final answers": (final([{"msg": ["A", "final_answer"]}, {"msg": ["B", "final_answer"]}]), "B"),
    "deltas and the whole are one": (final([{"msg": ["ABC", "final_answer"], "deltas": ["AB", "C"]}]), "ABC"),
    "the whole counts, not its deltas": (final([{"msg": ["whole", "final_answer"], "deltas": ["delta"]}]), "whole"),
    "the same item twice": (
        final([{"msg": ["one", "final_answer"], "id": "m"}, {"msg": ["two", "final_answer"], "id": "m"}]), "two"
    ),
    "a message to the user is no answer": (
        final([{"msg": ["A", "final_answer"]}, {"msg": ["Which?", "final_answer"], "delivery": "async"}]), "A"
    ),
    "a child's text and end are not ours": (
        final([{"msg": ["CHILD", "final_answer"], **CHILD}, {"done": "completed", **CHILD}, {"wait": 0.2},
               {"msg": ["PARENT", "final_answer"]}]), "PARENT"
    ),
    "an older turn's late item is not ours": (
        final([{"msg": ["A", "final_answer"]}, {"msg": ["OLD", "final_answer"], "turn": "OLD"}]), "A"
    ),
    "an older turn's end is not ours": (
        final([{"done": "completed", "turn": "OLD"}, {"wait": 0.1}, {"msg": ["A", "final_answer"]}]), "A"
    ),
    "a late answer": ([*START, *DONE, {"wait": 0.05}, {"msg": ["LATE", "final_answer"]}], "LATE"),
    "an answer that only the end carries": (
        [*START, {"done": "completed", "items": [["S", "final_answer"]]}], "S"
    ),
    "a message that never completed is void": (
        final([{"msg": ["half a thou", "final_answer"], "open": True}, {"msg": ["A", "final_answer"]}]), "A"
    ),
    "a review": (
        final([{"item": {"type": "exitedReviewMode", "review": "R"}}, {"msg": ["R2", None]}]), "R"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("steps", "text"), CASES.values(), ids=CASES)
def test_the_answer_is(user: User, steps: Steps, text: str) -> None:
    ran = user.turn(steps).completed()
    assert ran.outcome["final_text"] == text
    assert ran.outcome["partial_text"] == ""


@pytest.mark.rule("rule.stdoutIsTheAnswer")
@pytest.mark.rule("rule.bytesThenLinesThenText")
def test_stdout_is_the_answer_and_not_one_byte_more_though_it_came_byte_by_byte(user: User) -> None:
    user.plays(final([{"msg": [ODD, "final_answer"], "drip": 1}]))
    ran = user.run("run", "go")
    assert (ran.code, ran.out) == (0, ODD.encode())
    (job,) = user.jobs()
    assert (job / "final.txt").read_bytes() == ODD.encode()


@pytest.mark.rule("rule.bytesThenLinesThenText")
@pytest.mark.parametrize("how", ["--json", "--events"])
def test_our_own_output_is_valid_though_codex_sends_half_a_surrogate_pair(user: User, how: str) -> None:
    item = '{"type":"agentMessage","id":"m","text":"a\\ud83dz","phase":"final_answer"}'
    params = f'{{"threadId":"$thread","turnId":"$turn","item":{item}}}'
    delta = '{"threadId":"$thread","turnId":"$turn","itemId":"n","delta":"\\ude00"}'
    lines = (
        f'{{"method":"item/completed","params":{params}}}\n{{"method":"item/agentMessage/delta","params":{delta}}}\n'
    )
    ran = user.turn(final([{"raw": {"text": lines}}])) if how == "--json" else None
    if ran is None:
        user.plays(final([{"raw": {"text": lines}}]))
        ran = user.run("run", how, "go")
    *_, last = [strict(part) for part in ran.out.split(b"\n") if part]
    outcome = last.get("outcome", last)
    assert (outcome["status"], outcome["final_text"]) == ("completed", "a\ufffdz")
    assert any("U+FFFD" in w for w in outcome["warnings"])
    for file in (*user.jobs()[0].iterdir(),):
        assert file.read_bytes().decode("utf-8") is not None


@pytest.mark.rule("rule.bytesThenLinesThenText")
def test_an_answer_of_five_megabytes_on_one_line_is_exact(user: User) -> None:
    piece = "héllo 漢字 🎉\n"
    times = 5_000_000 // len(piece.encode())
    user.plays(final([{"raw": {"hex": "e687"}}, {"raw": {"text": "\n[]\n3\n"}},
                      {"msg": [{"repeat": piece, "times": times}, "final_answer"]}]))  # fmt: skip
    ran = user.run("run", "go")
    assert (ran.code, ran.out == (piece * times).encode()) == (0, True)


@pytest.mark.rule("rule.neverEmptySuccess")
def test_text_of_a_failed_turn_is_partial_and_never_the_answer(user: User) -> None:
    error = {"message": "busy", "codexErrorInfo": "serverOverloaded"}
    ran = user.turn([*START, {"msg": ["half", None]}, {"done": "failed", "error": error}])
    ran.ended_as("failed", "server_overloaded", 6)
    assert (ran.outcome["final_text"], ran.outcome["partial_text"]) == ("", "half")
    plain = user.run("run", "go")
    assert (plain.code, plain.out) == (6, b"")


@pytest.mark.rule("rule.neverEmptySuccess")
def test_a_final_answer_before_a_failure_does_not_complete_the_turn(user: User) -> None:
    error = {"message": "busy", "codexErrorInfo": "serverOverloaded"}
    ran = user.turn([*START, {"msg": ["FINAL", "final_answer"]}, {"wait": 0.7}, {"done": "failed", "error": error}])
    ran.ended_as("failed", "server_overloaded", 6)
    assert ran.error["kind"] == "capacity"


def test_deltas_of_a_message_that_never_completed_are_partial_text(user: User) -> None:
    steps = [*START, {"msg": ["half a thought", "final_answer"], "open": True, "deltas": 4}, {"done": "interrupted"}]
    ran = user.turn(steps)
    ran.ended_as("interrupted", "interrupted", 130)
    assert ran.outcome["partial_text"] == "half a thought"


def test_a_child_that_is_still_at_work_is_told_and_ended(user: User) -> None:
    begin = {"notify": {"method": "turn/started", "params": {"threadId": "C", "turn": {"id": "c"}}}}
    ran = user.turn([*START, begin, *ANSWER[1:]]).completed()
    assert any("still at work" in w for w in ran.outcome["warnings"])
