"""A Codex in memory, at the seam that we own: a Channel whose other end is a list of what it answers.

Owns: the in-process peer, the reads into which its bytes are cut, and running one conversation with it.
Does not own: processes; nothing is started. The fake app-server shares no code with it on purpose.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from adapters.codex.adapter import CodexAdapter
from adapters.codex.conversation import Conversation
from adapters.contract import AgentRequest, Ending, Event, Limits, Preview, Resolved, Steer, Stop

LONG_S = 60.0  # only a hang reaches it
LIMITS = Limits(start_s=LONG_S, grace_s=LONG_S)
THREAD, TURN = "T", "U"
Message = dict[str, Any]
ID = b'"$ID"'  # in what the peer says: the id of the request that it is an answer to
Cut = Callable[[int], int]  # where in the output we are -> how many bytes the next read may have


def line(message: Message) -> bytes:
    """As on the wire; half a surrogate pair can only be an escape there."""
    try:
        return json.dumps(message, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(message).encode() + b"\n"


def notice(method: str, **params: Any) -> bytes:
    return line({"method": method, "params": {"threadId": THREAD, "turnId": TURN, **params}})


def message(text: str, phase: str | None = "final_answer", ident: str = "m1", **more: Any) -> bytes:
    item = {"type": "agentMessage", "id": ident, "text": text, "phase": phase, **more}
    return notice("item/completed", item=item)


def started() -> bytes:
    return notice("turn/started", turn={"id": TURN, "status": "inProgress"})


def done(status: str = "completed", **turn: Any) -> bytes:
    return notice("turn/completed", turn={"id": TURN, "status": status, "items": [], "error": None, **turn})


def whole(_: int) -> int:
    return 1 << 30


def by(size: int, offset: int = 0) -> Cut:
    """Reads that end at `offset`, `offset + size`, ..."""
    return lambda at: size - (at - offset) % size if size > 1 else 1


def at(position: int) -> Cut:
    """Two reads, cut at this position."""
    return lambda where: position - where if where < position else 1 << 30


class Codex:
    """The peer. `answers` maps a method to a result, an {"error": ...}, raw bytes, or None for silence; a function
    of the params makes any of these. After turn/start `turn` is said, and if `ends`, the output ends."""

    def __init__(
        self,
        turn: Iterable[bytes] = (),
        *,
        answers: Mapping[str, Any] | None = None,
        cut: Cut = whole,
        ends: bool = False,
    ) -> None:
        self.received: list[Message] = []
        self._turn, self._cut, self._ends = tuple(turn), cut, ends
        self._answers = {**ANSWERS, **(answers or {})}
        self._out = bytearray()
        self._given = 0
        self._rest = b""
        self._more = anyio.Event()
        self._over = False

    # --- Channel ----------------------------------------------------------------------------------------------

    async def receive(self) -> bytes:
        while not self._out:
            if self._over:
                return b""
            self._more = anyio.Event()
            await self._more.wait()
        size = max(1, self._cut(self._given))
        data = bytes(self._out[:size])
        del self._out[: len(data)]
        self._given += len(data)
        return data

    async def send(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for sent in map(json.loads, lines):
            self.received.append(sent)
            self.hear(sent)

    async def close_send(self) -> None:
        self.end()

    # --- what it says -----------------------------------------------------------------------------------------

    def say(self, data: bytes) -> None:
        self._out += data
        self._more.set()

    def end(self) -> None:
        self._over = True
        self._more.set()

    def hear(self, sent: Message) -> None:
        if "method" not in sent or "id" not in sent:
            return
        method, ident = sent["method"], json.dumps(sent["id"]).encode()
        answer = self._answers.get(method, {})
        answer = answer(sent["params"]) if callable(answer) else answer
        if isinstance(answer, bytes):
            self.say(answer.replace(ID, ident))
        elif answer is not None:
            self.say(line({"id": sent["id"], **(answer if "error" in answer else {"result": answer})}))
        if method == "turn/start":
            self.say(b"".join(self._turn).replace(ID, ident))
            if self._ends:
                self.end()

    def asked(self, method: str) -> list[Message]:
        return [m["params"] for m in self.received if m.get("method") == method]


def opened(params: Message) -> Message:
    """thread/start and thread/resume as a Codex that does what it is asked."""
    profile = params.get("default_permissions") or params["config"].get("default_permissions")
    kinds = params["config"].get("permissions", {}).get(profile, {}).get("filesystem", {})
    write = ":workspace_roots" in kinds
    roots = [path for path, kind in kinds.items() if kind == "write" and not path.startswith(":")]
    network = params["config"].get("permissions", {}).get(profile, {}).get("network") == {"enabled": True}
    sandbox: Message = {"type": "workspaceWrite" if write else "readOnly", "networkAccess": network}
    if write:
        sandbox["writableRoots"] = roots
    return {
        "thread": {"id": params.get("threadId", THREAD)},
        "model": params["model"],
        "cwd": params["cwd"],
        "approvalPolicy": params["approvalPolicy"],
        "sandbox": {"type": "dangerFullAccess"} if profile is None else sandbox,
        "activePermissionProfile": {"id": profile} if profile else None,
    }


ANSWERS: dict[str, Any] = {
    "initialize": {"userAgent": "cc-agents/0.171.0 (memory)"},
    "config/read": {"config": {}, "layers": []},
    "model/list": {
        "data": [
            {
                "id": "gpt-6.2-sol",
                "model": "gpt-6.2-sol",
                "isDefault": True,
                "supportedReasoningEfforts": [{"reasoningEffort": e} for e in ("low", "max", "ultra")],
                "defaultReasoningEffort": "low",
            }
        ],
        "nextCursor": None,
    },
    "account/read": {"account": {"type": "apiKey"}, "requiresOpenaiAuth": True},
    "thread/start": opened,
    "thread/resume": opened,
    "turn/start": {"turn": {"id": TURN, "status": "inProgress", "items": []}},
}


# --- our side -------------------------------------------------------------------------------------------------------


@dataclass
class Note:
    """A steer, and what became of it."""

    text: str
    accepted: bool = False
    refused: str | None = None

    def accept(self) -> None:
        self.accepted = True

    def refuse(self, why: str) -> None:
        self.refused = why


@dataclass
class Hand:
    """adapters.contract.Control in the hand of a test."""

    stop: Stop | None = None
    steers: list[Steer] = field(default_factory=list)
    _changed: anyio.Event = field(default_factory=anyio.Event)

    def next_steer(self) -> Steer | None:
        return self.steers.pop(0) if self.steers else None

    async def wait(self) -> None:
        await self._changed.wait()

    def ask(self, *, stop: Stop | None = None, steer: Steer | None = None) -> None:
        self.stop = stop or self.stop
        self.steers += [steer] if steer else []
        self._changed.set()
        self._changed = anyio.Event()


def request(**fields: Any) -> AgentRequest:
    given: Message = {"prompt": "do it", "mode": "read-only", "model": None, "effort": None, "cwd": "/", **fields}
    return AgentRequest(**given)


def resolved(home: Path | str = "/nowhere", **fields: Any) -> Resolved:
    """A checked request. The executable is one that every machine has; it is not started."""
    environ = {"HOME": str(home), "PATH": os.defpath}
    return CodexAdapter().check(request(harness_bin="/bin/sh", **fields), environ)


async def converse(
    codex: Any,
    *,
    limits: Limits = LIMITS,
    hand: Hand | None = None,
    events: Callable[[Event], None] | None = None,
    **fields: Any,
) -> Ending:
    with anyio.fail_after(LONG_S):
        talk = Conversation(codex, resolved(**fields), events or (lambda _: None), hand or Hand(), limits)
        return await talk.run()


async def preview(codex: Any, *, limits: Limits = LIMITS, **fields: Any) -> Preview:
    with anyio.fail_after(LONG_S):
        return await CodexAdapter().preview(codex, resolved(**fields), limits)
