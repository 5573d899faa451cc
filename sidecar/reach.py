"""Asking the sidecar of a running job, and telling a job that has none from one that is only just starting.

Owns the wait for its socket. Does not own what is asked. Standard library only. Serves rule.steer.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from sidecar import control_socket
from sidecar.errors import UserError
from sidecar.store import JobView, Store
from sidecar.views.tables import state_of

CONNECT_S = 5.0  # from a job's record to its socket; a loaded machine takes a second
POLL_S = 0.05


def ask(store: Store, runtime: str, view: JobView, message: Mapping[str, Any], within_s: float) -> dict[str, Any]:
    """The sidecar's answer. Raises UserError: `not_running` (with how the job is), `no_answer`."""
    end = time.monotonic() + CONNECT_S
    while True:
        view = store.read(view.job)
        if view.state not in ("queued", "running"):
            raise UserError("not_running", not_running(view))
        try:
            return control_socket.ask(runtime, view.job, message, within_s)
        except TimeoutError:
            raise UserError("no_answer", f"job {view.job} did not answer within {within_s:g} s") from None
        except (ConnectionError, FileNotFoundError) as error:
            if time.monotonic() > end:
                raise UserError("no_answer", f"job {view.job} can't be reached: {error}") from None
        time.sleep(POLL_S)


def not_running(view: JobView) -> str:
    if view.state == "died":
        return f"job {view.job} has no running turn: it died ({view.reason})"
    if view.state == "torn":
        return f"job {view.job} is damaged: {view.reason}"
    return f"job {view.job} has no running turn: it has ended ({state_of(view)})"
