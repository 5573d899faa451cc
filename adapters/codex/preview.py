"""Asks Codex what a turn would be, and starts no thread. Owns the control and events that such a talk doesn't need."""

from __future__ import annotations

import anyio

from adapters.codex.conversation import Conversation
from adapters.contract import Channel, Event, Limits, Preview, Resolved, Steer, Stop


class NoControl:
    """Nobody stops or steers a talk that starts no turn; it is bounded by its own deadlines."""

    stop: Stop | None = None

    def next_steer(self) -> Steer | None:
        return None

    async def wait(self) -> None:
        await anyio.sleep_forever()


def no_events(_: Event) -> None:
    """Nothing happens in such a talk that a person would want a line of."""


async def ask(channel: Channel, resolved: Resolved, limits: Limits) -> Preview:
    return await Conversation(channel, resolved, no_events, NoControl(), limits).preview()
