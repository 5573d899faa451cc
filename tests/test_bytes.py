"""Bytes first, then lines, then text: nothing that a peer writes hangs us, and one bad line costs that line.

Serves spec:cc-agents.misbehaving-peer. In memory: the peer is peer.py. The same through real pipes: test_turn_text.py.
"""

from __future__ import annotations

import json

import pytest
from peer import Codex, by, converse, done, line, message, notice, started

from adapters.contract import Ending
from adapters.jsonrpc import LineSplitter

pytestmark = pytest.mark.rule("rule.bytesThenLinesThenText")

ODD_TEXTS = {
    "two, three and four bytes": "héllo 漢字 🎉",
    "line separators": "a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg\x1dh\x1ei",
    "returns": "one\r\ntwo\rthree\n\r\n",
    "nothing but white space": " \t\n\u00a0\u3000",
    "quotes and escapes": '"\\"\\\\n\\u0041{}[],:\b\f',
    "control characters": "".join(map(chr, range(32))) + "\x7f\x80\x9f",
    "marks of byte order": "\ufeffa\ufffeb\ufffd",
    "a family and a flag": "👨‍👩‍👧‍👦 🇪🇺 é",
    "a key that looks secret": "sk-proj-" + "A1b2" * 12,
    "json as text": '{"method":"turn/completed","params":{}}\n',
}


async def end_of(*turn: bytes, **how: object) -> Ending:
    return await converse(Codex([started(), *turn], **how))  # type: ignore[arg-type]


@pytest.mark.rule("rule.exactFinal")
@pytest.mark.parametrize("text", ODD_TEXTS.values(), ids=ODD_TEXTS)
async def test_any_text_comes_through_exactly_one_byte_a_read(text: str) -> None:
    ending = await end_of(message(text), done(), cut=by(1))
    assert (ending.status, ending.final_text) == ("completed", text)
    assert ending.warnings == ()


@pytest.mark.rule("rule.exactFinal")
@pytest.mark.parametrize("text", ODD_TEXTS.values(), ids=ODD_TEXTS)
async def test_any_text_comes_through_also_when_the_peer_escapes_everything(text: str) -> None:
    item = {"type": "agentMessage", "id": "m", "text": text, "phase": "final_answer"}
    escaped = json.dumps({"method": "item/completed", "params": {"threadId": "T", "turnId": "U", "item": item}})
    assert escaped.isascii()
    ending = await end_of(escaped.encode() + b"\n", done())
    assert ending.final_text == text


BAD_LINES = {
    "a cut character": b'{"method":"x","params":{"a":"\xe6\x87"}}',
    "a cut character at the end": b'{"method":"warning","params":{"message":"\xf0\x9f',
    "latin 1": b'{"method":"warning","params":{"message":"caf\xe9"}}',
    "an overlong form": b'{"method":"warning","params":{"message":"\xc0\xaf"}}',
    "a surrogate as bytes": b'{"method":"warning","params":{"message":"\xed\xa0\x80"}}',
    "UTF-16": '{"method":"warning","params":{"message":"x"}}'.encode("utf-16-le").replace(b"\n", b""),
    "UTF-32": '{"method":"warning","params":{"message":"x"}}'.encode("utf-32-be"),
    "zeros": b"\0" * 64,
    "a zero": b"\0",
    "a list": b"[]",
    "a number": b"3",
    "a text": b'"turn/completed"',
    "null": b"null",
    "a broken escape": rb'{"method":"warning","params":{"message":"\x"}}',
    "half an escape": rb'{"method":"warning","params":{"message":"\u12"}}',
    "half an object": b'{"method":"turn/completed","params":{"threadId":"T"',
    "two objects": b'{"method":"a"}{"method":"b"}',
    "a trailing comma": b'{"method":"a",}',
    "a control character in a text": b'{"method":"warning","params":{"message":"a\tb"}}',
    "no number": b'{"method":"warning","params":{"message":NaN}}',
    "no end": b'{"method":"warning","params":{"n":Infinity}}',
    "a log line": b"2026-11-30T10:00:00Z  WARN codex_core: hello",
    "html": b"<html><body>502 Bad Gateway</body></html>",
    "deep nesting": b'{"params":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
    "a number of 10,000 digits": b'{"method":"x","params":{"n":' + b"9" * 10_000 + b"}}",
}


@pytest.mark.parametrize("bad", BAD_LINES.values(), ids=BAD_LINES)
async def test_a_line_that_is_no_json_object_costs_that_line_and_is_counted(bad: bytes) -> None:
    ending = await end_of(bad + b"\n", message("ANSWER"), done())
    assert (ending.status, ending.final_text) == ("completed", "ANSWER")
    assert ending.warnings == ("1 lines of Codex were no JSON objects and were passed by",)


