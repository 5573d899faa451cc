"""What is switched off before Codex starts, and again for each thread.

Owns: the `-c` flags of the app-server, the nested `config` of thread/start and thread/resume, the environment that
Codex gets. Does not own the sandbox (modes.py). Serves rule.mcpOff and spec:cc-agents.mode-holds.
Each switch has its test in tests_live that opens the gap again when the switch is taken out.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from adapters.contract import Mode
from adapters.values import Value


class Switch(Value):
    """One thing that is off: `key = value` in Codex's configuration, in the modes that need it."""

    key: str
    value: Any
    modes: tuple[Mode, ...] = ("read-only", "write", "yolo")
    with_network: bool = True  # False: the switch is left alone where the network is allowed
    why: str


SANDBOXED: tuple[Mode, ...] = ("read-only", "write")

SWITCHES: tuple[Switch, ...] = (
    Switch(key="features.apps", value=False, why="connectors act outside the sandbox"),
    Switch(key="features.plugins", value=False, why="plugins bring MCP servers of their own"),
    Switch(
        key="features.skill_mcp_dependency_install", value=False, why="a skill installs and starts MCP servers with it"
    ),
    Switch(key="features.goals", value=False, why="a goal starts turns by itself"),
    Switch(key="features.memories", value=False, why="memories start work of their own, at the model and on disk"),
    Switch(key="features.unbounded_connection_retries", value=False, why="a turn without a connection would never end"),
    Switch(key="check_for_update_on_startup", value=False, why="a turn asks no registry"),
    Switch(key="features.hooks", value=False, modes=SANDBOXED, why="hooks run outside the sandbox"),
    Switch(key="notify", value=[], modes=SANDBOXED, why="the notify program runs outside the sandbox"),
    Switch(
        key="features.shell_snapshot",
        value=False,
        modes=SANDBOXED,
        why="the snapshot runs rc files outside the sandbox",
    ),
    Switch(
        key="features.use_legacy_landlock",
        value=False,
        modes=SANDBOXED,
        why="the old sandbox can't deny a path, and Codex then refuses every command",
    ),
    Switch(
        key="web_search", value="disabled", modes=SANDBOXED, with_network=False, why="the provider's search has network"
    ),
    Switch(
        key="features.image_generation",
        value=False,
        modes=SANDBOXED,
        with_network=False,
        why="the provider's tool acts outside the sandbox",
    ),
    Switch(
        key="shell_environment_policy.ignore_default_excludes",
        value=False,
        modes=SANDBOXED,
        with_network=False,
        why="keys, secrets and tokens stay out of a command's environment",
    ),
)

# Sub-agents are Codex's own and stay on, but a role of the user's is a layer of configuration above ours: 0.145 starts
# its MCP servers and its `notify`, and takes its word for the environment.
NO_AGENTS = Switch(
    key="agents.enabled", value=False, modes=SANDBOXED, why="a role of its own could undo what is switched off here"
)

# Claude Code's own variables, and ours but for the marker of the turn, are nobody's business in Codex. The last
# ones would send the commands to another machine.
NOT_FOR_CODEX = re.compile(r"^(ANTHROPIC_|CLAUDE|CC_AGENTS_|CODEX_EXEC_SERVER_)")

# As Codex has it: these are kept from commands unless the user's configuration says otherwise.
SECRET = re.compile(r"KEY|SECRET|TOKEN", re.IGNORECASE)

# A server starts only under a name of this form; others are rejected by Codex itself (codex-facts section 1).
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def switches_for(mode: Mode, *, network: bool) -> tuple[Switch, ...]:
    return tuple(s for s in SWITCHES if mode in s.modes and (s.with_network or not network))


def flags(switches: Iterable[Switch], mcp_servers: Iterable[str]) -> list[str]:
    """`-c key=value …` for the app-server's argv. The servers' names come as one inline table: the only form that
    can say a name with a dot in it."""
    argv: list[str] = []
    for switch in switches:
        argv += ["-c", f"{switch.key}={_toml(switch.value)}"]
    if names := sorted(mcp_servers):
        table = ",".join(f"{_toml_key(name)}={{enabled=false}}" for name in names)
        argv += ["-c", f"mcp_servers={{{table}}}"]
    return argv


def thread_config(switches: Iterable[Switch], mcp_servers: Iterable[str]) -> dict[str, Any]:
    """The same as nested `config` of thread/start and thread/resume: what project and system layers hold is known
    only after config/read, and nothing of it is kept over a resume."""
    config: dict[str, Any] = {}
    for switch in switches:
        *parents, last = switch.key.split(".")
        node = config
        for name in parents:
            node = node.setdefault(name, {})
        node[last] = switch.value
    if names := sorted(mcp_servers):
        config["mcp_servers"] = {name: {"enabled": False} for name in names}
    return config


def configured_servers(config: Mapping[str, Any]) -> tuple[str, ...]:
    servers = config.get("mcp_servers")
    return tuple(sorted(map(str, servers))) if isinstance(servers, Mapping) else ()


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The user's environment without Claude Code's variables and ours."""
    return {k: v for k, v in environ.items() if not NOT_FOR_CODEX.match(k)}


# --- what only the configuration itself tells -------------------------------------------------------------------


def secret_settings(config: Mapping[str, Any]) -> tuple[str, ...]:
    """The variables with a secret's name that `[shell_environment_policy.set]` gives to every command."""
    policy = config.get("shell_environment_policy")
    given = policy.get("set") if isinstance(policy, Mapping) else None
    return tuple(sorted(name for name in given if SECRET.search(name))) if isinstance(given, Mapping) else ()


def without(config: dict[str, Any], secrets: Iterable[str]) -> dict[str, Any]:
    """A thread's `config` with an empty value for each of those variables: a table can't lose a key."""
    for name in secrets:
        config.setdefault("shell_environment_policy", {}).setdefault("set", {})[name] = ""
    return config


def roles(config: Mapping[str, Any], folders: Iterable[str]) -> tuple[str, ...]:
    """The user's own roles for sub-agents: tables of `[agents]`, and files below `agents` in a layer's folder."""
    agents = config.get("agents")
    found = {str(n) for n, v in agents.items() if isinstance(v, Mapping)} if isinstance(agents, Mapping) else set()
    for folder in folders:
        for path, dirs, files in os.walk(os.path.join(folder, "agents")):
            found |= {os.path.splitext(f)[0] for f in files if f.endswith(".toml")}
            found |= {d for d in dirs if os.path.islink(os.path.join(path, d))}  # not looked into: it may go round
    return tuple(sorted(found))


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    # JSON strings and lists of them are TOML too, but for two halves of a surrogate pair and DEL
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml_key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _toml(name)
