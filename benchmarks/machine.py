"""Where the figures come from: the machine, its load, the versions. Owns no measurement."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from typing import Any

VERSION_S = 20.0


def describe(codex: str | None) -> dict[str, Any]:
    """Plain words; nothing that names a person or a path."""
    return {
        "date": time.strftime("%Y-%m-%d"),
        "codex": version(codex) if codex else "none",
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release().split('-')[0]} {platform.machine()}",
        "cores": len(os.sched_getaffinity(0)),
        "load": round(os.getloadavg()[0], 1),
    }


def version(codex: str) -> str:
    argv, env = [codex, "--version"], {"PATH": os.defpath}  # nothing of the user's gets near it
    said = subprocess.run(argv, env=env, capture_output=True, text=True, check=True, timeout=VERSION_S).stdout
    return said.split()[-1]
