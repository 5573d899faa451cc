"""The event stream of one answer of the scripted model: the parts of a step as server-sent events.

Owns: the events of the Responses API, their order, and silence. Does not own: HTTP, or what is said.
Events are gathered and written in large pieces. Standard library only.
"""

from __future__ import annotations

import json
import select
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from tests_live.script import Body, Cut, Item, Silence, Step, Terminal

HANG_UP_CHECK_S = 0.05  # how soon a silence notices that the client went away or its event was set
FLUSH_BYTES = 1 << 18  # small events are sent together: 20,000 deltas are not 20,000 packets


class Stream:
    """The events of one answer, gathered and written in large pieces."""

    def __init__(self, connection: socket.socket, closing: threading.Event, hung_up: Callable[[], None]) -> None:
        self._connection = connection
        self._closing = closing
        self._hung_up = hung_up
        self._pending = bytearray()

    def play(self, answer: Step, body: Body) -> None:
        response: dict[str, Any] = {"id": f"resp_{time.monotonic_ns()}"}
        self._event("response.created", response=response)
        for index, part in enumerate(answer.parts):
            if isinstance(part, Item):
                self._item(index, part, body)
            elif isinstance(part, Silence):
                if not self._wait(part.until):
                    return
            elif isinstance(part, Terminal):
                self._event(part.event, **part.fields)
                return self._flush()
            elif isinstance(part, Cut):
                return self._flush()
            else:
                raise TypeError(f"{part!r} must be the first part of a step")
        if answer.usage is not None:
            response["usage"] = answer.usage
        self._event("response.completed", response=response)
        self._flush()

    def _item(self, index: int, part: Item, body: Body) -> None:
        made = part.make(body)
        begun = {**made, "content": []} if made["type"] == "message" else made
        self._event("response.output_item.added", output_index=index, item=begun)
        for delta in part.deltas:
            at = {"item_id": made["id"], "output_index": index, "content_index": 0}
            self._event("response.output_text.delta", **at, delta=delta)
        self._event("response.output_item.done", output_index=index, item=made)

    def _event(self, name: str, **fields: Any) -> None:
        data = json.dumps({"type": name, **fields}, ensure_ascii=False)
        self._pending += f"event: {name}\ndata: {data}\n\n".encode()
        if len(self._pending) >= FLUSH_BYTES:
            self._flush()

    def _flush(self) -> None:
        self._connection.sendall(self._pending)
        self._pending = bytearray()

    def _wait(self, until: threading.Event) -> bool:
        """False when the client hung up or the model is closing."""
        self._flush()
        while not until.is_set():
            readable, _, _ = select.select([self._connection], [], [], HANG_UP_CHECK_S)
            if self._closing.is_set():
                return False
            if readable and self._is_gone():
                self._hung_up()
                return False
        return True

    def _is_gone(self) -> bool:
        try:
            return not self._connection.recv(1, socket.MSG_PEEK)
        except ConnectionError:  # a killed client resets the connection instead of ending it
            return True
