"""The real Claude Code in a terminal: a user who types, and what the screen has shown.

Owns: the pseudo-terminal and the keys. Does not own: the plugin, the home, what Claude says, or what is
drawn (claude_code.py, messages_api.py, screen.py). Standard library only.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Iterator
from typing import Any

from tests_live.claude_code import SESSION_S, Desk, wait_for
from tests_live.messages_api import ScriptedClaude
from tests_live.screen import Screen

ROWS, COLUMNS = 42, 110
SHOWN_S = 60.0  # a session starts in 1 s and a turn in 1 s; on a loaded machine it took 20 times that
KEY_S = 0.05  # between the keys: what comes in one piece is taken for a paste, and its Enter for a new line
PROMPT = "\N{HEAVY RIGHT-POINTING ANGLE QUOTATION MARK ORNAMENT}"
ENTER, ESC, DOWN = b"\r", b"\x1b", b"\x1b[B"


class Terminal:
    """A session under way."""

    def __init__(self, process: subprocess.Popen[bytes], fd: int) -> None:
        self.process, self._fd = process, fd
        self._screen = Screen(ROWS, COLUMNS)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # how Linux tells that the other end is closed
            while data := os.read(self._fd, 65536):
                self._screen.feed(data)

    @property
    def screen(self) -> str:
        """What a person sees now, with one space for any run of blanks."""
        return self._screen.text()

    def shows(self, text: str) -> None:
        """Waits until the screen has this text."""
        try:
            wait_for(lambda: text in self.screen, SHOWN_S)
        except AssertionError:
            raise AssertionError(f"never shown: {text!r}; the screen is: {self.screen!r}") from None

    def keys(self, *keys: bytes) -> None:
        for key in keys:
            time.sleep(KEY_S)
            os.write(self._fd, key)

    def types(self, line: str) -> None:
        """The line, as a person would: it stands in the prompt before Enter is pressed."""
        self.keys(*(char.encode() for char in line))
        self.shows(f"{PROMPT} {' '.join(line.split())}")
        self.keys(ENTER)


def server_is_there(desk: Desk) -> bool:
    """Claude Code's own log of the plugin's server says so."""
    logs = (desk.home.root / "cache").glob("claude-cli-nodejs/*/mcp-logs-plugin-cc-agents-gpt/*.jsonl")
    return any("Successfully connected" in path.read_text() for path in logs)


@contextlib.contextmanager
def at_a_terminal(desk: Desk, claude: ScriptedClaude, *, plugin: bool = True) -> Iterator[Terminal]:
    """Claude Code in a terminal of its own, past its first questions. It is killed with the block.

    With the plugin, the terminal is given when its server is there: Claude Code starts none of its agents before.
    """
    past: dict[str, Any] = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    known = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "customApiKeyResponses": {"approved": ["sk-ant-not-a-key"], "rejected": []},
        "projects": {str(desk.home.work): past},
    }
    config = desk.config / ".claude.json"
    if not config.exists():
        config.write_text(json.dumps(known))
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    process = subprocess.Popen(
        [desk.claude, "--permission-mode", "manual", *(["--plugin-dir", str(desk.plugin)] if plugin else [])],
        cwd=desk.home.work,
        env={**desk.environ(claude), "TERM": "xterm-256color"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    terminal = Terminal(process, ours)
    try:
        terminal.shows("manual mode on")
        if plugin:
            wait_for(lambda: server_is_there(desk), SHOWN_S)
        yield terminal
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(SESSION_S)
        terminal.reader.join(SESSION_S)
        os.close(ours)
