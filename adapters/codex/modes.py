"""A mode as Codex's sandbox, and the proof that Codex took it.

Owns: the permission profile of read-only and write, the parameters of thread/start and thread/resume that say the
mode, the comparison of the response with them. Codex's sandbox is the only enforcer.
Serves rule.modes, rule.readBack, rule.execRulesClosed; facts: codex-facts section 3.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adapters.contract import AgentRequest, Mode

SANDBOX_TYPE: dict[Mode, str] = {"read-only": "readOnly", "write": "workspaceWrite", "yolo": "dangerFullAccess"}
APPROVAL_POLICY = "never"


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What a turn may do, in full: nothing of it is left to the user's configuration."""

    mode: Mode
    cwd: str
    roots: tuple[str, ...]  # writable beside cwd and the temporary folders; real paths
    read_only: tuple[str, ...]  # stay read-only even below a writable folder
    denied: tuple[str, ...]  # can't be read; at least one, or exec rules get round the sandbox
    network: bool
    profile: str  # unlike any profile of the user's, which would be merged into it


def access_of(request: AgentRequest, *, codex_home: str, profile: str) -> Access:
    write = request.mode == "write"
    roots = dict.fromkeys(map(os.path.realpath, (*request.add_dirs, *request.writable_dirs))) if write else {}
    roots.pop(os.path.realpath(request.cwd), None)
    return Access(
        mode=request.mode,
        cwd=request.cwd,
        roots=tuple(roots),
        read_only=(codex_home, *request.protected),
        denied=tuple(
            dict.fromkeys(os.path.join(home, "auth.json") for home in (codex_home, os.path.realpath(codex_home)))
        ),
        network=request.network or request.mode == "yolo",
        profile=profile,
    )


def thread_params(access: Access, config: dict[str, Any]) -> dict[str, Any]:
    """cwd, approvalPolicy, config and, in yolo, sandbox of thread/start and thread/resume.

    `sandbox` is not sent beside a profile: it would win, and open the way round it again.
    """
    params: dict[str, Any] = {"cwd": access.cwd, "approvalPolicy": APPROVAL_POLICY, "config": config}
    if access.mode == "yolo":
        params["sandbox"] = "danger-full-access"
        return params
    config["default_permissions"] = access.profile
    config["permissions"] = {access.profile: _profile(access)}
    return params


def _profile(access: Access) -> dict[str, Any]:
    files: dict[str, str] = {":root": "read"}
    if access.mode == "write":
        files |= {":workspace_roots": "write", ":tmpdir": "write", ":slash_tmp": "write"}
        files |= dict.fromkeys(access.roots, "write")
        files |= dict.fromkeys(access.read_only, "read")
    files |= dict.fromkeys(access.denied, "deny")
    profile: dict[str, Any] = {"filesystem": files}
    if access.network:
        profile["network"] = {"enabled": True}
    return profile


def differences(access: Access, model: str, response: Mapping[str, Any]) -> list[str]:
    """What the response of thread/start or thread/resume says other than was asked; [] means that the mode holds.

    Each entry reads "<field>: asked <x>, Codex answered <y>".
    """
    found: list[str] = []

    def compare(field: str, asked: Any, answered: Any) -> None:
        if asked != answered:
            found.append(f"{field}: asked {_say(asked)}, Codex answered {_say(answered)}")

    sandbox = response.get("sandbox")
    sandbox = sandbox if isinstance(sandbox, Mapping) else {}
    compare("sandbox", SANDBOX_TYPE[access.mode], sandbox.get("type"))
    if access.mode == "write":
        compare("writable folders", sorted(access.roots), sorted(_roots(access, sandbox)))
    if access.mode != "yolo":
        compare("network", access.network, sandbox.get("networkAccess"))
        active = response.get("activePermissionProfile")
        compare("permission profile", access.profile, active.get("id") if isinstance(active, Mapping) else None)
    compare("approval policy", APPROVAL_POLICY, response.get("approvalPolicy"))
    compare("directory", os.path.realpath(access.cwd), _real(response.get("cwd")))
    compare("model", model, response.get("model"))
    return found


# What a layer may say that changes a sandbox or an approval policy.
_TELLING_KEYS = (
    "sandbox_mode",
    "sandbox_workspace_write",
    "default_permissions",
    "permissions",
    "approval_policy",
    "model",
)


def layers_that_say(layers: Sequence[Mapping[str, Any]]) -> list[str]:
    """Which configuration layers speak about access, for the message of a refusal: "<layer>: <keys>"."""
    found = []
    for layer in layers:
        config = layer.get("config")
        if _layer_type(layer.get("name")) == "sessionFlags":
            continue  # our own flags
        keys = [k for k in _TELLING_KEYS if isinstance(config, Mapping) and config.get(k) is not None]
        if keys:
            found.append(f"{_layer_name(layer.get('name'))}: {', '.join(keys)}")
    return found


def _layer_type(name: Any) -> str:
    return str(name.get("type", "")) if isinstance(name, Mapping) else ""


def _layer_name(name: Any) -> str:
    if isinstance(name, Mapping):
        where = name.get("file") or name.get("dotCodexFolder") or name.get("path") or ""
        return f"{name.get('type', 'layer')} {where}".strip()
    return str(name)


def _roots(access: Access, sandbox: Mapping[str, Any]) -> set[str]:
    roots = sandbox.get("writableRoots")
    answered = {_real(r) for r in roots} if isinstance(roots, list) else {"(not a list)"}
    return answered - {os.path.realpath(access.cwd)}


def _real(path: Any) -> str:
    return os.path.realpath(path) if isinstance(path, str) else _say(path)


def _say(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "on" if value else "off"
    return ", ".join(value) or "none" if isinstance(value, list) else str(value)
