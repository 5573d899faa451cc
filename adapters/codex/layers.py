"""What the layers of Codex's configuration say: which speak about access, and which outrank our switches.

Owns: reading config/read's `layers` and configRequirements/read, in words for a person. Starts nothing.
Does not own the switches (switches.py). Serves rule.readBack, rule.mcpOff, rule.hooksOff; facts: codex-facts section 1.
A managed file beats `-c` and a thread's configuration; requirements beat them too, and are in no layer.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from adapters.codex.switches import Switch, secret_settings

OURS = "sessionFlags"
REQUIREMENTS = "the requirements of this machine or company"
# What a layer may say that changes a sandbox or an approval policy.
_TELLING_KEYS = (
    "sandbox_mode",
    "sandbox_workspace_write",
    "default_permissions",
    "permissions",
    "approval_policy",
    "model",
)

Layers = Sequence[Mapping[str, Any]]


def layers_that_say(layers: Layers) -> list[str]:
    """Which configuration layers speak about access, for the message of a refusal: "<layer>: <keys>"."""
    found = []
    for layer in _counting(layers):
        config = _table(layer.get("config"))
        if _layer_type(layer.get("name")) == OURS:
            continue
        keys = [k for k in _TELLING_KEYS if config.get(k) is not None]
        if keys:
            found.append(f"{_layer_name(layer.get('name'))}: {', '.join(keys)}")
    return found


def outranking(
    layers: Layers,
    requirements: Mapping[str, Any],
    switches: Iterable[Switch],
    servers: Iterable[str],
    *,
    secrets: bool,
) -> list[str]:
    """What would stay on although it is switched off; [] means that every switch counts.

    `secrets`: keys, secrets and tokens must not reach commands. Each entry names what, and who says it.
    """
    switches, servers = list(switches), list(servers)
    found = []
    for layer in _above_ours(layers):
        config, name = _table(layer.get("config")), _layer_name(layer.get("name"))
        found += [f"{key} stays on: {name} outranks the command line" for key in _kept_on(config, switches, servers)]
        if secrets:
            found += [f"{name} gives {v} to every command" for v in secret_settings(config)]
    features = _table(requirements.get("featureRequirements"))
    off = {s.key.removeprefix("features.") for s in switches if s.value is False and s.key.startswith("features.")}
    found += [f"features.{f} stays on: {REQUIREMENTS} say so" for f in features if f in off and features[f] is True]
    if any(s.key == "features.hooks" for s in switches):
        found += [f"{REQUIREMENTS} run a hook at {event}" for event in _hooks(requirements)]
    return found


def _counting(layers: Layers) -> Iterator[Mapping[str, Any]]:
    """Without those that Codex passes by: of a project that is not trusted."""
    return (layer for layer in layers if not layer.get("disabledReason"))


def _above_ours(layers: Layers) -> list[Mapping[str, Any]]:
    """The strongest is the first."""
    above: list[Mapping[str, Any]] = []
    for layer in _counting(layers):
        if _layer_type(layer.get("name")) == OURS:
            return above
        above.append(layer)
    return []  # ours is not named: then nothing can be told from the order


def _kept_on(config: Mapping[str, Any], switches: Iterable[Switch], servers: Iterable[str]) -> Iterator[str]:
    for switch in switches:
        said: Any = config
        for part in switch.key.split("."):
            said = _table(said).get(part)
        if said is not None and said != switch.value:
            yield switch.key
    for server in servers:
        if _table(_table(config.get("mcp_servers")).get(server)).get("enabled") is True:
            yield f"mcp_servers.{server}"


def _hooks(requirements: Mapping[str, Any]) -> list[str]:
    return [event for event, groups in _table(requirements.get("hooks")).items() if isinstance(groups, list) and groups]


def folders_of(layers: Layers, codex_home: str) -> list[str]:
    """The folder of each layer, where further files of it may lie: $CODEX_HOME, a project's .codex, /etc/codex."""
    found = [codex_home]
    for layer in _counting(layers):
        name = _table(layer.get("name"))
        folder, file = name.get("dotCodexFolder"), name.get("file")
        if isinstance(folder, str):
            found.append(folder)
        elif isinstance(file, str):
            found.append(os.path.dirname(file))
    return list(dict.fromkeys(found))


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _layer_type(name: Any) -> str:
    return str(_table(name).get("type", ""))


def _layer_name(name: Any) -> str:
    if isinstance(name, Mapping):
        where = name.get("file") or name.get("dotCodexFolder") or name.get("path") or name.get("name") or ""
        return f"{name.get('type', 'layer')} {where}".strip()
    return str(name)
