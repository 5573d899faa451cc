"""Plays the steps of a script, one after the other, in a thread of its own.

Owns: waiting, and the steps that are about the process and the wire. The steps that speak of a turn are in
turnsteps. Does not own: when a script starts (server). Serves spec:cc-agents.fakes.
"""

from __future__ import annotations

import os
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fake_app_server import turnsteps
from fake_app_server.scenario import Step, verb_of
from fake_app_server.spawn import spawn
from fake_app_server.state import Thread, Turn
from fake_app_server.wire import FLOOD_CHUNK, Message, encode, now_ms

if TYPE_CHECKING:
    from fake_app_server.server import Server

# How often a waiting script looks whether its file is there or its turn is over.
POLL_S = 0.01
MISMATCH = 65
UNPLAYABLE = 70


class Stopped(Exception):
    """The turn of this script is over, so the script is. Raised inside a step, ends the script."""


def held_methods(steps: list[Step]) -> list[str]:
    """The methods that a script expects and replies to itself; the defaults leave these alone."""
    held = []
    for at, step in enumerate(steps):
        if "expect" in step:
            method = expected(step)[0]
            for later in steps[at + 1 :]:
                if "expect" in later and expected(later)[0] == method:
                    break
                if "reply" in later and later["reply"].get("method", method) == method:
                    held.append(method)
                    break
    return held


def expected(step: Step) -> tuple[str, dict[str, Any]]:
    value = step["expect"]
    return (value, {}) if isinstance(value, str) else (value["method"], value.get("params") or {})


