"""The configuration that the fake pretends to have: layers, flags, and what they add up to.

Owns: merging and the answer of config/read. Does not own: the sandbox that follows from it (sandbox).
Serves spec:cc-agents.fakes; facts as in sections 1, 3 and 5 of the notes on Codex 0.171.
"""

from __future__ import annotations

import os
import re
from typing import Any

from fake_app_server.tomlflags import put

Table = dict[str, Any]

# Layers that win over -c and over the thread's own config.
MANAGED = frozenset({"legacyManagedConfigTomlFromFile", "legacyManagedConfigTomlFromMdm", "mdm", "enterpriseManaged"})
STARTABLE = re.compile(r"^[a-zA-Z0-9_:@/.-]+$")
VERSION = "sha256:" + "0" * 64

BASE: Table = {
    **dict.fromkeys(
        "model review_model model_context_window model_auto_compact_token_limit approval_policy approvals_reviewer"
        " sandbox_mode sandbox_workspace_write forced_login_method tools instructions developer_instructions"
        " compact_prompt model_reasoning_effort model_reasoning_summary model_verbosity service_tier analytics"
        " apps default_permissions permissions projects goals agents hooks".split()
    ),
    "model_provider": "openai",
    "web_search": "disabled",
    "features": {"apps": True, "plugins": True, "goals": True, "hooks": True, "shell_snapshot": True},
    "mcp_servers": {},
    "notify": None,
    "profiles": {},
    "project_doc_max_bytes": 32768,
    "project_root_markers": [".git"],
}


class ConfigError(Exception):
    """Codex would refuse this configuration. Its text is what Codex says."""


def merge(base: Any, over: Any) -> Any:
    """Tables merge key by key, everything else is replaced: an empty table takes nothing away."""
    if not isinstance(base, dict) or not isinstance(over, dict):
        return over
    return {**base, **{key: merge(base.get(key), value) for key, value in over.items()}}


def check_servers(table: Table) -> None:
    for name, server in (table.get("mcp_servers") or {}).items():
        if not isinstance(server, dict) or not (server.get("command") or server.get("url")):
            raise ConfigError(f"invalid transport\nin `mcp_servers.{name}`\n")


class Config:
    """All that holds before a thread adds its own: the scenario's config, the layers, the flags."""

    def __init__(self, user: Table, layers: list[Table] | None, flags: Table) -> None:
        """Raises ConfigError, where Codex would not even start."""
        self._user, self._flags, self._layers = user, flags, layers
        self._managed: Table = {}
        for layer in layers or ():
            if layer["name"]["type"] in MANAGED:
                self._managed = merge(self._managed, layer.get("config") or {})
        self.merged = self._sum({})
        check_servers(self.merged)

    def _sum(self, thread: Table) -> Table:
        table: Table = BASE
        for layer in reversed(self._layers or ()):  # the first of the list is the strongest
            table = merge(table, layer.get("config") or {})
        for part in (self._user, self._flags, _nested(thread), self._managed):
            table = merge(table, part)
        return table

    def for_thread(self, thread: Table | None) -> Table:
        """Raises ConfigError for a thread config that names a server which nobody has configured."""
        table = self._sum(thread or {})
        check_servers(table)
        return table

    def managed(self, key: str) -> Any:
        return self._managed.get(key)

    def read(self, include_layers: bool) -> Table:
        answer: Table = {"config": self._shown(), "origins": {}, "layers": None}
        if include_layers:
            answer["layers"] = self._all_layers()
        return answer

    def _shown(self) -> Table:
        servers = {
            name: {"environment_id": "local", "enabled": True, "tool_timeout_sec": None, **server}
            for name, server in self.merged["mcp_servers"].items()
        }
        return {**self.merged, "mcp_servers": servers}

    def _all_layers(self) -> list[Table]:
        layers: list[Table] = []
        if self._flags:
            layers.append({"name": {"type": "sessionFlags"}, "version": VERSION, "config": self._flags})
        if self._layers is not None:
            given = [{"version": VERSION, "config": {}, **layer} for layer in self._layers]
            above = [layer for layer in given if layer["name"]["type"] in MANAGED]
            return above + layers + [layer for layer in given if layer not in above]
        file = os.path.join(codex_home(), "config.toml")
        name = {"type": "user", "file": file, "profile": None}
        layers.append({"name": name, "version": VERSION, "config": self._user})
        system = {"type": "system", "file": "/etc/codex/config.toml"}
        return [*layers, {"name": system, "version": VERSION, "config": {}}]


def _nested(thread: Table) -> Table:
    """A thread's config may use dotted keys beside nested ones."""
    found: Table = {}
    for key, value in thread.items():
        if "." in key:
            put(found, key.split("."), value)
        else:
            found[key] = merge(found.get(key), value)
    return found


def codex_home() -> str:
    return os.environ.get("CODEX_HOME") or os.path.join(os.path.expanduser("~"), ".codex")
