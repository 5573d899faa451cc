"""Tables and ages for people, and the one place where a job's state becomes a word of them.

Owns the columns' layout. Does not own what is in them. Standard library only.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence

from sidecar.store import JobView

_STEPS = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))


def columns(rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> str:
    """Lines of cells, each column as wide as its widest cell; the last one is never padded."""
    if not rows:
        return ""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))]
        lines.append("  ".join(cells).rstrip() + "\n")
    return "".join(lines)


def age(since: float, now: float | None = None) -> str:
    """`42s`, `5m`, `3h`, `2d` since a Unix time."""
    return span((time.time() if now is None else now) - since)


def span(seconds: float) -> str:
    seconds = max(0, int(seconds))
    for size, unit in _STEPS:
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return "0s"


def is_older(since: float, than_s: float) -> bool:
    """Is it longer than that ago, since a Unix time?"""
    return time.time() - since > than_s


def state_of(view: JobView) -> str:
    """queued, running, died, torn; of an ended job how it ended."""
    return (view.status or "ended") if view.state == "ended" else view.state


def folder(path: str | None, environ: Mapping[str, str]) -> str:
    """A path with ~ for the home directory; control characters can't drive the terminal."""
    if not path:
        return "-"
    home = environ.get("HOME", "")
    if home and (path == home or path.startswith(home.rstrip(os.sep) + os.sep)):
        path = "~" + path[len(home.rstrip(os.sep)) :]
    return plain(path)


def plain(text: str) -> str:
    """One line without control characters."""
    return "".join(c if c.isprintable() else " " for c in " ".join(text.split()))
