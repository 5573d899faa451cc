"""What a person sees: one plain line a change of state, and the bytes of the answer. Serves rule.stdoutIsTheAnswer."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest

from adapters.contract import BegunEvent, DeclinedEvent, Event, ItemEvent, StatusEvent, TextDelta, WarningEvent
from sidecar.views import render
from sidecar.views.screen import Screen, write_all

pytestmark = pytest.mark.rule("rule.stdoutIsTheAnswer")

BIG = b"0123456789abcdef" * 65_536  # a MiB: more than any pipe takes at once
BOUND_S = 30.0


def item(kind: str, when: str, text: str = "", **detail: object) -> ItemEvent:
    return ItemEvent(item="i", kind=kind, phase=when, text=text, detail=detail)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (StatusEvent(state="s", text="waiting"), "waiting"),
        (BegunEvent(thread="T", turn="U"), "started"),
        (WarningEvent(text="odd"), "warning: odd"),
        (DeclinedEvent(method="m", subject="git push"), "declined: m git push"),
        (DeclinedEvent(method="m", subject=""), "declined: m"),
        (item("commandExecution", "started", "ls"), "running: ls"),
        (item("commandExecution", "started", """/bin/bash -lc 'rg "a b" src'"""), 'running: rg "a b" src'),
        (item("commandExecution", "started", "/bin/bash -lc ls -l"), "running: /bin/bash -lc ls -l"),
        (item("commandExecution", "started", "/usr/bin/zsh -c 'it"), "running: /usr/bin/zsh -c 'it"),
        (item("commandExecution", "completed", "ls", exitCode=0), None),
        (item("commandExecution", "completed", "/bin/sh -c ls", exitCode=2), "command ended with 2: ls"),
        (item("agentMessage", "completed", "looking", phase="commentary"), "looking"),
        (item("agentMessage", "completed", "ANSWER", phase="final_answer"), None),
        (item("fileChange", "started"), "editing files"),
        (item("thing_of_tomorrow", "started"), None),
        (TextDelta(item="i", text="x"), None),
    ],
)
def test_an_event_is_worth_one_line_or_none(event: Event, line: str | None) -> None:
    assert render.line_of(event) == line


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    for fd in (reading, writing):
        try:
            os.close(fd)
        except OSError:  # the test has closed it
            continue


def read_all(fd: int, into: bytearray) -> threading.Thread:
    def read() -> None:
        while data := os.read(fd, 65_536):
            into.extend(data)

    thread = threading.Thread(target=read)
    thread.start()
    return thread


@pytest.mark.parametrize("blocking", [True, False])
def test_everything_is_written_also_to_an_end_that_does_not_block(pipe: tuple[int, int], blocking: bool) -> None:
    reading, writing = pipe
    os.set_blocking(writing, blocking)
    found = bytearray()
    reader = read_all(reading, found)
    write_all(writing, BIG)
    os.close(writing)
    reader.join(BOUND_S)
    assert bytes(found) == BIG


def test_a_reader_that_went_away_is_an_error(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    os.close(reading)
    with pytest.raises(BrokenPipeError):
        write_all(writing, b"x")


def test_the_screen_writes_in_order_and_says_when_it_is_done(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    screen = Screen()
    for n in range(100):
        screen.write(writing, b"%d\n" % n)
    assert screen.finish(BOUND_S)
    assert os.read(reading, 65_536) == b"".join(b"%d\n" % n for n in range(100))


def test_a_reader_that_is_stuck_holds_the_screen_and_nobody_else(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    screen = Screen()
    screen.write(writing, BIG)
    assert screen.finish(0.05) is False
    found = bytearray()
    reader = read_all(reading, found)
    assert screen.finish(BOUND_S)
    os.close(writing)
    reader.join(BOUND_S)
    assert bytes(found) == BIG