def contains(whole: Any, part: Any) -> bool:
    """Whether a message has at least what is expected of it."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(k in whole and contains(whole[k], v) for k, v in part.items())
    return bool(whole == part)


class Player:
    """One script with what it is about: the request it answers, its thread and its turn."""

    def __init__(
        self,
        server: Server,
        steps: list[Step],
        request: Message | None,
        thread: Thread | None,
        turn: Turn | None,
    ) -> None:
        self.server, self.steps = server, steps
        self.output, self.turns = server.output, server.turns
        self.request, self.thread, self.turn = request, thread, turn
        self.answered: dict[str, Message] = {}  # method -> the last request of it that was expected
        # the script of a turn ends with the turn, every other one by itself
        plays_turn = (
            request is not None and request.get("method") in ("turn/start", "review/start") and turn is not None
        )
        self.stop = turn.over if plays_turn and turn is not None else threading.Event()
        with server.news:
            self.since = server.seen  # what came before this script is none of its business
            self.holds = held_methods(steps)
            for method in self.holds:
                server.held[method] = server.held.get(method, 0) + 1

    def start(self) -> None:
        threading.Thread(target=self.run, daemon=True).start()

    def run(self) -> None:
        try:
            self.play(self.steps)
        except Stopped:
            pass
        except Exception:  # a script that can't be played must not look like a silent server
            self.server.complain(traceback.format_exc())
            self.server.exit(UNPLAYABLE)
        finally:
            for method in list(self.holds):
                self._release(method)

    def play(self, steps: list[Step]) -> None:
        for step in steps:
            self.check()
            verb = verb_of(step)
            own: Callable[[Step], None] | None = getattr(self, f"do_{verb}", None)
            if own is not None:
                own(step)
            else:
                turnsteps.STEPS[verb](self, step)

    # --- waiting -----------------------------------------------------------------------------------------

    def check(self) -> None:
        if self.stop.is_set():
            raise Stopped

    @contextmanager
    def speaking(self) -> Iterator[None]:
        """Nothing of a turn is said after its turn/completed, unless this very script has ended it."""
        with self.turns.gate:
            self.check()
            yield

    def keep_on(self) -> None:
        """The turn is about to end and this script with it: it plays its remaining steps all the same."""
        self.stop = threading.Event()

    def pause(self, seconds: float | None) -> None:
        if self.stop.wait(seconds):
            raise Stopped

    def until(self, found: Callable[[], Any]) -> Any:
        """Waits on the server's news until `found` has something."""
        with self.server.news:
            while (got := found()) is None:
                self.check()
                self.server.news.wait(POLL_S if self.turn else None)
        return got

    def _release(self, method: str) -> None:
        with self.server.news:
            if method in self.holds:
                self.holds.remove(method)
                self.server.held[method] -= 1

    # --- steps: the client's messages --------------------------------------------------------------------

    def do_expect(self, step: Step) -> None:
        method, params = expected(step)

        def take() -> Message | None:
            for entry in self.server.inbox:
                number, message = entry
                fits = number > self.since and message["method"] == method
                if fits and contains(message.get("params") or {}, self.fill(params)):
                    self.server.inbox.remove(entry)
                    return message
            return None

        self.request = self.until(take)
        self.answered[method] = self.request
        self._release(method)

    def do_reply(self, step: Step) -> None:
        reply = step["reply"]
        request = self.answered.get(reply["method"]) if "method" in reply else self.request
        if request is None:
            raise RuntimeError(f"nothing to reply to: {step}")
        if reply.get("default"):
            self.server.default(request)
            self.thread = self.thread or next(reversed(self.server.answers.threads.values()), None)
            return
        wire = {"error": reply["error"]} if "error" in reply else self.fill(reply.get("result", {}))
        if self.turn is not None and self.turns.requests.get(self.turn.id) is request:
            del self.turns.requests[self.turn.id]
            self.turn.accepted = "error" not in reply
        self.server.respond(request, wire, step.get("drip", 0))

    def do_ask(self, step: Step) -> None:
        ask = step["ask"]
        with self.server.news:
            ask_id = ask.get("id", self.server.next_ask)
            self.server.next_ask += "id" not in ask
        params = self.fill(ask.get("params", {}))
        approval = ask["method"].endswith("/requestApproval") and self.thread is not None
        with self.speaking():
            if approval:
                self._flags("waitingOnApproval")
            self.output.send({"method": ask["method"], "id": ask_id, "params": params})
        if not ask.get("wait", True):
            return
        answer = self.until(lambda: self.server.replies.pop((type(ask_id), ask_id), None))
        self.server.log.write(asked=ask["method"], id=ask_id, answer=answer)
        if "expect_result" in ask and not contains(answer.get("result"), ask["expect_result"]):
            self.server.complain(f"fake: {ask['method']} was answered {answer}, not {ask['expect_result']}")
            self.server.exit(MISMATCH)
        with self.speaking():
            thread_id = self.thread.id if self.thread else ""
            self.output.notify("serverRequest/resolved", {"threadId": thread_id, "requestId": ask_id})
            if approval:
                self._flags()

    def _flags(self, *flags: str) -> None:
        if self.thread is not None:
            self.turns.status(self.thread.id, {"type": "active", "activeFlags": list(flags)})

    # --- steps: the wire and the process -----------------------------------------------------------------

    def fill(self, value: Any) -> Any:
        """Puts the ids in for `$thread` and `$turn`, and the working directory for `$cwd`."""
        if isinstance(value, str):
            if "$" in value:
                thread = self.thread or next(reversed(self.server.answers.threads.values()), None)
                value = value.replace("$thread", thread.id if thread else "")
                value = value.replace("$turn", self.turn.id if self.turn else "")
                value = value.replace("$cwd", thread.cwd if thread else os.getcwd())
            return value
        if isinstance(value, list):
            return [self.fill(part) for part in value]
        if isinstance(value, dict):
            return {key: self.fill(part) for key, part in value.items()}
        return value

    def do_notify(self, step: Step) -> None:
        with self.speaking():
            notice = step["notify"]
            self.output.notify(notice["method"], self.fill(notice.get("params", {})), step.get("drip", 0))

    def do_wait(self, step: Step) -> None:
        value = step["wait"]
        if isinstance(value, (int, float)):
            self.pause(value)
        elif "seconds" in value:
            self.pause(value["seconds"])
        else:
            while not os.path.exists(value["file"]):
                self.pause(POLL_S)

    def do_raw(self, step: Step) -> None:
        raw = step["raw"]
        data = bytes.fromhex(raw["hex"]) if "hex" in raw else self.fill(raw["text"]).encode()
        self.output.raw(data, raw.get("drip", 0), raw.get("pause_s", 0.0))

    def do_stall(self, step: Step) -> None:
        if isinstance(step["stall"], dict) and step["stall"].get("deaf"):
            self.server.go_deaf()
        self.pause(None)

    def do_crash(self, step: Step) -> None:
        crash = step["crash"]
        if "signal" in crash:
            self.server.die_of(crash["signal"])
        self.server.exit(crash.get("exit", 1))

    def do_close_stdout(self, step: Step) -> None:
        self.output.close()

    def do_stop_turn(self, step: Step) -> None:
        if self.turn is not None:
            self.turn.over.set()

    def do_stderr(self, step: Step) -> None:
        value = step["stderr"]
        given: dict[str, Any] = {"text": value} if isinstance(value, str) else value
        text = given.get("text", "fake: a line on standard error").encode() + b"\n"
        left = given.get("bytes", len(text))
        while left > 0:
            left -= os.write(2, (text * (FLOOD_CHUNK // len(text) + 1))[: min(left, FLOOD_CHUNK)])

    def do_spawn(self, step: Step) -> None:
        spawn(**step["spawn"])

    def do_repeat(self, step: Step) -> None:
        times = step["repeat"].get("times")
        while times is None or times > 0:
            self.check()
            self.play(step["repeat"]["steps"])
            times = None if times is None else times - 1

    def do_flood(self, step: Step) -> None:
        """Many lines as fast as the reader takes them; each is the same, so that making them costs nothing."""
        flood = step["flood"]
        if "deltas" in flood:
            turnsteps.flood_deltas(self, flood["deltas"], flood["lines"])
            return
        if "text" in flood:
            line = flood["text"].encode() + b"\n"
        else:
            method = flood.get("method", "future/flood")
            params = self.fill(flood.get("params", {"pad": "x" * flood.get("size", 0)}))
            line = encode({"method": method, "params": params, "emittedAtMs": now_ms()}) + b"\n"
        self.many(line, flood["lines"])

    def many(self, line: bytes, lines: int) -> None:
        at_once = max(1, FLOOD_CHUNK // len(line))
        while lines > 0:
            with self.speaking():
                self.output.raw(line * min(lines, at_once))
            lines -= at_once
