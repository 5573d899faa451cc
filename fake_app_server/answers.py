"""What the fake answers to a request when the scenario says nothing else: like Codex 0.171.

Owns: initialize, config/read, model/list, account/read, thread/start, thread/resume, thread/read.
Does not own: turns (turns.py), reading and writing (server). Serves spec:cc-agents.fakes.
"""

from __future__ import annotations

import os
import re
import sys
from typing import Any

from fake_app_server import models
from fake_app_server.config import STARTABLE, Config, ConfigError, codex_home, merge
from fake_app_server.sandbox import BadVariant, permissions
from fake_app_server.scenario import Scenario
from fake_app_server.state import Store, Table, Thread, Turn
from fake_app_server.wire import Output, new_id

BAD_REQUEST = -32600
UNSUPPORTED = -32601
HISTORY_NOTICE = (
    "Full-history hydration is deprecated for paginated threads; use `excludeTurns: true`, then page with"
    " `thread/turns/list` and `thread/items/list`."
)
UUID = re.compile(r"^[0-9a-fA-F-]+$")


class RpcError(Exception):
    """A request is answered with an error. Raised by the defaults; `code` is -32600 unless stated."""

    def __init__(self, message: str, code: int = BAD_REQUEST) -> None:
        super().__init__(message)
        self.code = code


def need(params: Any, *fields: str) -> Table:
    if params is None:
        raise RpcError("Invalid request: missing field `params`")
    for field in fields:
        if field not in params:
            raise RpcError(f"Invalid request: missing field `{field}`")
    return dict(params)


