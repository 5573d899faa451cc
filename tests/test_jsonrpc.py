"""Requests and their answers over a channel: matching, endings, refusals. Serves rule.boundedAlways.

Odd bytes and lines: test_bytes.py. The channel is in memory.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from peer import LONG_S, Codex, line

from adapters.contract import PeerError
from adapters.jsonrpc import Peer, Refusal, RpcError

pytestmark = pytest.mark.rule("rule.boundedAlways")

NEVER_S = 0.05  # for an answer that doesn't come


class Heard:
    def __init__(self) -> None:
        self.notices: list[tuple[str, Any]] = []
        self.asked: list[tuple[str, Any]] = []
        self.refusal = Refusal(result={"decision": "decline"})
        self.ends = 0

    def on_request(self, method: str, params: Any) -> Refusal:
        self.asked.append((method, params))
        return self.refusal

    def on_end(self) -> None:
        self.ends += 1


@asynccontextmanager
async def talking(codex: Codex, heard: Heard) -> AsyncIterator[Peer]:
    peer = Peer(
        codex,
        on_notification=lambda method, params: heard.notices.append((method, params)),
        on_request=heard.on_request,
        on_end=heard.on_end,
    )
    with anyio.fail_after(LONG_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(peer.read)
            tasks.start_soon(peer.write)
            yield peer
            tasks.cancel_scope.cancel()


async def until(fact: Callable[[], Any]) -> None:
    with anyio.fail_after(LONG_S):
        while not fact():
            await anyio.lowlevel.checkpoint()


async def test_answers_find_their_requests_in_any_order() -> None:
    codex = Codex(answers={"a": None, "b": None})
    async with talking(codex, Heard()) as peer:
        first, second = peer.post("a", {}), peer.post("b", {})
        await until(lambda: len(codex.received) == 2)
        codex.say(line({"id": 2, "result": {"n": "b"}}) + line({"id": 1, "result": {"n": "a"}}))
        assert ((await first.wait(LONG_S))["n"], (await second.wait(LONG_S))["n"]) == ("a", "b")


async def test_true_is_not_the_id_one() -> None:
    codex = Codex(answers={"a": line({"id": True, "result": {"n": "wrong"}}) + line({"id": 1, "result": {"n": "a"}})})
    async with talking(codex, Heard()) as peer:
        assert await peer.request("a", {}, LONG_S) == {"n": "a"}
        assert peer.stray_messages == 1


async def test_an_answer_that_does_not_come_names_method_and_bound() -> None:
    async with talking(Codex(answers={"a": None}), Heard()) as peer:
        with pytest.raises(PeerError) as caught:
            await peer.request("a", {}, NEVER_S)
    assert (caught.value.reason, caught.value.message) == ("protocol", "Codex did not answer a within 0.05 s")


async def test_when_the_output_ends_every_waiter_wakes_with_one_error_and_later_ones_too() -> None:
    heard, errors = Heard(), list[Exception]()
    codex = Codex(answers={"a": None, "b": None})
    async with talking(codex, heard) as peer:
        pending = [peer.post("a", {}, on_error=errors.append), peer.post("b", {}, on_error=errors.append)]
        codex.end()
        for each in pending:
            with pytest.raises(PeerError, match="ended before it answered"):
                await each.wait(LONG_S)
        with pytest.raises(PeerError, match="ended before it answered late"):
            await peer.request("late", {}, LONG_S)
        assert (heard.ends, peer.ended, len(errors)) == (1, True, 2)


async def test_on_result_is_called_before_the_next_line_is_read() -> None:
    codex, heard, seen = Codex(answers={"a": None}), Heard(), list[int]()
    async with talking(codex, heard) as peer:
        peer.post("a", {}, on_result=lambda _: seen.append(len(heard.notices)))
        await until(lambda: codex.received)
        codex.say(line({"method": "x"}) + line({"id": 1, "result": {}}) + line({"method": "y"}))
        await until(lambda: len(heard.notices) == 2)
    assert seen == [1]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"error": {"code": -32600, "message": "no"}}, "no"),
        ({"error": {"message": ""}}, "error without a message"),
        ({"error": {"code": "x", "message": 5}}, "5"),
        ({"error": "text"}, "text"),
        ({"error": []}, "[]"),
    ],
)
async def test_an_error_of_the_peer_is_told_in_its_words(answer: dict[str, Any], message: str) -> None:
    async with talking(Codex(answers={"a": answer}), Heard()) as peer:
        with pytest.raises(RpcError) as caught:
            await peer.request("a", {}, LONG_S)
    assert (caught.value.method, caught.value.message) == ("a", message)


@pytest.mark.parametrize(
    "wire", ['{"id":1}', '{"id":1,"result":null}', '{"id":1,"result":[]}', '{"id":1,"error":null}']
)
async def test_an_answer_without_an_object_names_its_method(wire: str) -> None:
    async with talking(Codex(answers={"a": wire.encode() + b"\n"}), Heard()) as peer:
        with pytest.raises(PeerError, match="a: the answer has no result"):
            await peer.request("a", {}, LONG_S)


@pytest.mark.rule("rule.approvalsNever")
@pytest.mark.parametrize("ident", ["0", '"0"', "-1", '"abc"', "1.5", "[1]", "true", "9007199254740993"])
async def test_a_request_of_the_peer_is_declined_under_the_id_as_it_came(ident: str) -> None:
    codex, heard = Codex(), Heard()
    async with talking(codex, heard):
        codex.say(f'{{"method":"ask","id":{ident},"params":{{"a":1}}}}\n'.encode())
        await until(lambda: codex.received)
    assert heard.asked == [("ask", {"a": 1})]
    assert json.dumps(codex.received) == f'[{{"id": {ident}, "result": {{"decision": "decline"}}}}]'


@pytest.mark.rule("rule.approvalsNever")
async def test_what_cannot_be_declined_by_a_result_gets_an_error() -> None:
    codex, heard = Codex(), Heard()
    heard.refusal = Refusal(error="not here")
    async with talking(codex, heard):
        codex.say(line({"method": "ask", "id": 7}))
        await until(lambda: codex.received)
    assert codex.received == [{"id": 7, "error": {"code": -32601, "message": "not here"}}]


async def test_what_is_sent_is_ascii_json_on_one_line() -> None:
    class Raw(Codex):
        async def send(self, data: bytes) -> None:
            self.raw = data
            await super().send(data)

    codex = Raw(answers={"a": {}})
    async with talking(codex, Heard()) as peer:
        await peer.request("a", {"text": "é\u2028\n\ud83d"}, LONG_S)
    assert codex.raw.isascii()
    assert (codex.raw.count(b"\n"), codex.raw[-1:]) == (1, b"\n")
    assert codex.received[0]["params"]["text"] == "é\u2028\n\ud83d"


async def test_a_peer_that_reads_no_more_does_not_end_the_reading() -> None:
    class Broken(Codex):
        async def send(self, data: bytes) -> None:
            raise BrokenPipeError

    codex, heard = Broken(), Heard()
    async with talking(codex, heard) as peer:
        peer.notify("initialized")
        codex.say(line({"method": "still/there"}))
        await until(lambda: heard.notices)
    assert heard.notices == [("still/there", {})]
