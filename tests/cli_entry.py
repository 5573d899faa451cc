"""The command with a part of it taken out or replaced: `cli_entry.py HOW,... WORDS...`: for controls, and macOS' way.

Owns the patches, in a process of the tests' own: the product has no switch for any of them.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import anyio
import psutil

TESTS = Path(__file__).resolve().parent
LOADED = (anyio, asyncio, psutil, subprocess)  # while the platform has its own name still


def without_subreaper() -> None:
    from sidecar import launch

    launch.GUARD = str(TESTS / "guard_control.py")
    launch.adopt_orphans = lambda: None


def without_record() -> None:
    """Nor the marks: nothing to go by when sidecar and guard are gone."""
    from sidecar.leftovers import orphans

    orphans.read_record = lambda path: None
    orphans.limit = lambda pid: None
    orphans.environment = lambda pid: set()


def as_macos() -> None:
    sys.platform = "darwin"
    from sidecar import launch

    launch.GUARD = str(TESTS / "guard_by_ps.py")


class Slow:
    """Stands before an import: says that it has come, and waits until it may go on."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == os.environ["SLOW_MODULE"]:
            Path(os.environ["SLOW_LOADING"]).touch()
            while not os.path.exists(os.environ["SLOW_GO"]):
                time.sleep(0.005)


def slowly() -> None:
    del sys.modules[os.environ["SLOW_MODULE"]]
    sys.meta_path.insert(0, Slow())


HOW = {f.__name__: f for f in (without_subreaper, without_record, as_macos, slowly)}

if __name__ == "__main__":
    for how in sys.argv[1].split(","):
        HOW[how]()
    from sidecar.cli import entry

    del sys.argv[1]
    entry()
