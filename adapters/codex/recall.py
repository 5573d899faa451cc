"""Reads a turn back from Codex's thread: for a turn whose sidecar died before it could tell the end.

Owns one question, thread/read, in a talk that opens no thread and starts no turn. Does not own who asks.
Serves rule.ownerGone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio

from adapters.codex.answer import Answer
from adapters.codex.errors import classify
from adapters.codex.methods import refusal_for
from adapters.codex.plan import CodexPlan
from adapters.codex.session import say_hello
from adapters.codex.wire import mapping, text_of
from adapters.contract import Channel, Ending, Limits, PeerError, Resolved, TurnError
from adapters.jsonrpc import Peer, RpcError


async def recall(channel: Channel, resolved: Resolved, thread: str, turn: str | None, limits: Limits) -> Ending:
    """Raises PeerError: `thread_unknown`, or what the wire says."""
    peer = Peer(
        channel,
        on_notification=lambda method, params: None,
        on_request=lambda method, params: refusal_for(method),
        on_end=lambda: None,
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(peer.read)
        tasks.start_soon(peer.write)
        found = await _read(peer, resolved, thread, limits)
        tasks.cancel_scope.cancel()
    if isinstance(found, PeerError):
        raise found  # outside of the task group, which would wrap it
    turns = mapping(found.get("thread")).get("turns")
    listed = [mapping(t) for t in turns] if isinstance(turns, list) else []
    wanted = [t for t in listed if turn is None or t.get("id") == turn]
    if not wanted:
        raise PeerError("thread_unknown", f"Codex's thread {thread} has no turn {turn or 'at all'}")
    return ending_of(wanted[-1], thread)


async def _read(peer: Peer, resolved: Resolved, thread: str, limits: Limits) -> Mapping[str, Any] | PeerError:
    plan: CodexPlan = resolved.plan
    try:
        await say_hello(peer, plan.client_version).wait(limits.start_s)
        return await peer.request("thread/read", {"threadId": thread, "includeTurns": True}, limits.start_s)
    except RpcError as error:
        return PeerError("thread_unknown", f"Codex can't read thread {thread}: {error.message}")
    except PeerError as error:
        return error


def ending_of(turn: Mapping[str, Any], thread: str) -> Ending:
    """The ending that the turn's own entry tells. Codex doesn't say what a past turn has used."""
    answer = Answer()
    answer.summary(turn.get("items"))
    ident, status = text_of(turn, "id") or None, turn.get("status")
    if status == "completed" and answer.final:
        return Ending(status="completed", final_text=answer.final, thread=thread, turn=ident, confirmed=True)
    error = mapping(turn.get("error"))
    if status == "failed" and error:
        told = classify(
            error.get("codexErrorInfo"), text_of(error, "message"), details=text_of(error, "additionalDetails")
        )
        return Ending(status="failed", partial_text=answer.partial, error=told, thread=thread, turn=ident)
    message = f"the turn has no answer in Codex's thread; it is {status or 'without a status'} there"
    lost = TurnError(kind="other", reason="sidecar_died", message=message)
    return Ending(status="failed", partial_text=answer.partial, error=lost, thread=thread, turn=ident)