class Answers:
    """The answers that need no turn. Methods take params and return a result, or raise RpcError."""

    def __init__(self, scenario: Scenario, config: Config, output: Output) -> None:
        self.scenario, self.config, self.output = scenario, config, output
        self.store = Store(scenario.store)
        self.threads: dict[str, Thread] = {}
        self.client = "client"
        self.catalog = models.DEFAULT_MODELS
        if scenario.models is not None:
            self.catalog = [models.complete(m, default=i == 0) for i, m in enumerate(scenario.models)]

    def initialize(self, params: Any) -> Table:
        given = need(params, "clientInfo")
        info = given["clientInfo"]
        self.client = info["name"]
        self.output.opted_out = frozenset((given.get("capabilities") or {}).get("optOutNotificationMethods") or ())
        version = self.scenario.version
        agent = f"{self.client}/{version} (Fake OS 1.0; x86_64) unknown ({self.client}; {info['version']})"
        return {
            "userAgent": agent,
            "codexHome": codex_home(),
            "platformFamily": "unix",
            "platformOs": "macos" if sys.platform == "darwin" else "linux",
        }

    def config_read(self, params: Any) -> Table:
        return self.config.read(bool(need(params).get("includeLayers")))

    def model_list(self, params: Any) -> Table:
        given = need(params)
        found = [m for m in self.catalog if given.get("includeHidden") or not m["hidden"]]
        cursor, limit = given.get("cursor"), given.get("limit") or len(found)
        if cursor is not None and not str(cursor).isdigit():
            raise RpcError(f"invalid cursor: {cursor}")
        at = int(cursor or 0)
        following = at + limit
        return {
            "data": found[at:following],
            "nextCursor": str(following) if following < len(found) else None,
        }

    def account_read(self, params: Any) -> Table:
        need(params)
        base = {
            "account": {"type": "apiKey"},
            "userId": None,
            "requiresOpenaiAuth": True,
            "workspaceRouting": None,
        }
        return {**base, **(self.scenario.account or {})}

    def default_model(self) -> str:
        return next((m["id"] for m in self.catalog if m["isDefault"]), self.catalog[0]["id"] if self.catalog else "")

    def thread_start(self, params: Any) -> Table:
        given = need(params)
        cwd = os.path.abspath(given.get("cwd") or os.getcwd())
        thread = Thread(self.scenario.thread_id or new_id(), cwd, ephemeral=bool(given.get("ephemeral")))
        thread.started_here = True
        return self._opened(thread, given)

    def thread_resume(self, params: Any) -> Table:
        given = need(params, "threadId")
        thread = self._known(given["threadId"])
        if given.get("cwd"):
            thread.cwd = os.path.abspath(given["cwd"])
        full = not given.get("excludeTurns")
        if full:
            self.output.notify("deprecationNotice", {"summary": HISTORY_NOTICE, "details": None})
        answer = self._opened(thread, given)
        mode = {
            "model": answer["model"],
            "reasoning_effort": answer["reasoningEffort"],
            "developer_instructions": None,
        }
        answer["collaborationMode"] = {"mode": "default", "settings": mode}
        answer["initialTurnsPage"] = None
        if full:
            answer["thread"]["turns"] = [turn.full() for turn in thread.turns]
        return answer

    def _known(self, thread_id: str) -> Thread:
        thread = self.threads.get(thread_id) or self.store.load(thread_id)
        if thread is not None:
            return thread
        known = self.scenario.known_threads
        if known is None and self.scenario.store is not None:
            known = []
        if known is not None and thread_id not in known:
            if not UUID.match(thread_id):
                raise RpcError(
                    "invalid session id: invalid character: expected an optional prefix of `urn:uuid:` followed"
                    f" by [0-9a-fA-F-], found `{thread_id[:1]}` at 1"
                )
            raise RpcError(f"no rollout found for thread id {thread_id}")
        thread = Thread(thread_id, os.getcwd())
        thread.turns = [Turn.from_wire(turn) for turn in self.scenario.history]
        return thread

    def _opened(self, thread: Thread, given: Table) -> Table:
        """The response of start and resume: what is in force, computed from the request."""
        try:
            config = self.config.for_thread(given.get("config"))
            sandbox, profile = permissions(given, config, thread.cwd)
        except ConfigError as error:
            raise RpcError(f"failed to load configuration: {error}") from error
        except BadVariant as error:
            raise RpcError(str(error)) from error
        if thread.id not in self.threads and not self.store.lock(thread.id):
            raise RpcError(f"thread {thread.id} already has an active writer")
        thread.model = given.get("model") or thread.model or config["model"] or self.default_model()
        thread.effort = config["model_reasoning_effort"] or thread.effort
        asked = given.get("approvalPolicy") or thread.approval or config["approval_policy"] or "on-request"
        thread.approval = self.config.managed("approval_policy") or asked
        thread.provider = config["model_provider"]
        thread.version, thread.originator = self.scenario.version, self.client
        self.threads[thread.id] = thread
        answer = {
            "thread": thread.to_wire(),
            "model": thread.model,
            "modelProvider": thread.provider,
            "serviceTier": None,
            "disabledPluginIds": [],
            "cwd": thread.cwd,
            "runtimeWorkspaceRoots": [thread.cwd],
            "instructionSources": [],
            "approvalPolicy": thread.approval,
            "approvalsReviewer": "user",
            "sandbox": sandbox,
            "activePermissionProfile": profile,
            "reasoningEffort": thread.effort,
            "multiAgentMode": "explicitRequestOnly",
        }
        return self._overridden(answer)

    def _overridden(self, answer: Table) -> Table:
        over = dict(self.scenario.thread)
        inner = over.pop("thread", {})
        if "model" in over:
            answer["thread"]["model"] = over["model"]
        answer["thread"] = merge(answer["thread"], inner)
        return {**answer, **over}

    def after_opening(self, params: Any, answer: Table) -> None:
        """What follows the response of start and resume on the wire."""
        thread_id = answer["thread"]["id"]
        thread = self.threads.get(thread_id)
        if thread is not None and thread.started_here and not thread.turns:
            self.output.notify("thread/started", {"thread": {**answer["thread"], "turns": []}})
        elif thread is not None:
            self._replay_usage(thread)
            self.output.notify("thread/goal/cleared", {"threadId": thread_id})
        self._start_servers(thread_id, params)

    def _replay_usage(self, thread: Thread) -> None:
        usage = self.scenario.replay_usage or thread.usage
        if usage is not None:
            turn = thread.turns[-1].id if thread.turns else new_id()
            self.output.notify("thread/tokenUsage/updated", {"turnId": turn, **usage, "threadId": thread.id})

    def _start_servers(self, thread_id: str, params: Any) -> None:
        """Every server that is on in the end says so: a client that turned it off must not see this."""
        servers = self.config.for_thread((params or {}).get("config"))["mcp_servers"]
        for name, server in servers.items():
            if server.get("enabled", True):
                states = ["starting", "ready"] if STARTABLE.match(name) else ["failed"]
                for status in states:
                    self._server_status(thread_id, name, status)

    def _server_status(self, thread_id: str, name: str, status: str) -> None:
        error = f"Invalid MCP server name '{name}': must match pattern {STARTABLE.pattern}"
        self.output.notify(
            "mcpServer/startupStatus/updated",
            {
                "threadId": thread_id,
                "name": name,
                "environmentId": None,
                "status": status,
                "error": error if status == "failed" else None,
                "failureReason": None,
            },
        )

    def thread_read(self, params: Any) -> Table:
        given = need(params, "threadId")
        thread = self.threads.get(given["threadId"])
        loaded = thread is not None
        thread = thread or self.store.load(given["threadId"])
        if thread is None and given["threadId"] in (self.scenario.known_threads or ()):
            thread = self._known(given["threadId"])
        if thread is None:
            raise RpcError(f"thread not loaded: {given['threadId']}")
        if not given.get("includeTurns"):
            shown = thread.to_wire()
        elif thread.turns:
            shown = thread.to_wire([turn.full() for turn in thread.turns])
        else:
            raise RpcError("list_turns is not supported yet", UNSUPPORTED)
        return {"thread": shown if loaded else {**shown, "status": {"type": "notLoaded"}, "environments": None}}
