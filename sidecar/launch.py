"""Starts one app-server under the guard, in one step and without waiting.

Owns: the pipes, the guard's command line, the environment with the turn's marker. Imports nothing heavy: Codex boots
while the rest is loaded. Does not own what is said over the pipes (harness.py). Serves rule.guardedAppServer.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
from weakref import WeakSet

from adapters.contract import Resolved
from adapters.values import Value
from sidecar import deadlines, owner, paths
from sidecar.leftovers.marks import limit_mark
from sidecar.request import MARKER

PIPE_BYTES = 1 << 20  # of Codex's output: fewer, larger reads; the kernel may grant less
PR_SET_CHILD_SUBREAPER = 36
GUARD = os.path.join(paths.installation_dir(), "guard", "guard.py")


class Launched(Value):
    """A guard that is on its way. The descriptors are ours, and not blocking."""

    guard: subprocess.Popen[bytes]
    stdin: int
    stdout: int
    stderr: int
    report: int
    lifeline: int
    record_path: str
    turn: str
    guard_started: int | None  # start time of the guard, ticks since boot; None outside Linux


_guards: WeakSet[subprocess.Popen[bytes]] = WeakSet()
_starting = threading.Lock()  # from the fork of a guard until it is among them


def live_guards() -> frozenset[int]:
    """The pids of this process' guards that have not been reaped; of all that were forked before the call."""
    with _starting:
        return frozenset(guard.pid for guard in _guards if guard.returncode is None)


def adopt_orphans() -> None:
    """From now on what a killed guard leaves becomes a child of this process, whatever it did to hide (Linux)."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def launch(
    resolved: Resolved,
    *,
    turn: str,
    record_path: str,
    slot_fd: int | None,
    thread_fd: int | None = None,
    grace_s: float,
) -> Launched:
    """Raises OSError when no process can be made; then nothing is left open.

    `grace_s`: what the guard leaves between TERM and KILL, and never more than its own bound.
    """
    pipes = [os.pipe() for _ in range(5)]
    (in_r, in_w), (out_r, out_w), (err_r, err_w), (report_r, report_w), (life_r, life_w) = pipes
    passed = [life_r, report_w]
    options = ["--lifeline", str(life_r), "--report", str(report_w), "--record", record_path, "--turn", turn]
    options += ["--grace", str(min(grace_s, deadlines.TERM_GRACE_S)), "--mark", str(limit_mark(turn))]
    for option, fd in (("--slot", slot_fd), ("--thread", thread_fd)):
        if fd is not None:
            options += [option, str(fd)]
            passed.append(fd)
    try:
        with _starting:
            guard = subprocess.Popen(
                [sys.executable, "-I", "-S", GUARD, *options, "--", *resolved.argv],
                stdin=in_r,
                stdout=out_w,
                stderr=err_w,
                pass_fds=passed,
                env={**resolved.env, MARKER: turn},
                cwd=resolved.cwd,
                start_new_session=True,
            )
            _guards.add(guard)
    except OSError:
        for fd in (in_w, out_r, err_r, report_r, life_w):
            os.close(fd)
        raise
    finally:
        for fd in (in_r, out_w, err_w, report_w, life_r):
            os.close(fd)
    adopt_orphans()
    _widen(out_r)
    for fd in (in_w, out_r, err_r, report_r):
        os.set_blocking(fd, False)
    return Launched(
        guard=guard,
        stdin=in_w,
        stdout=out_r,
        stderr=err_r,
        report=report_r,
        lifeline=life_w,
        record_path=record_path,
        turn=turn,
        guard_started=_start_time(guard.pid),
    )


def _start_time(pid: int) -> int | None:
    started = owner.start_time(pid) if sys.platform == "linux" else None
    return None if started is None else int(started)


def _widen(fd: int) -> None:
    set_size = getattr(fcntl, "F_SETPIPE_SZ", None)
    if set_size is not None:
        try:
            fcntl.fcntl(fd, set_size, PIPE_BYTES)
        except OSError:
            return  # over the user's limit for pipes: the usual size works too
