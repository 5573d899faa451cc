"""The reader of our events as the one for whom the turn is run: when it is gone, the turn ends.

Owns hearing that. A reader that was killed with -9 sends no signal, and a turn without a word would never find out by
writing. Does not own the end (control.py). Serves rule.nothingLeaks of spec:cc-agents.claude-code.
"""

from __future__ import annotations

import os
import signal
import stat

import anyio

from adapters.contract import StatusEvent, Stop
from sidecar import deadlines
from sidecar.control import TurnControl
from sidecar.views.render import STDOUT, View


async def until_unread(control: TurnControl, view: View) -> None:
    """Asks for the turn's end when nobody can read stdout any more. Returns at once where that can't be told."""
    kind = os.fstat(STDOUT).st_mode
    if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)):
        return
    # The writing end of a pipe is never readable, until an error stands on it: its reader has closed. A socket's peer
    # sends nothing here, so that what can be read of it is its end.
    await anyio.wait_readable(STDOUT)
    await anyio.sleep(deadlines.UNREAD_S)
    if control.stop is not None:
        return
    view.event(StatusEvent(state="interrupting", text="interrupting (nobody reads the events any more)"))
    stop = Stop(reason="interrupted", message="nobody reads the events any more")
    control.request_stop(stop, signum=signal.SIGHUP)
