"""The running app-server as the sidecar holds it: its bytes, its death, its end.

Owns: the channel over the pipes, the drained stderr, the guard's reports, the proof that nothing lives.
Does not own how it was started (launch.py) or what is said (the adapter).
Serves rule.guardedAppServer, rule.untilNoChildren, rule.guardKilled.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import anyio.lowlevel

from sidecar import deadlines
from sidecar.launch import Launched, live_guards

READ_BYTES = 1 << 18
REAP_POLL_S = 0.001  # the kernel is between closing the guard's files and telling its parent


async def read_some(fd: int) -> bytes:
    """What is there, at the latest when something is; b"" at the end. `fd` must not block."""
    await anyio.lowlevel.checkpoint()  # a flood is always there to be read: others must get their turn
    while True:
        try:
            return os.read(fd, READ_BYTES)
        except BlockingIOError:
            await anyio.wait_readable(fd)


class PipeChannel:
    """adapters.contract.Channel over the app-server's pipes.

    A grandchild may hold the app-server's stdout open after its death: when the guard has reported it gone, what is
    in the pipe is still read and then the channel ends.
    """

    def __init__(self, stdin: int, stdout: int) -> None:
        self._stdin, self._stdout = stdin, stdout
        self._gone = False
        self._waiting: anyio.CancelScope | None = None
        self._input_open = True

    def app_server_gone(self) -> None:
        self._gone = True
        if self._waiting is not None:
            self._waiting.cancel()

    async def receive(self) -> bytes:
        await anyio.lowlevel.checkpoint()
        while True:
            try:
                return os.read(self._stdout, READ_BYTES)
            except BlockingIOError:
                if self._gone:
                    return b""
            with anyio.CancelScope() as self._waiting:
                await anyio.wait_readable(self._stdout)
            self._waiting = None

    async def send(self, data: bytes) -> None:
        """Raises OSError when the app-server reads no more."""
        rest = memoryview(data)
        while rest:
            if not self._input_open:
                raise BrokenPipeError("the app-server's input is closed")
            try:
                rest = rest[os.write(self._stdin, rest) :]
            except BlockingIOError:
                await anyio.wait_writable(self._stdin)

    async def close_send(self) -> None:
        if self._input_open:
            self._input_open = False
            os.close(self._stdin)


class Harness:
    """One app-server and its guard, from the start to the proof that nothing of it lives."""

    def __init__(self, launched: Launched) -> None:
        self._launched = launched
        self.channel = PipeChannel(launched.stdin, launched.stdout)
        self.exited: dict[str, Any] | None = None  # the guard's word: {"code", "signal"}
        self.failed: str | None = None  # the guard could not start it
        self.processes_ended = 0
        self._told_end = False
        self._stderr = bytearray()
        self._exit_known = anyio.Event()
        self._guard_gone = anyio.Event()
        self._stderr_done = anyio.Event()

    # --- what is known of it ----------------------------------------------------------------------------------

    @property
    def stderr_tail(self) -> str:
        return self._stderr.decode("utf-8", "replace")

    async def how_it_ended(self) -> str | None:
        """The app-server's own exit in words, with what it last said on stderr; None while it still runs."""
        with anyio.move_on_after(deadlines.EXIT_REPORT_S):
            await self._exit_known.wait()
            await self._stderr_done.wait()
        if self.failed is not None:
            return f"Codex could not be started: {self.failed}"
        if self.exited is None:
            return await self._how_the_guard_ended() if self._exit_known.is_set() else None
        code, signum = self.exited.get("code"), self.exited.get("signal")
        how = f"exited with code {code}" if signum is None else f"was ended by {_signal_name(signum)}"
        said = self.stderr_tail.strip()
        return f"Codex {how}: {said}" if said else f"Codex {how} and said nothing on stderr"

    async def _how_the_guard_ended(self) -> str:
        """Its reports have ended without a word on the app-server: it was killed, and took the app-server with it."""
        await self._guard_ends(deadlines.GUARD_S)
        code = self._launched.guard.returncode
        how = f"was ended by {_signal_name(-code)}" if code is not None and code < 0 else f"exited with code {code}"
        return f"The guard that Codex runs under {how}"

    # --- its end ----------------------------------------------------------------------------------------------

    async def end(self, *, politely: bool) -> None:
        """Returns when nothing lives: by the guard's report, or, without a guard, by record and marker.

        Politely: the end of its input first, which Codex answers with an exit of its own within 70 ms.
        """
        with anyio.CancelScope(shield=True):
            await self.channel.close_send()
            if politely:
                with anyio.move_on_after(deadlines.END_OF_INPUT_S):
                    await self._exit_known.wait()
            if self.exited is None:
                self.signal_guard(signal.SIGTERM)
            if not await self._guard_ends(deadlines.TERM_GRACE_S + deadlines.GUARD_S):
                self.signal_guard(signal.SIGTERM)  # the second one: no grace any more
                if not await self._guard_ends(deadlines.GUARD_S):
                    self.signal_guard(signal.SIGKILL)
                    await self._guard_ends(deadlines.GUARD_S)
            if not self._told_end:
                self.processes_ended += await anyio.to_thread.run_sync(self._end_survivors)

    def end_now(self) -> None:
        """A second wish to end: no grace."""
        self.signal_guard(signal.SIGTERM)
        self.signal_guard(signal.SIGINT)

    def signal_guard(self, signum: int) -> None:
        if self._launched.guard.poll() is None:
            self._launched.guard.send_signal(signum)
            self._launched.guard.send_signal(signal.SIGCONT)  # one that was stopped hears nothing else

    async def _guard_ends(self, within_s: float) -> bool:
        with anyio.move_on_after(within_s):
            await self._guard_gone.wait()
        return self._guard_gone.is_set()

    def _end_survivors(self) -> int:
        from sidecar.leftovers import orphans  # only a broken guard needs it

        launched = self._launched
        try:
            record = orphans.read_record(launched.record_path)
        except ValueError:
            record = None  # torn: marker and adoption are left
        adopted = None
        if launched.guard_started is not None:
            adopted = orphans.Adopted(since=launched.guard_started, ours=live_guards)
        grace_s = deadlines.SURVIVOR_GRACE_S
        ended = orphans.end_survivors(record, launched.turn, grace_s=grace_s, adopted=adopted)
        with suppress(FileNotFoundError):
            os.unlink(launched.record_path)  # the guard's business, had it lived
        return ended

    # --- what it hears ----------------------------------------------------------------------------------------

    async def hear_reports(self) -> None:
        """The guard's reports until it is gone; reaps it."""
        rest = b""
        with suppress(OSError):
            while data := await read_some(self._launched.report):
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    self._take(json.loads(line))
        self._exit_known.set()
        self.channel.app_server_gone()
        # its end of the pipe closes just before it can be reaped, and nothing tells when
        while self._launched.guard.poll() is None:  # noqa: ASYNC110
            await anyio.sleep(REAP_POLL_S)
        self._guard_gone.set()

    def _take(self, report: dict[str, Any]) -> None:
        event = report.get("event")
        if event == "exited":
            self.exited = report
        elif event == "failed":
            self.failed = str(report.get("message"))
        elif event == "ended":
            self._told_end = True
            self.processes_ended = int(report.get("processes_ended", 0))
        if event in ("exited", "failed"):
            self._exit_known.set()
            self.channel.app_server_gone()

    async def drain_stderr(self) -> None:
        with suppress(OSError):
            while data := await read_some(self._launched.stderr):
                self._stderr += data
                del self._stderr[: -deadlines.STDERR_TAIL_BYTES]
        self._stderr_done.set()

    async def close(self) -> None:
        await self.channel.close_send()
        for fd in (self._launched.stdout, self._launched.stderr, self._launched.report, self._launched.lifeline):
            os.close(fd)


@asynccontextmanager
async def hold(launched: Launched) -> AsyncIterator[Harness]:
    """The app-server within this block. However the block is left, nothing of it lives afterwards."""
    harness = Harness(launched)
    failure: Exception | None = None
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(harness.hear_reports)
            tasks.start_soon(harness.drain_stderr)
            try:
                yield harness
            except Exception as error:
                failure = error  # raised below, as it is: the task group would wrap it
            finally:
                await harness.end(politely=False)
                tasks.cancel_scope.cancel()
    finally:
        await harness.close()
    if failure is not None:
        raise failure


def _signal_name(signum: int) -> str:
    try:
        return signal.Signals(signum).name
    except ValueError:
        return f"signal {signum}"
