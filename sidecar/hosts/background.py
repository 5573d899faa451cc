"""`run --background`: one detached sidecar for one job, and the caller's short wait until it is known to be under way.

Owns: the fork, what the child keeps of its caller (nothing but environment and directory), the word that it sends
back. There is no daemon: the child is the foreground's own code and ends with its turn. Serves rule.background.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NoReturn

from adapters.contract import BegunEvent, Event, Problem, Refused, StatusEvent
from adapters.values import as_dict
from sidecar.begin import begin
from sidecar.config import Settings
from sidecar.errors import UserError
from sidecar.hosts import foreground
from sidecar.outcome import Outcome, problems_of
from sidecar.request import TurnRequest
from sidecar.views.render import View

LOG = "sidecar.log"  # in the job's folder: the status lines, and what a fault of ours would print
MOST_DESCRIPTORS = 1 << 20  # a limit of "unlimited" is no number to count to

Word = dict[str, Any]


def start(request: TurnRequest, settings: Settings, environ: Mapping[str, str]) -> Iterator[Word]:
    """What the detached sidecar says, until it has said enough: {"job"}, then one of {"state": "running"},
    {"state": "queued", "why"}, {"state": "ended", "outcome"}. Raises Refused.

    The end without any of these means that the sidecar died; {"fault"} is its last word, where it had one.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    ours, theirs = os.pipe()
    if os.fork() == 0:
        _child(theirs, request, settings, environ)
    os.close(theirs)
    with open(ours, "rb") as words:
        for line in words:
            word = json.loads(line)
            if "refused" in word:
                raise Refused(*(Problem(**p) for p in word["refused"]))
            yield word


def _child(caller: int, request: TurnRequest, settings: Settings, environ: Mapping[str, str]) -> NoReturn:
    """Never returns into the caller's code: whatever happens, this process ends here."""
    code, told = 1, Caller(caller)
    try:
        code = _job(told, request, settings, environ)
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)  # into the log, if there is one yet
        told.say(fault=f"{type(error).__name__}: {error}")
    finally:
        with suppress(OSError):
            sys.stderr.flush()
        os._exit(code)


def _job(caller: Caller, request: TurnRequest, settings: Settings, environ: Mapping[str, str]) -> int:
    detach(caller.fd)
    signals = foreground.Signals()
    try:
        begun = begin(request, settings, environ)
    except Refused as refused:
        caller.say(refused=[as_dict(p) for p in refused.problems])
        return 2
    except UserError as error:
        caller.say(refused=[as_dict(p) for p in problems_of(error)])
        return 2
    log = os.open(os.path.join(begun.job.dir, LOG), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    caller.say(job=begun.job.id, dir=begun.job.dir)
    return foreground.see_through(begun, signals, LogView(caller.say, caller.hang_up))


def detach(keep: int) -> None:
    """Own session, nothing of the caller's terminal, none of its descriptors but `keep`."""
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.closerange(3, keep)
    os.closerange(keep + 1, min(os.sysconf("SC_OPEN_MAX"), MOST_DESCRIPTORS))


class Caller:
    """The one who started us, as long as there is something that it waits for."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def say(self, **word: Any) -> None:
        if self.fd >= 0:
            with suppress(OSError):  # it has gone: nobody needs to know
                os.write(self.fd, json.dumps(word).encode("ascii") + b"\n")

    def hang_up(self) -> None:
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)


class LogView(View):
    """Status lines into the log; the first that matters to the caller goes there too. The answer is in the job."""

    def __init__(self, say: Callable[..., None], hang_up: Callable[[], None]) -> None:
        super().__init__({"TERM": "dumb"})
        self._say = say
        self._hang_up = hang_up

    def event(self, event: Event) -> None:
        super().event(event)
        if isinstance(event, BegunEvent):
            self._last(state="running", thread=event.thread)
        elif isinstance(event, StatusEvent) and event.state == "waiting":
            self._last(state="queued", why=event.text)

    def answer(self, outcome: Outcome) -> None:
        self._last(state="ended", outcome=outcome.to_json())

    def _last(self, **word: Any) -> None:
        self._say(**word)
        self._hang_up()
