"""The peer: reads the client's lines and sees that each is answered, by the scenario or by the defaults.

Owns: standard input, order, end of input, signals. Does not own: answers (answers, turns), scripts (steps).
Serves spec:cc-agents.fakes. The main thread reads; every script plays in a thread of its own.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

from fake_app_server.answers import Answers, RpcError
from fake_app_server.config import Config, ConfigError, codex_home
from fake_app_server.replay import Replay
from fake_app_server.scenario import Scenario, Step
from fake_app_server.state import Thread, Turn
from fake_app_server.steps import Player
from fake_app_server.tomlflags import read_flags
from fake_app_server.turns import Turns
from fake_app_server.wire import Log, Message, Output, new_id

READ_SIZE = 1 << 20
# An ending process lets a line that is being written reach its end; a reader that has stopped gets no more time.
LAST_LINE_S = 0.2
PANIC = 101  # how a Rust program ends when it panics


class Server:
    def __init__(self, scenario: Scenario, config: Config, log: Log) -> None:
        self.scenario, self.log = scenario, log
        self.output = Output(log)
        self.answers = Answers(scenario, config, self.output)
        self.turns = Turns(self.answers, self.output)
        self.news = threading.Condition()  # guards the four below
        self.inbox: list[tuple[int, Message]] = []  # numbered: what a script may still expect
        self.seen = 0
        self.held: dict[str, int] = {}  # method -> how many of them a script will answer itself
        self.replies: dict[tuple[type, Any], Message] = {}  # the client's answers to our requests
        self.next_ask = 0
        self._initialized = False
        self._replied: dict[str, int] = {}
        self._deaf = False
        self._fatal: int | None = None
        self._wake_r, self._wake_w = os.pipe()
        self._defaults: dict[str, Callable[[Message], None]] = {
            "initialize": self._initialize,
            "config/read": lambda m: self._result(m, self.answers.config_read(m.get("params"))),
            "configRequirements/read": lambda m: self._result(m, {"requirements": None}),
            "model/list": lambda m: self._result(m, self.answers.model_list(m.get("params"))),
            "account/read": lambda m: self._result(m, self.answers.account_read(m.get("params"))),
            "thread/start": self._open,
            "thread/resume": self._open,
            "thread/read": lambda m: self._result(m, self.answers.thread_read(m.get("params"))),
            "thread/queue/list": lambda m: self._result(m, {"data": [], "nextCursor": None}),
            "thread/unsubscribe": lambda m: self._result(m, {"status": "unsubscribed"}),
            "turn/start": self._turn,
            "review/start": self._turn,
            "turn/steer": self._steer,
            "turn/interrupt": self._interrupt,
        }

    # --- reading -----------------------------------------------------------------------------------------

    def serve(self) -> NoReturn:
        self._catch_signals()
        self.play(self.scenario.on_start).run()
        if self.scenario.replay:
            Replay(self, self.scenario.replay).start()
        parts: list[bytes] = []
        while data := self._read():
            *lines, rest = data.split(b"\n")
            for line in lines:
                self._line(b"".join([*parts, line]))
                parts.clear()
            parts.append(rest)
        self.log.write(eof=True)
        if self.scenario.on_eof == "crash":
            self.exit(PANIC)
        if self.scenario.on_eof == "ignore":
            _for_ever()
        self.exit(0)

    def _read(self) -> bytes:
        select.select([0, self._wake_r], [], [])
        if self._deaf:
            _for_ever()
        return os.read(0, READ_SIZE)

    def go_deaf(self) -> None:
        """From now on nothing is read, not even the end of input: the client's pipe fills up."""
        self._deaf = True
        os.write(self._wake_w, b"x")

    def _line(self, line: bytes) -> None:
        try:
            message = json.loads(line)
            if not isinstance(message, dict) or not ("method" in message or {"result", "error"} & set(message)):
                raise ValueError("data did not match any variant of untagged enum JSONRPCMessage")
        except ValueError as error:
            self.log.write(bad=line.decode(errors="replace"))
            self.complain(f"ERROR Failed to deserialize JSONRPCMessage: {error}")
            return
        self.log.write(recv=message)
        self._dispatch(message)

    def _dispatch(self, message: Message) -> None:
        method = message.get("method")
        with self.news:
            if method is None:
                self.replies[(type(message.get("id")), message.get("id"))] = message
            else:
                self.seen += 1
                self.inbox.append((self.seen, message))
            held = self.held.get(method or "", 0) > 0
            self.news.notify_all()
        if method is None or held:
            self._initialized = self._initialized or method == "initialize"
        elif method in self.scenario.replies and self._scripted_reply(message):
            pass
        elif method in self.scenario.on:
            self.play(self.scenario.on[method], request=message).start()
        else:
            self.default(message)

    def _scripted_reply(self, message: Message) -> bool:
        """False if the list of replies for this method has been used up, or names the default."""
        method = message["method"]
        reply = self.scenario.replies[method]
        if isinstance(reply, list):
            at = self._replied.get(method, 0)
            self._replied[method] = at + 1
            reply = reply[at] if at < len(reply) else "default"
        if reply == "default":
            return False
        self._initialized = self._initialized or method == "initialize"
        if reply != "silence" and "id" in message:
            self.respond(message, reply)
        return True

    def respond(self, message: Message, reply: dict[str, Any], drip: int = 0) -> None:
        """`reply` is a result, or {"error": {...}}."""
        if set(reply) == {"error"}:
            self.output.send({"error": reply["error"], "id": message["id"]}, drip)
        else:
            self.output.send({"id": message["id"], "result": reply}, drip)

    # --- the defaults ------------------------------------------------------------------------------------

    def default(self, message: Message) -> None:
        if "id" not in message:
            return
        method = message["method"]
        try:
            if not self._initialized and method != "initialize":
                raise RpcError("Not initialized")
            answer = self._defaults.get(method)
            if answer is None:
                known = ", ".join(f"`{name}`" for name in self._defaults)
                raise RpcError(f"Invalid request: unknown variant `{method}`, expected one of {known}")
            answer(message)
        except RpcError as error:
            self.respond(message, {"error": {"code": error.code, "message": str(error)}})

    def _result(self, message: Message, result: dict[str, Any]) -> None:
        self.output.send({"id": message["id"], "result": result})

    def _initialize(self, message: Message) -> None:
        if self._initialized:
            raise RpcError("Already initialized")
        self._result(message, self.answers.initialize(message.get("params")))
        self._initialized = True
        quiet = {
            "status": "disabled",
            "serverName": "fake",
            "installationId": new_id(),
            "environmentId": None,
        }
        self.output.notify("remoteControl/status/changed", quiet)

    def _open(self, message: Message) -> None:
        params = message.get("params")
        opening = self.answers.thread_start if message["method"] == "thread/start" else self.answers.thread_resume
        answer = opening(params)
        self._result(message, answer)
        self.answers.after_opening(params, answer)

    def _turn(self, message: Message) -> None:
        begun = self.turns.begin(message)
        if begun is not None:
            thread, turn, number = begun
            steps = self.scenario.turn_steps(number)
            self.play(steps, request=message, thread=thread, turn=turn).start()

    def _steer(self, message: Message) -> None:
        thread, turn = self.turns.steered(message.get("params"))
        if self.scenario.on_steer is None:
            self.turns.take_steer(message, thread, turn)
        else:
            self.play(self.scenario.on_steer, request=message, thread=thread, turn=turn).start()

    def _interrupt(self, message: Message) -> None:
        thread, turn = self.turns.interrupted(message.get("params"))
        if turn is not None and self.scenario.on_interrupt is not None:
            self.play(self.scenario.on_interrupt, request=message, thread=thread, turn=turn).start()
            return
        self._result(message, {})
        if turn is not None:
            self.turns.stop(thread, turn)

    def play(
        self,
        steps: list[Step],
        request: Message | None = None,
        thread: Thread | None = None,
        turn: Turn | None = None,
    ) -> Player:
        """A script, ready to run; whatever it is going to answer itself is held back from now on."""
        params = (request or {}).get("params") or {}
        if thread is None and isinstance(params, dict):
            thread = self.answers.threads.get(str(params.get("threadId")))
        if turn is None and thread is not None and thread.turns:
            turn = thread.turns[-1]
        return Player(self, steps, request, thread, turn)

    # --- endings -----------------------------------------------------------------------------------------

    def _catch_signals(self) -> None:
        for name in ("TERM", "INT", "HUP"):
            if name != "HUP" or name in self.scenario.ignore_signals:
                signal.signal(getattr(signal, f"SIG{name}"), self._signal)

    def _signal(self, number: int, frame: FrameType | None) -> None:
        name = signal.Signals(number).name.removeprefix("SIG")
        self.log.write(signal=name)
        if number == self._fatal:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        if name in self.scenario.ignore_signals:
            return
        if name == "TERM":
            self.exit(0)
        signal.signal(number, signal.SIG_DFL)  # an interrupt from the keyboard kills Codex
        os.kill(os.getpid(), number)

    def die_of(self, name: str) -> NoReturn:
        """Ends by a signal that nothing catches. Only the main thread may change what a signal does."""
        number = getattr(signal, f"SIG{name.removeprefix('SIG')}")
        self._fatal = number
        os.kill(os.getpid(), number)
        _for_ever()

    def complain(self, text: str) -> None:
        try:
            os.write(2, text.encode(errors="replace") + b"\n")
        except OSError as error:  # nobody reads standard error any more
            self.log.write(stderr=str(error))

    def exit(self, code: int) -> NoReturn:
        self.output.finish_line(LAST_LINE_S)
        os._exit(code)


def _for_ever() -> NoReturn:
    while True:
        threading.Event().wait()


def start(scenario: Scenario, argv: list[str], log: Log) -> NoReturn:
    """Plays a scenario on this process' standard input and output, and ends the process."""
    home = os.environ.get("CODEX_HOME")
    if home and not os.path.isdir(home):
        sys.exit(f'Error: CODEX_HOME points to "{codex_home()}", but that path does not exist')
    try:
        config = Config(scenario.config, scenario.layers, read_flags(argv))
    except ConfigError as error:
        sys.exit(f"Error: {error}")
    Server(scenario, config, log).serve()
