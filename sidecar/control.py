"""What reaches a running turn from outside: a stop, and texts that steer it.

Owns `TurnControl`, the sidecar's side of adapters.contract.Control. The first stop counts; a later one only makes
the end come at once. Serves rule.interruptConfirmed, rule.steer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import anyio

from adapters.contract import Steer, Stop


class PendingSteer:
    """A text on its way into a turn, until it is answered: taken (`refusal` is None) or not."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.answered = anyio.Event()
        self.refusal: str | None = None

    def accept(self) -> None:
        self.answered.set()

    def refuse(self, why: str) -> None:
        if not self.answered.is_set():
            self.refusal = why
            self.answered.set()


class TurnControl:
    def __init__(self) -> None:
        self._stop: Stop | None = None
        self._steers: deque[PendingSteer] = deque()
        self._given: list[PendingSteer] = []  # to the adapter
        self._closed: str | None = None
        self._changed = anyio.Event()
        self.signal: int | None = None  # the signal that asked for the stop, if one did
        self.on_second_stop: Callable[[], None] | None = None

    @property
    def stop(self) -> Stop | None:
        return self._stop

    def request_stop(self, stop: Stop, *, signum: int | None = None) -> None:
        if self._stop is not None:
            if self.on_second_stop is not None:
                self.on_second_stop()
            return
        self._stop, self.signal = stop, signum
        self._wake()

    def steer(self, steer: PendingSteer) -> None:
        if self._closed is not None:
            steer.refuse(self._closed)
            return
        self._steers.append(steer)
        self._wake()

    def next_steer(self) -> Steer | None:
        if not self._steers:
            return None
        self._given.append(steer := self._steers.popleft())
        return steer

    def withdraw(self, steer: PendingSteer) -> None:
        """Take a text back that the adapter has not been given; one that it has goes its way."""
        if steer in self._steers:
            self._steers.remove(steer)
            steer.refuse("it was taken back")

    def refuse_steers(self, why: str) -> None:
        """The turn is over: what waits is refused, what was given and not answered may or may not have arrived."""
        self._closed = why
        for steer in self._steers:
            steer.refuse(why)
        for steer in self._given:
            steer.refuse(f"{why} before Codex answered; it may have taken the text")
        self._steers.clear()

    async def wait(self) -> None:
        await self._changed.wait()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
