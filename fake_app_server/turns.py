"""turn/start, turn/steer and turn/interrupt as Codex 0.171 takes and refuses them.

Owns: whether such a request is accepted, and what follows when the scenario says nothing else.
Does not own: the script of a turn (steps), other requests (answers). Serves spec:cc-agents.fakes.
"""

from __future__ import annotations

import threading
from typing import Any

from fake_app_server import items
from fake_app_server.answers import Answers, RpcError, need
from fake_app_server.state import Table, Thread, Turn
from fake_app_server.wire import Message, Output, new_id


class Turns:
    """The turns of all threads. `gate` makes sure that nothing of a turn follows its turn/completed."""

    def __init__(self, answers: Answers, output: Output) -> None:
        self._answers, self._output = answers, output
        self._count = 0
        self.gate = threading.RLock()
        self.requests: dict[str, Message] = {}  # turn id -> its turn/start, until that is answered
        self.strangers: dict[tuple[str, str], Turn] = {}  # turns of threads that only the script knows

    def thread(self, params: Table) -> Thread:
        found = self._answers.threads.get(params["threadId"])
        if found is None:
            raise RpcError(f"thread not found: {params['threadId']}")
        return found

    def begin(self, message: Message) -> tuple[Thread, Turn, int] | None:
        """Takes a turn/start. None: a turn was running, so it was a steer, and is answered."""
        review = message.get("method") == "review/start"
        params = need(message.get("params"), "threadId", "target" if review else "input")
        params.setdefault("input", [])
        thread = self.thread(params)
        for field in ("model", "effort"):
            if params.get(field):
                setattr(thread, field, params[field])
        with self.gate:
            running = thread.running
            if running is not None:
                self._output.send({"id": message["id"], "result": {"turn": running.to_wire()}})
                self._show_steer(thread, running, params["input"])
                return None
            scenario, number = self._answers.scenario, self._count
            self._count += 1
            turn = Turn(scenario.turn_id(number) or new_id(), params["input"])
            thread.turns.append(turn)
            self.requests[turn.id] = message
            self._answers.store.save(thread)
        return thread, turn, number

    def accept(self, turn: Turn) -> None:
        """Answers the turn/start of this turn, once."""
        message = self.requests.pop(turn.id, None)
        if message is not None:
            turn.accepted = True
            more = {"reviewThreadId": message["params"]["threadId"]} if message["method"] == "review/start" else {}
            self._output.send({"id": message["id"], "result": {"turn": turn.to_wire(), **more}})

    def announce(self, thread: Thread, turn: Turn) -> None:
        turn.started = True
        self.status(thread.id, {"type": "active", "activeFlags": []})
        self._output.notify("turn/started", {"threadId": thread.id, "turn": turn.to_wire()})

    def status(self, thread_id: str, status: Table) -> None:
        thread = self._answers.threads.get(thread_id)
        if thread is not None:
            thread.status = status
        self._output.notify("thread/status/changed", {"threadId": thread_id, "status": status})

    def save(self, thread_id: str) -> None:
        thread = self._answers.threads.get(thread_id)
        if thread is not None:
            self._answers.store.save(thread)

    def end(self, thread_id: str, turn: Turn, status: str, error: Table | None, silent: bool = False) -> None:
        """Ends a turn: the status of its thread, then turn/completed, which never carries usage."""
        with self.gate:
            turn.end(status, error)
            self.save(thread_id)
            turn.over.set()
            if not silent:
                self.settle(thread_id, turn, status == "failed")
                completed = {"threadId": thread_id, "turn": turn.summary()}
                self._output.notify("turn/completed", completed)

    def settle(self, thread_id: str, turn: Turn, failed: bool) -> None:
        if not turn.settled:
            turn.settled = True
            self.status(thread_id, {"type": "systemError" if failed else "idle"})

    def stop(self, thread: Thread, turn: Turn) -> None:
        """What an interrupt does by itself."""
        with self.gate:
            self.accept(turn)
            self.end(thread.id, turn, "interrupted", None)

    def steered(self, params: Any) -> tuple[Thread, Turn]:
        """The turn that a turn/steer is for. Raises RpcError as Codex refuses one."""
        given = need(params, "threadId", "expectedTurnId", "input")
        thread = self.thread(given)
        turn = thread.running
        if turn is None or not turn.accepted:
            raise RpcError("no active turn to steer")
        if turn.id != given["expectedTurnId"]:
            raise RpcError(f"expected active turn id `{given['expectedTurnId']}` but found `{turn.id}`")
        return thread, turn

    def interrupted(self, params: Any) -> tuple[Thread, Turn | None]:
        """The turn that a turn/interrupt is for; an empty turnId means whatever runs, or nothing."""
        given = need(params, "threadId", "turnId")
        thread = self.thread(given)
        turn = thread.running
        if given["turnId"] == "":
            return thread, turn
        if turn is None or not turn.started or turn.id != given["turnId"]:
            raise RpcError("no active turn to interrupt")
        return thread, turn

    def take_steer(self, message: Message, thread: Thread, turn: Turn) -> None:
        with self.gate:
            self._output.send({"id": message["id"], "result": {"turnId": turn.id}})
            self._show_steer(thread, turn, message["params"]["input"])

    def _show_steer(self, thread: Thread, turn: Turn, content: list[Any]) -> None:
        if turn.started:
            self.show_input(thread.id, turn, content)
        else:
            turn.steers.append(content)

    def show_input(self, thread_id: str, turn: Turn, content: list[Any]) -> None:
        item = items.user_message(content)
        self.item(thread_id, turn, item, "started")
        self.item(thread_id, turn, items.ended(item), "completed")

    def item(self, thread_id: str, turn: Turn, item: Table, state: str, drip: int = 0) -> None:
        """item/started or item/completed; a completed one belongs to the turn from then on."""
        where = {"item": item, "threadId": thread_id, "turnId": turn.id}
        if state == "started":
            params = {**where, "startedAtMs": item.get("startedAtMs")}
        else:
            turn.items.append(item)
            self.save(thread_id)
            params = {**where, "contentTokenCount": None, "completedAtMs": item.get("completedAtMs")}
        self._output.notify(f"item/{state}", params, drip)
