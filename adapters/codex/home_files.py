"""What the files in Codex's home say that has to be known before Codex is started.

Owns: the names of the user's MCP servers, the file of other executors. Does not own the layers of configuration that
Codex itself tells (layers.py), nor what is done about them (switches.py, adapter.py).
Serves rule.mcpOff, rule.lightStart: config.toml is parsed only where servers can be in it.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from adapters.codex.switches import configured_servers


def user_servers(codex_home: str) -> tuple[str, ...]:
    """Names of the MCP servers in the user's config.toml; () where it can't be read: Codex says what is wrong with
    it, in its own words, and config/read names every server once more before a thread starts."""
    try:
        text = _read(codex_home, "config.toml")
        # the key is written out, or with escapes in a quoted one ("\u006dcp_servers"): those begin with a backslash
        return configured_servers(_parsed(text)) if b"mcp_servers" in text or b"\\" in text else ()
    except (OSError, ValueError):
        return ()


def other_executors(codex_home: str) -> str | None:
    """The file that sends commands somewhere else than to this machine's sandbox, if there is one."""
    path = os.path.join(codex_home, "environments.toml")
    try:
        named = _parsed(_read(codex_home, "environments.toml")).get("environments")
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return path
    return path if named else None


def _read(folder: str, name: str) -> bytes:
    with open(os.path.join(folder, name), "rb") as file:
        return file.read()


def _parsed(text: bytes) -> dict[str, Any]:
    """Raises ValueError where it is no TOML."""
    if sys.version_info >= (3, 11):  # loaded here: it takes as long as json and re together
        import tomllib
    else:
        import tomli as tomllib
    return tomllib.loads(text.decode("utf-8"))