STRAY = {
    "an id never asked": line({"id": 999, "result": {}}),
    "an id as a text": line({"id": "1", "result": {}}),
    "true is not one": line({"id": True, "result": {"userAgent": "x"}}),
    "a fraction": line({"id": 1.0, "result": {}}),
    "a list as an id": line({"id": [1], "result": {}}),
    "an error for nobody": line({"id": 77, "error": {"code": -1, "message": "no"}}),
    "null as an id": line({"id": None, "result": {}}),
    "a method that is a number": line({"method": 3, "params": {}}),
    "an empty object": b"{}\n",
    "params that are a list": line({"method": "turn/completed", "params": [1]}),
    "params that are a text": line({"method": "item/completed", "params": "x"}),
    "an unknown notification": line({"method": "future/x", "params": {"threadId": "T"}}),
    "an empty line": b"\n",
    "blanks": b" \t\r\n",
}


@pytest.mark.parametrize("stray", STRAY.values(), ids=STRAY)
async def test_a_message_that_answers_nothing_we_asked_is_passed_by(stray: bytes) -> None:
    ending = await converse(Codex([started(), stray, message("ANSWER"), done()]))
    assert (ending.status, ending.final_text, ending.warnings) == ("completed", "ANSWER", ())


async def test_a_second_answer_to_the_same_request_changes_nothing() -> None:
    twice = line({"id": "$ID", "result": {"turn": {"id": "other"}}}) + line({"id": "$ID", "error": {"message": "no"}})
    ending = await end_of(twice, message("ANSWER"), done())
    assert (ending.status, ending.turn) == ("completed", "U")


WRONG_SHAPES = {
    "no item": notice("item/completed"),
    "an item that is a list": notice("item/completed", item=[]),
    "an id that is an object": notice(
        "item/completed", item={"type": "agentMessage", "id": {}, "text": "x", "phase": "commentary"}
    ),
    "a phase that is a number": notice("item/completed", item={"type": "agentMessage", "id": 3, "text": 5, "phase": 7}),
    "a delta that is a number": notice("item/agentMessage/delta", itemId="m", delta=5),
    "usage without numbers": notice("thread/tokenUsage/updated", tokenUsage={"total": {"totalTokens": "many"}}),
    "usage that is a list": notice("thread/tokenUsage/updated", tokenUsage=[1]),
    "a status that is a text": notice("thread/status/changed", status="idle"),
    "an error that is a text": notice("error", error="boom", willRetry=True),
    "limits without windows": notice(
        "account/rateLimits/updated",
        rateLimits={"primary": {"resetsAt": 5, "usedPercent": "x"}, "secondary": {"resetsAt": 7, "usedPercent": 3}},
    ),
    "a warning that is a number": notice("warning", message=5),
    "a turn that is null": notice("turn/started", turn=None),
    "a completed turn that is a text": notice("turn/completed", turn="U"),
    "a server without a name": notice("mcpServer/startupStatus/updated", status="failed"),
}


@pytest.mark.parametrize("wrong", WRONG_SHAPES.values(), ids=WRONG_SHAPES)
async def test_a_known_message_of_an_unknown_shape_does_no_harm(wrong: bytes) -> None:
    ending = await end_of(wrong, message("ANSWER"), done())
    assert (ending.status, ending.final_text) == ("completed", "ANSWER")


@pytest.mark.parametrize("end", [b"\r\n", b" \n", b"\n\n\n"], ids=["CR LF", "a blank", "empty lines"])
async def test_any_end_of_a_line_will_do(end: bytes) -> None:
    lines = [part.rstrip(b"\n") + end for part in (started(), message("ANSWER"), done())]
    assert (await converse(Codex(lines))).final_text == "ANSWER"


async def test_a_last_line_without_its_newline_counts_when_the_output_ends() -> None:
    codex = Codex([started(), message("ANSWER"), done().rstrip(b"\n")], ends=True)
    assert (await converse(codex)).status == "completed"


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_lines_are_the_same_whatever_the_reads_are(size: int) -> None:
    data = "é\n\n漢字 a\u2028b\r\n🎉🎉\nrest".encode()
    splitter, lines = LineSplitter(), []
    for start in range(0, len(data), size):
        lines += splitter.feed(data[start : start + size])
    assert b"\n".join([*lines, splitter.rest()]) == data
    assert splitter.rest() == b"rest"


def test_a_line_of_forty_megabytes_in_small_reads_costs_its_bytes_once() -> None:
    splitter, part = LineSplitter(), b"x" * 65536
    for _ in range(640):
        assert splitter.feed(part) == []
    (long,) = splitter.feed(b"\n")
    assert len(long) == 640 * 65536
    assert splitter.rest() == b""
