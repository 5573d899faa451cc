"""What reaches a running turn from outside: a stop, and texts that steer it.

Owns `TurnControl`, the sidecar's side of adapters.contract.Control. The first stop counts; a later one only makes
the end come at once. Serves rule.interruptConfirmed, rule.steer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import anyio

from adapters.contract import Steer, Stop


class TurnControl:
    def __init__(self) -> None:
        self._stop: Stop | None = None
        self._steers: deque[Steer] = deque()
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

    def steer(self, steer: Steer) -> None:
        self._steers.append(steer)
        self._wake()

    def next_steer(self) -> Steer | None:
        return self._steers.popleft() if self._steers else None

    async def wait(self) -> None:
        await self._changed.wait()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
