"""Bytes, endings, signals and children of the fake.

Does not test the adapter. Serves spec:cc-agents.fakes.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_client import PATIENCE_S, Fake, alive, wait_for

pytestmark = pytest.mark.rule("rule.fakeIsTrue")


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[Fake]:
    with Fake(tmp_path) as made:
        yield made


def test_text_is_exact_in_drips_in_length_and_after_garbage(fake: Fake) -> None:
    odd, long = "héllo 漢字 🎉\u2028", {"repeat": "ä", "times": 1_000_000}
    client = fake(
        [
            {"start": True},
            {"raw": {"hex": "e6870a"}},
            {"raw": {"text": '[]\n{"id":999,"result":{}}\n'}},
            {"msg": [odd, "commentary"], "drip": 1, "deltas": 3},
            {"msg": [long, "final_answer"], "deltas": []},
            {"done": "completed"},
        ]
    )
    client.turn(client.open())
    assert [client.line() for _ in range(2)][1], "status and turn/started"
    assert [client.line() for _ in range(3)] == [b"\xe6\x87", b"[]", b'{"id":999,"result":{}}']
    client.notice("turn/completed")
    texts = [i["item"]["text"] for i in client.said("item/completed")]
    assert texts == [odd, "ä" * 1_000_000]
    assert "".join(d["delta"] for d in client.said("item/agentMessage/delta")) == odd


def test_deltas_that_the_client_opted_out_of_are_not_sent(fake: Fake) -> None:
    client = fake([{"start": True}, {"flood": {"lines": 300, "deltas": "ab"}}, {"done": "completed"}])
    client.initialize(optOutNotificationMethods=["item/agentMessage/delta"])
    client.turn(client.call("thread/start")["thread"]["id"])
    assert client.notice("turn/completed")["turn"]["items"][0]["text"] == "ab" * 300
    assert not client.said("item/agentMessage/delta")


@pytest.mark.parametrize(
    ("crash", "code"),
    [({"exit": 0}, 0), ({"exit": 7}, 7), ({"signal": "KILL"}, -9), ({"signal": "SEGV"}, -11)],
)
def test_a_crash_ends_the_process_as_scripted(fake: Fake, crash: Any, code: int) -> None:
    client = fake([{"start": True}, {"stderr": {"text": "boom", "bytes": 10}}, {"crash": crash}])
    client.turn(client.open())
    assert client.process.wait(PATIENCE_S) == code
    assert client.stderr.read() == b"boom\nboom\n"


def test_end_of_input_ends_it_even_while_a_turn_stalls(fake: Fake) -> None:
    client = fake([{"start": True}, {"stall": True}])
    client.turn(client.open())
    assert client.hang_up() == 0
    assert fake.logged("eof") == [True]
    assert fake.logged("start")[0]["argv"] == ["app-server"]
    assert fake.logged("recv")[0]["method"] == "initialize"


def test_signals_end_it_as_they_end_codex_unless_it_ignores_them(fake: Fake) -> None:
    for number, code in ((signal.SIGTERM, 0), (signal.SIGINT, -signal.SIGINT)):
        client = fake()
        client.initialize()
        client.process.send_signal(number)
        assert client.process.wait(PATIENCE_S) == code
    client = fake({"ignore_signals": ["TERM"], "on_eof": "ignore"})
    client.initialize()
    client.process.send_signal(signal.SIGTERM)
    client.stdin.close()
    wait_for(lambda: len(fake.logged("signal")) == 3 and fake.logged("eof"))
    assert client.process.poll() is None


def test_its_output_can_end_while_it_lives_and_it_can_stop_reading(fake: Fake) -> None:
    client = fake([{"start": True}, {"close_stdout": True}, {"stall": {"deaf": True}}])
    client.turn(client.open())
    with pytest.raises(AssertionError, match="end of output"):
        client.notice("turn/completed")
    client.stdin.close()
    assert client.process.poll() is None
    assert not fake.logged("eof")


@pytest.mark.parametrize("shape", ["group", "setsid", "double_fork", "nohup", "ignore_term", "clean_env", "stopped"])
def test_spawned_processes_are_of_the_shape_asked_for(fake: Fake, shape: str) -> None:
    pids = fake.folder / "pids"
    step = {"spawn": {"shape": shape, "seconds": 60, "pid_file": str(pids), "count": 2}}
    client = fake([{"start": True}, step, {"done": "completed"}])
    client.turn(client.open())
    client.notice("turn/completed")
    children = [int(line) for line in pids.read_text().split()]
    try:
        assert len(set(children)) == 2
        own = client.process.pid
        leaves = shape in ("setsid", "double_fork", "clean_env")
        assert {os.getsid(c) == own for c in children} == {not leaves}
        assert client.hang_up() == 0
        assert all(alive(c) for c in children), "the fake ends none of them"
    finally:
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
