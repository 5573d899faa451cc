"""Files that appear whole, and folders that vanish whole.

Owns: how a file of ours is written, read back and removed. Does not own: what is in it.
Serves spec:cc-agents.codex-adapter (rule.recordsByRename).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any


def write_json(path: str, data: Mapping[str, Any], *, lasting: bool = True) -> None:
    """Put a JSON object at `path`, whole. Raises OSError."""
    write(path, json_line(data), lasting=lasting)


COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))  # json.dumps makes one for each text


def json_line(data: Any, encoder: json.JSONEncoder = COMPACT) -> bytes:
    """One JSON text and a newline, always valid UTF-8. A lone surrogate (a file name that isn't UTF-8, say) makes it
    ASCII: there it is an escape, and comes back as it was."""
    try:
        return encoder.encode(data).encode() + b"\n"
    except UnicodeEncodeError:
        separators = encoder.item_separator, encoder.key_separator
        return json.dumps(data, indent=encoder.indent, separators=separators).encode("ascii") + b"\n"


def write(path: str, data: bytes, *, lasting: bool = True) -> None:
    """Put `data` at `path`, mode 0600: a reader finds the old file or this one; where it is `lasting`, also after a
    power cut, for which the disk is waited for (1 to 20 ms)."""
    making = f"{path}.{os.getpid()}.new"
    try:
        fd = os.open(making, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(fd, "wb") as f:
            f.write(data)
            if lasting:
                f.flush()
                os.fsync(fd)
        os.rename(making, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(making)
        raise


def load_json(path: str) -> tuple[dict[str, Any] | None, str]:
    """A JSON object, or None and the rest of the sentence that says why there is none."""
    try:
        with open(path, "rb") as f:
            data = json.loads(f.read())
    except FileNotFoundError:
        return None, "is missing"
    except OSError as e:
        return None, f"cannot be read: {e.strerror}"
    except ValueError as e:
        return None, f"is torn: {e}"
    return (data, "") if isinstance(data, dict) else (None, "is torn: it holds no JSON object")


def scan(path: str) -> list[os.DirEntry[str]]:
    """What is in a folder; nothing where there is none."""
    try:
        with os.scandir(path) as entries:
            return list(entries)
    except FileNotFoundError:
        return []


def remove_folder(path: str) -> bool:
    """Remove a folder: out of sight first, so that no reader meets half of it. False when it can't be had.

    What could not be removed afterwards stays under a name with a dot, to be removed another time.
    """
    import shutil  # not on the way to `status`

    hidden, name = path, os.path.basename(path)
    if not name.startswith("."):
        hidden = os.path.join(os.path.dirname(path), f".gone-{name}-{os.getpid()}")
        try:
            os.rename(path, hidden)
        except OSError:
            return False
    shutil.rmtree(hidden, ignore_errors=True)
    return True
