"""A home of the live suite for a benchmark: our command in it, and the end of all that lives there.

Does not own the folders and finding processes by them (tests_live/homes.py) or which codex is there (codex_world,
fake_world).
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks.measure import BadRun, command_of
from tests_live.homes import Home, alive_in, still_alive

GONE_S = 5.0  # for what was killed to be gone; on a loaded machine too


class World:
    def __init__(self, root: Path, ours: Sequence[str]) -> None:
        self.home = Home.below(root)
        self.root, self.work, self.codex_home = root, self.home.work, self.home.codex_home
        self._ours = list(ours)
        self.codex: Path
        self.env = self.home.environ()
        venv = Path(sys.prefix)
        if (venv / "made" / "for").exists():  # bin/cc-agents takes it too, if a start script has made it
            self.env["CC_AGENTS_VENV"] = str(venv)

    def ours(self, *words: str) -> list[str]:
        return [*self._ours, *words]

    def alive(self) -> dict[int, list[str]]:
        """Every process of this world: pid and command line."""
        return {pid: command_of(pid) for pid in alive_in(self.home)}

    def left(self, within_s: float = GONE_S) -> dict[int, list[str]]:
        """What is alive after at most so long; returns as soon as nothing is."""
        return {pid: command_of(pid) for pid in still_alive(self.home, within_s)}

    def end_all(self) -> None:
        """Ends what a peer has left behind."""
        for pid in self.alive():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.left()

    @contextmanager
    def nothing_left(self) -> Iterator[None]:
        """Raises BadRun if a process outlives the block; it is ended in any case."""
        try:
            yield
            found = self.left()
        finally:
            self.end_all()
        if found:
            raise BadRun(f"processes were left: {found}")
