"""Asks the harness what a turn would be, without a job, a slot or a thread.

Owns the short life of an app-server that only answers questions, for `check`, `models` and `doctor`.
It runs under a guard like any other. Serves rule.catalogCheck.
"""

from __future__ import annotations

import os
import random
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

import anyio

from adapters.contract import Adapter, Channel, Limits, PeerError, Preview, Resolved, StartsAgain
from sidecar import deadlines, launch, paths
from sidecar.errors import UserError
from sidecar.harness import hold

T = TypeVar("T")


def ask(adapter: Adapter, resolved: Resolved, limits: Limits, environ: Mapping[str, str]) -> Preview:
    """Raises UserError (`app_server_exited`, `protocol`) with what Codex said when it gives no answer."""
    return anyio.run(ask_in_a_loop, adapter, resolved, limits, environ)


async def ask_in_a_loop(adapter: Adapter, resolved: Resolved, limits: Limits, environ: Mapping[str, str]) -> Preview:
    """The same for who has an event loop already."""
    return await inquire(adapter, resolved, limits, environ, lambda channel: adapter.preview(channel, resolved, limits))


async def inquire(
    adapter: Adapter,
    resolved: Resolved,
    limits: Limits,
    environ: Mapping[str, str],
    question: Callable[[Channel], Awaitable[T]],
) -> T:
    """The answer to a question that starts nothing. Raises UserError."""
    runtime = paths.runtime_dir(environ)
    for pause_s in deadlines.START_AGAIN_S:
        try:
            return await _once(resolved, limits, runtime, question)
        except UserError as error:
            busy = isinstance(adapter, StartsAgain) and adapter.start_again(error.message)
            if error.reason != "app_server_exited" or not busy:
                raise
        await anyio.sleep(pause_s * random.uniform(0.5, 1.5))
    return await _once(resolved, limits, runtime, question)


async def _once(resolved: Resolved, limits: Limits, runtime: str, question: Callable[[Channel], Awaitable[T]]) -> T:
    name = f"inquiry-{secrets.token_hex(6)}"
    folder = paths.make_private(os.path.join(runtime, "inquiries"), reason="runtime_dir")
    try:
        launched = launch.launch(
            resolved,
            turn=name,
            record_path=os.path.join(folder, f"{name}.json"),
            slot_fd=None,
            grace_s=limits.grace_s,
        )
    except OSError as error:
        raise UserError("app_server_exited", f"Codex could not be started: {error}") from error
    async with hold(launched) as harness:
        try:
            answer = await question(harness.channel)
        except PeerError as error:
            how = await harness.how_it_ended() if error.reason in ("app_server_exited", "protocol") else None
            raise UserError(error.reason, f"{error.message}. {how}" if how else error.message) from error
        await harness.end(politely=True)
    return answer
