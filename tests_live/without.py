"""The command with one of its protections taken out: `python -m tests_live.without NAME WORD...`.

Owns: the list of what can be taken out, at the seams of adapters/codex. For the live suite alone: a test of a
protection that can't fail is worth nothing, so each gap is opened once to show that its test would see it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from adapters.codex import conversation, folders, home_files, layers, modes, switches, tracker
from adapters.codex.folders import Folders
from adapters.codex.session import Session
from adapters.contract import AgentRequest
from adapters.values import replace


def switch(key: str) -> None:
    left = tuple(s for s in switches.SWITCHES if s.key != key)
    assert len(left) == len(switches.SWITCHES) - 1, key
    switches.SWITCHES = left


def profile() -> None:
    """The old way: a sandbox by its name, beside the user's configuration."""
    names = {"read-only": "read-only", "write": "workspace-write", "yolo": "danger-full-access"}

    def thread_params(access: modes.Access, config: dict[str, Any]) -> dict[str, Any]:
        return {"cwd": access.cwd, "approvalPolicy": "never", "config": config, "sandbox": names[access.mode]}

    modes.thread_params = thread_params
    read_back()


def read_back() -> None:
    modes.differences = lambda access, model, response: []


def folders_without(**changes: Any) -> None:
    """`changes` replace fields of what `lay_out` found."""
    found = folders.lay_out

    def lay_out(request: AgentRequest, environ: Mapping[str, str], **names: Any) -> Folders:
        return replace(found(request, environ, **names), **changes)

    folders.lay_out = lay_out


def denied() -> None:
    folders_without(denied=())


def private() -> None:
    """Our sockets are not denied; the sign-in still is."""
    found = folders.lay_out

    def lay_out(request: AgentRequest, environ: Mapping[str, str], **names: Any) -> Folders:
        return found(replace(request, private=()), environ, **names)

    folders.lay_out = lay_out


def kept() -> None:
    folders_without(read_only=(), pinned=())


def pins() -> None:
    folders_without(pinned=())


def refused_folders() -> None:
    folders_without(problems=())


def tmpdir() -> None:
    folders._tmpdir = lambda *_, **__: (None, ())


def servers() -> None:
    """No server is switched off by its name; that one starts is still a breach."""
    found = switches.configured_servers
    switches.configured_servers = lambda config: ()
    home_files.user_servers = lambda codex_home: ()
    assert found is not switches.configured_servers


def server_watch() -> None:
    """And nobody looks whether one starts."""
    servers()
    tracker.MCP_RUNNING = ("(no status)", "(no status)")


def hook_watch() -> None:
    tracker.Tracker._on_hook = lambda self, params: None  # type: ignore[method-assign]


def outranking() -> None:
    layers.outranking = lambda *_, **__: []


def environment() -> None:
    switches.environment = lambda environ: dict(environ)


def set_secrets() -> None:
    switches.secret_settings = lambda config: ()


def roles() -> None:
    switches.roles = lambda config, folders: ()


def executors() -> None:
    home_files.other_executors = lambda codex_home: None
    read_back()


async def _no_queue(self: conversation.Conversation, session: Session, thread: str) -> bool:
    return False


def queue() -> None:
    conversation.Conversation._has_queue = _no_queue  # type: ignore[method-assign]


def resent() -> None:
    """What a resume would be if Codex remembered: neither mode nor switches are sent again."""

    async def resume(self: conversation.Conversation, params: dict[str, Any]) -> dict[str, Any]:
        sent = {k: v for k, v in params.items() if k in ("threadId", "cwd", "model", "approvalPolicy")}
        return await self._call("thread/resume", sent)

    conversation.Conversation._resume = resume  # type: ignore[method-assign]
    read_back()


PROTECTIONS: dict[str, Callable[[], None]] = {
    f.__name__: f
    for f in (
        profile, read_back, denied, private, kept, pins, refused_folders, tmpdir, servers, server_watch, hook_watch,
        outranking, environment, set_secrets, roles, executors, queue, resent,
    )
}  # fmt: skip


def take_out(name: str) -> None:
    """Several are joined by "+"; a switch is named by its key."""
    for part in name.split("+"):
        PROTECTIONS[part]() if part in PROTECTIONS else switch(part)


if __name__ == "__main__":
    from sidecar import cli

    take_out(sys.argv[1])
    sys.exit(cli.main(sys.argv[2:]))
