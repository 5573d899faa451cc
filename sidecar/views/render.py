"""What a person or a program sees of a turn: the answer on stdout, one line per change of state on stderr.

Owns the three views (text, --json, --events) and the words of the lines. Does not own the writing (screen.py).
Serves rule.stdoutIsTheAnswer.
"""

from __future__ import annotations

import os
import time
import unicodedata
from collections.abc import Mapping

from adapters.contract import (
    BegunEvent,
    DeclinedEvent,
    Event,
    ItemEvent,
    StatusEvent,
    WarningEvent,
)
from sidecar import deadlines
from sidecar.outcome import Outcome
from sidecar.records import dump, event_record, outcome_record
from sidecar.views.screen import Screen, write_all
from sidecar.views.terminal import columns

STDOUT, STDERR = 1, 2
LINE_CHARS = 300  # of one status line where there is no terminal to say how wide
DIM, BOLD, PLAIN = "\x1b[2m", "\x1b[1m", "\x1b[0m"
CLEAR = "\r\x1b[K"
SHELLS = ("bash", "sh", "zsh")


def line_of(event: Event) -> str | None:
    """The line that an event is worth, None for most."""
    if isinstance(event, StatusEvent):
        return event.text
    if isinstance(event, BegunEvent):
        return "started"
    if isinstance(event, WarningEvent):
        return f"warning: {event.text}"
    if isinstance(event, DeclinedEvent):
        return f"declined: {event.method} {event.subject}".rstrip()
    if isinstance(event, ItemEvent):
        return _item_line(event)
    return None


def _item_line(event: ItemEvent) -> str | None:
    done = event.phase == "completed"
    if event.kind == "commandExecution":
        code = event.detail.get("exitCode")
        if done:
            return f"command ended with {code}: {command(event.text)}" if code else None
        return f"running: {command(event.text)}"
    if event.kind == "agentMessage":
        return event.text if done and event.detail.get("phase") == "commentary" else None
    words = {"fileChange": "editing files", "webSearch": "searching the web", "contextCompaction": "compacting"}
    return words.get(event.kind) if not done else None


def command(text: str) -> str:
    """What was asked for, without the shell around it: Codex tells `/bin/bash -lc 'ls -l'` of a plain `ls -l`."""
    shell, option, quoted = text.partition(" -lc ") if " -lc " in text else text.partition(" -c ")
    if not option or not shell.startswith("/") or shell.rpartition("/")[2] not in SHELLS:
        return text
    import shlex  # on use: it loads `re`, and a turn may run no command

    try:
        words = shlex.split(quoted)
    except ValueError:  # quoted in another way than ours to read
        return text
    return words[0] if len(words) == 1 else text


class View:
    """One way of showing a turn. `event` never raises and never waits; `outcome` writes the last word."""

    attended = False  # by a program: the turn ends when nobody reads it any more

    def __init__(self, environ: Mapping[str, str], *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._began = time.monotonic()
        self._terminal = os.isatty(STDERR) and environ.get("TERM") != "dumb"
        self._colour = self._terminal and not environ.get("NO_COLOR")
        self._current: tuple[str, float] | None = None
        self.screen = Screen(on_tick=self._redraw if self._terminal and not quiet else None)

    def event(self, event: Event) -> None:
        line = line_of(event)
        if line is not None:
            self.line(line, stays=isinstance(event, WarningEvent | DeclinedEvent))

    def line(self, text: str, *, stays: bool = False) -> None:
        """One line on stderr; on a terminal the next one takes its place, unless it `stays`."""
        if self._quiet:
            return
        text = _printable(text)
        if not self._terminal:
            at = time.monotonic() - self._began
            self.screen.write(STDERR, f"cc-agents: {at:5.1f}s {_cut(text, LINE_CHARS)}\n".encode())
        elif stays:
            self.screen.write(STDERR, f"{CLEAR}cc-agents: {text}\n".encode())
            self._redraw()
        else:
            self._current = (text, time.monotonic())
            self._redraw()

    def outcome(self, outcome: Outcome) -> bool:
        """False when stdout could not be written."""
        self._clear()
        if outcome.status != "completed" and outcome.error is not None:
            for line in outcome.error.message.splitlines():
                self.last_line(f"{outcome.status}: {line}")
        done = self.screen.finish(deadlines.SCREEN_FLUSH_S) and self.screen.broken is None
        if not done:
            return False
        try:
            self.answer(outcome)
        except OSError:
            return False
        return True

    def answer(self, outcome: Outcome) -> None:
        """The final text and not one byte more."""
        if outcome.status == "completed":
            write_all(STDOUT, outcome.final_text.encode())

    def last_line(self, text: str) -> None:
        """A line that stays, also where the others are kept quiet."""
        self.screen.write(STDERR, f"cc-agents: {_printable(text)}\n".encode())

    def _clear(self) -> None:
        if self._current is not None:
            self._current = None
            self.screen.write(STDERR, CLEAR.encode())

    def _redraw(self) -> None:
        current = self._current
        if current is None:
            return
        text, since = current
        now = time.monotonic()
        work = f" ({now - since:.0f}s)" if now - since >= 2 else ""
        head = f"{now - self._began:4.0f}s "
        room = max(20, columns(STDERR) - len(head) - len(work) - 1)
        dim, plain = (DIM, PLAIN) if self._colour else ("", "")
        self.screen.write(STDERR, f"{CLEAR}{dim}{head}{plain}{_cut(text, room)}{dim}{work}{plain}".encode())


class JsonView(View):
    """--json: one outcome object, whatever the outcome is."""

    def answer(self, outcome: Outcome) -> None:
        write_all(STDOUT, dump(outcome.to_json()))


class EventsView(View):
    """--events: one JSON event a line as it happens, the outcome last.

    Attended, a program hears at least every `ALIVE_S` that the turn lives.
    """

    def __init__(self, environ: Mapping[str, str], *, quiet: bool = False, attended: bool = False) -> None:
        super().__init__(environ, quiet=quiet)
        self.attended = attended
        self._wrote = time.monotonic()
        if attended:
            self.screen = Screen(on_tick=self._alive)

    def event(self, event: Event) -> None:
        self._wrote = time.monotonic()
        self.screen.write(STDOUT, dump(event_record(event)))
        super().event(event)

    def _alive(self) -> None:
        if self._terminal and not self._quiet:
            self._redraw()
        if time.monotonic() - self._wrote >= deadlines.ALIVE_S:
            self._wrote = time.monotonic()
            self.screen.write(STDOUT, dump({"event": "alive", "at": round(time.time(), 3)}))

    def answer(self, outcome: Outcome) -> None:
        write_all(STDOUT, dump(outcome_record(outcome)))


def _printable(text: str) -> str:
    """One line without control characters: what Codex or a command said must not drive the terminal."""
    return "".join(c if c.isprintable() else " " for c in " ".join(text.split()))


def _cut(text: str, room: int) -> str:
    """At most `room` columns: a line that wraps can't be rewritten in place."""
    if len(text) * 2 <= room:
        return text
    taken = 0
    for index, char in enumerate(text):
        taken += 2 if unicodedata.east_asian_width(char) in "WF" else 1
        if taken > room:
            return text[: max(0, index - 1)] + "…"
    return text
