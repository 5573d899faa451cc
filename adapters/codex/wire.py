"""The wire objects of `codex app-server`: what we send as TypedDicts, what we read as small frozen values.

Owns field names and the error that names a missing load-bearing field. Unknown fields are passed by.
Facts: codex-facts sections 0, 5, 6, 8. Serves spec:cc-agents.misbehaving-peer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, TypedDict

from adapters.contract import PeerError

CLIENT_NAME = "cc-agents"


class ClientInfo(TypedDict):
    name: str
    title: str
    version: str


class InitializeParams(TypedDict):
    clientInfo: ClientInfo
    capabilities: dict[str, Any]


class TurnStartParams(TypedDict, total=False):
    threadId: str
    input: list[dict[str, Any]]
    model: str
    effort: str
    outputSchema: Mapping[str, Any]


class TurnSteerParams(TypedDict):
    threadId: str
    expectedTurnId: str
    input: list[dict[str, Any]]


class TurnInterruptParams(TypedDict):
    threadId: str
    turnId: str


def user_input(prompt: str, images: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    return [{"type": "text", "text": prompt}, *({"type": "localImage", "path": path} for path in images)]


def review_params(thread: str, base: str | None) -> dict[str, Any]:
    """Of review/start: inline, on the thread itself."""
    target = {"type": "uncommittedChanges"} if base is None else {"type": "baseBranch", "branch": base}
    return {"threadId": thread, "target": target, "delivery": "inline"}


def need_str(method: str, value: Mapping[str, Any], path: str) -> str:
    """The string at a dotted path. Raises PeerError `protocol` that names method and field."""
    node: Any = value
    for name in path.split("."):
        node = node.get(name) if isinstance(node, Mapping) else None
    if not isinstance(node, str) or not node:
        raise PeerError("protocol", f"{method}: the answer of Codex has no {path}")
    return node


def text_of(params: Mapping[str, Any], *names: str) -> str:
    """The first non-empty string among the named fields, else ""."""
    for name in names:
        value = params.get(name)
        if isinstance(value, str) and value:
            return value
    return ""


def mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


class Version(NamedTuple):
    """`major.minor.patch` of a codex; a pre-release counts as its release."""

    major: int
    minor: int
    patch: int

    @classmethod
    def from_wire(cls, user_agent: str) -> Version | None:
        """Out of initialize's userAgent, "<client>/0.171.0 (Debian …) …"; None where no version is found."""
        match = re.match(r"[^/]*/(\d+)\.(\d+)\.(\d+)", user_agent)
        return cls(*map(int, match.groups())) if match else None

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"
