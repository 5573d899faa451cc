"""How wide the terminal is. Owns no more: shutil knows it too, and loads four compressors. Serves rule.lightStart."""

from __future__ import annotations

import os

UNKNOWN = 80


def columns(fd: int) -> int:
    """What COLUMNS says, else the width of the terminal that `fd` leads to, else 80."""
    named = os.environ.get("COLUMNS", "")
    if named.isdecimal() and int(named) > 0:
        return int(named)
    try:
        return os.get_terminal_size(fd).columns or UNKNOWN
    except OSError:
        return UNKNOWN
