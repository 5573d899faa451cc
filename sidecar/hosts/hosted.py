"""Turns that share one sidecar: what `serve` and `batch` have in common.

Owns: beginning a turn without holding up the others, its control and its outcome, the end of all.
Does not own: the turn itself (turn.py), who asked for it. Serves rule.serve, rule.batch.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import anyio
import anyio.to_thread

from adapters.contract import Event, Stop
from sidecar import paths
from sidecar.begin import Begun, begin
from sidecar.config import Settings
from sidecar.control import TurnControl
from sidecar.leftovers import tidy
from sidecar.outcome import Outcome
from sidecar.request import TurnRequest
from sidecar.store import Store
from sidecar.turn import Turn

FILES = 16384  # a turn has a dozen descriptors; the usual soft limit of 1024 is for programs that use select()


class Hosted:
    """One turn of many. `outcome` is there when `done` is set."""

    def __init__(self, begun: Begun, show: Callable[[Event], None]) -> None:
        self.job = begun.job.id
        self.control = TurnControl()
        self.turn = Turn(begun, self.control, show)
        self.done = anyio.Event()
        self.outcome: Outcome | None = None

    async def run(self) -> Outcome:
        try:
            self.outcome = await self.turn.run()
        finally:
            self.done.set()
        return self.outcome


class Host:
    """All turns of this process that run."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ = environ
        self.turns: dict[str, Hosted] = {}
        self._order = anyio.Lock()  # slots are taken in the order of asking
        self._stop: tuple[Stop, int | None] | None = None
        self._none_left = anyio.Event()
        self._tidy = False  # what dead turns had left was looked for

    async def begin(
        self, request: TurnRequest, settings: Settings, show: Callable[[str, Event], None], **fields: Any
    ) -> Hosted:
        """Raises Refused or UserError. What it answers has to be run."""
        async with self._order:
            if not self._tidy:
                await anyio.to_thread.run_sync(self._end_leftovers)
                self._tidy = True
            begun = await anyio.to_thread.run_sync(partial(begin, request, settings, self.environ, **fields))
        hosted = Hosted(begun, partial(show, begun.job.id))
        self.turns[hosted.job] = hosted
        if self._stop is not None:
            hosted.control.request_stop(self._stop[0], signum=self._stop[1])
        return hosted

    def _end_leftovers(self) -> None:
        """As every command that starts a turn does, once."""
        tidy.end_all(tidy.left_behind(Store(paths.state_dir(self.environ))))

    async def run(self, hosted: Hosted) -> Outcome:
        try:
            return await hosted.run()
        finally:
            del self.turns[hosted.job]
            self._none_left.set()

    def stop_all(self, stop: Stop, signum: int | None = None) -> None:
        """Ends every turn, also those that are still on their way here; a second time: at once."""
        self._stop = stop, signum
        for hosted in list(self.turns.values()):
            hosted.control.request_stop(stop, signum=signum)

    async def all_ended(self) -> None:
        while self.turns:
            self._none_left = anyio.Event()
            await self._none_left.wait()


def allow_many_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
