"""Runs one turn in this process, under the signals of its terminal.

Owns: signals from the first moment on, the event loop, the last word and the exit code. Does not own the turn
(turn.py). Heavy imports happen after Codex was started. Serves rule.interruptConfirmed, rule.exitCodes.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from types import FrameType
from typing import TYPE_CHECKING

from adapters.contract import StatusEvent, Stop
from sidecar import deadlines
from sidecar.begin import Begun, begin
from sidecar.config import Settings
from sidecar.errors import EXIT_FAILED
from sidecar.leftovers import tidy
from sidecar.outcome import Outcome, stopped_early
from sidecar.request import TurnRequest
from sidecar.views.render import View

if TYPE_CHECKING:
    from sidecar.control import TurnControl

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Signals:
    """What the terminal or a supervisor asked for, from before there is a loop that could hear it."""

    def __init__(self) -> None:
        self.early: list[int] = []
        for signum in SIGNALS:
            if signal.getsignal(signum) is not signal.SIG_IGN:  # nohup stays nohup
                signal.signal(signum, self._remember)

    def _remember(self, signum: int, _frame: FrameType | None) -> None:
        self.early.append(signum)

    async def listen(self, control: TurnControl, view: View) -> None:
        import anyio

        heard = [s for s in SIGNALS if signal.getsignal(s) is not signal.SIG_IGN]
        with anyio.open_signal_receiver(*map(signal.Signals, heard)) as signals:
            for early in self.early:
                self._stop(early, control, view)
            async for signum in signals:
                self._stop(signum, control, view)

    def _stop(self, signum: int, control: TurnControl, view: View) -> None:
        name = signal.Signals(signum).name
        again = control.stop is not None
        view.event(StatusEvent(state="interrupting", text=f"{'ending at once' if again else 'interrupting'} ({name})"))
        control.request_stop(Stop(reason="interrupted", message=f"interrupted by {name}"), signum=signum)


def run(request: TurnRequest, settings: Settings, environ: Mapping[str, str], view: View) -> int:
    """The exit code. Raises Refused or UserError when there was no turn."""
    signals = Signals()
    try:
        begun = begin(request, settings, environ, stopped=lambda: bool(signals.early))
    except KeyboardInterrupt:
        stopped = stopped_early(signals.early[0])
        view.outcome(stopped)
        return stopped.exit_code
    return see_through(begun, signals, view)


def see_through(begun: Begun, signals: Signals, view: View) -> int:
    """A begun turn to its last word; the exit code."""
    import anyio  # Codex boots meanwhile

    outcome = anyio.run(_see_through, begun, signals, view)
    heard = view.outcome(outcome)
    tidy.prune(begun.store, begun.settings)
    return outcome.exit_code if heard else _unheard(outcome)


async def _see_through(begun: Begun, signals: Signals, view: View) -> Outcome:
    import anyio

    from sidecar.control import TurnControl
    from sidecar.turn import Turn

    control = TurnControl()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(signals.listen, control, view)
        if view.attended:
            from sidecar.hosts.attended import until_unread

            tasks.start_soon(until_unread, control, view)
        if dead := tidy.left_behind(begun.store):
            tasks.start_soon(anyio.to_thread.run_sync, tidy.end_all, dead)
        outcome = await Turn(begun, control, view.event).run()
        tasks.cancel_scope.cancel()
    return outcome


def _unheard(outcome: Outcome) -> int:
    """Nobody reads stdout any more: that is a failure of the command, whatever the turn was."""
    late = View({}, quiet=True)
    late.last_line(f"stdout can't be written; the outcome is kept in job {outcome.job}")
    late.screen.finish(deadlines.SCREEN_FLUSH_S)
    return outcome.exit_code or EXIT_FAILED
