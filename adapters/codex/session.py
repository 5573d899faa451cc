"""The start of a conversation: who answers, what is configured, which models there are, who is signed in.

Owns initialize, config/read, configRequirements/read, model/list and account/read, sent at once because none needs
another's answer. They start nothing (codex-facts sections 1 and 5). Does not own threads or turns.
Serves rule.catalogCheck.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.codex import catalog
from adapters.codex.methods import UNREAD_NOTIFICATIONS
from adapters.codex.wire import CLIENT_NAME, InitializeParams, Version, mapping, need_str
from adapters.contract import AgentRequest, ModelInfo, Problem
from adapters.jsonrpc import Peer, Pending, RpcError
from adapters.values import Value

OLDEST = Version(0, 145, 0)  # below it no permission profile stops exec rules (codex-facts section 13)
NEWEST_TRIED = Version(0, 171, 0)
QUEUES = Version(0, 146, 0)  # 0.145 has no queue of a thread; which later one is the first to have it, it says itself
UPDATE_HINT = "update it with `npm install -g @openai/codex@latest`"

MAX_PAGES = 20  # of model/list; a peer whose cursor never ends must not hold us


class Session(Value):
    version: Version | None
    config: Mapping[str, Any]
    layers: tuple[Mapping[str, Any], ...]
    requirements: Mapping[str, Any] | None  # None: this codex doesn't know the question
    models: tuple[ModelInfo, ...]
    signed_in: bool


async def greet(peer: Peer, request: AgentRequest, client_version: str, start_s: float) -> Session:
    """Raises PeerError or RpcError when Codex doesn't answer one of the five."""
    # a thread's queue can only be asked for with the experimental part of the protocol
    initialized = say_hello(peer, client_version, experimental=request.thread is not None)
    config_read = peer.post("config/read", {"cwd": request.cwd, "includeLayers": True})
    requirements = peer.post("configRequirements/read", None)
    model_list = peer.post("model/list", {"includeHidden": True})
    account_read = peer.post("account/read", {})

    version = Version.from_wire(need_str("initialize", await initialized.wait(start_s), "userAgent"))
    config = await config_read.wait(start_s)
    models = await _all_models(peer, await model_list.wait(start_s), start_s)
    account = await account_read.wait(start_s)
    layers = config.get("layers")
    return Session(
        version=version,
        config=mapping(config.get("config")),
        layers=tuple(map(mapping, layers)) if isinstance(layers, list) else (),
        requirements=await _answered(requirements, start_s),
        models=models,
        signed_in=account.get("account") is not None or account.get("requiresOpenaiAuth") is not True,
    )


async def _answered(requirements: Pending, start_s: float) -> Mapping[str, Any] | None:
    """A codex that doesn't know the question answers with an error: that is no reason for no turn, but is told."""
    try:
        return mapping((await requirements.wait(start_s)).get("requirements"))
    except RpcError:
        return None


def say_hello(peer: Peer, client_version: str, *, experimental: bool = False) -> Pending:
    """Introduces us; the answer to initialize is the Pending's."""
    capabilities: dict[str, Any] = {"optOutNotificationMethods": list(UNREAD_NOTIFICATIONS)}
    if experimental:
        capabilities["experimentalApi"] = True
    hello: InitializeParams = {
        "clientInfo": {"name": CLIENT_NAME, "title": CLIENT_NAME, "version": client_version},
        "capabilities": capabilities,
    }
    initialized = peer.post("initialize", {**hello})
    peer.notify("initialized")
    return initialized


async def _all_models(peer: Peer, page: Mapping[str, Any], start_s: float) -> tuple[ModelInfo, ...]:
    models = catalog.models_from_wire(page)
    for _ in range(MAX_PAGES):
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str) or not cursor:
            break
        page = await peer.request("model/list", {"includeHidden": True, "cursor": cursor}, start_s)
        models += catalog.models_from_wire(page)
    return models


def judge(session: Session, request: AgentRequest) -> tuple[catalog.Choice, list[Problem], list[str]]:
    """The model and effort, every problem that forbids a turn, and what is only worth a warning."""
    problems, warnings = version_verdict(session.version)
    if not session.signed_in:
        problems.append(Problem(reason="not_signed_in", message="Codex is not signed in: run `codex login`"))
    if session.requirements is None:
        warnings.append("Codex did not tell the requirements of this machine or company; its answer is compared")
    choice = catalog.choose(request.model, request.effort, session.config, session.models)
    return choice, [*problems, *choice.problems], [*warnings, *choice.warnings]


def version_verdict(version: Version | None) -> tuple[list[Problem], list[str]]:
    if version is None:
        return [], ["Codex did not say its version; what it answers is compared all the same"]
    if version < OLDEST:
        message = f"codex {version} is too old, its sandbox can be got round; {OLDEST} is the oldest: {UPDATE_HINT}"
        return [Problem(reason="codex_too_old", message=message)], []
    if version > NEWEST_TRIED:
        return [], [f"codex {version} is newer than {NEWEST_TRIED}, the newest that cc-agents was tried with"]
    return [], []
