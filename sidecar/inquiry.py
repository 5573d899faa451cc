"""Asks the harness what a turn would be, without a job, a slot or a thread.

Owns the short life of an app-server that only answers questions, for `check`, `models` and `doctor`.
It runs under a guard like any other. Serves rule.catalogCheck.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping

import anyio

from adapters.contract import Adapter, Limits, PeerError, Preview, Resolved
from sidecar import launch, paths
from sidecar.errors import UserError
from sidecar.harness import hold


def ask(adapter: Adapter, resolved: Resolved, limits: Limits, environ: Mapping[str, str]) -> Preview:
    """Raises UserError (`app_server_exited`, `protocol`) with what Codex said when it gives no answer."""
    return anyio.run(_ask, adapter, resolved, limits, paths.runtime_dir(environ))


async def _ask(adapter: Adapter, resolved: Resolved, limits: Limits, runtime: str) -> Preview:
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
            preview = await adapter.preview(harness.channel, resolved, limits)
        except PeerError as error:
            how = await harness.how_it_ended()
            raise UserError(error.reason, f"{error.message}. {how}" if how else error.message) from error
        await harness.end(politely=True)
    return preview
