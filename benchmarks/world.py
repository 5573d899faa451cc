"""Folders of a user who is nobody: HOME, CODEX_HOME, XDG, a working directory, and all that lives in them.

Owns: the environment and finding processes by it. Does not own which codex is there (codex_world, fake_world).
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks.measure import BadRun, command_of

GONE_S = 5.0  # for what was killed to be gone; on a loaded machine too
LOOK_S = 0.01
FOLDERS = ("home", "codex_home", "config", "state", "runtime", "tmp", "work", "cache", "data")


class World:
    def __init__(self, root: Path, ours: Sequence[str]) -> None:
        self.root, self.work, self.codex_home = root, root / "work", root / "codex_home"
        self._ours = list(ours)
        self.codex: Path
        for name in FOLDERS:
            (root / name).mkdir(mode=0o700)
        venv = Path(sys.prefix)
        self.env: dict[str, str] = {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "HOME": str(root / "home"),
            "CODEX_HOME": str(self.codex_home),
            "XDG_CONFIG_HOME": str(root / "config"),
            "XDG_STATE_HOME": str(root / "state"),
            "XDG_RUNTIME_DIR": str(root / "runtime"),
            "XDG_CACHE_HOME": str(root / "cache"),
            "XDG_DATA_HOME": str(root / "data"),
            "TMPDIR": str(root / "tmp"),
            # bin/cc-agents takes the environment that runs the benchmark, if a start script has made it
            **({"CC_AGENTS_VENV": str(venv)} if (venv / "made" / "for").exists() else {}),
        }

    def ours(self, *words: str) -> list[str]:
        return [*self._ours, *words]

    def alive(self) -> dict[int, list[str]]:
        """Every process with a folder of this world in its environment, zombies left out: pid and command line.

        Not by HOME alone: Codex clears the environment of its helpers for files, and what is left is PATH.
        """
        mark, found = os.fsencode(f"{self.root}/"), {}
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) != os.getpid():
                with suppress(OSError):
                    if mark in Path("/proc", name, "environ").read_bytes():
                        found[int(name)] = command_of(int(name))
        return found

    def left(self, within_s: float = GONE_S) -> dict[int, list[str]]:
        """What is alive after at most so long; returns as soon as nothing is."""
        until = time.monotonic() + within_s
        while (found := self.alive()) and time.monotonic() < until:
            time.sleep(LOOK_S)
        return found

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
