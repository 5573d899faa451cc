"""A mode as Codex's sandbox, and the proof that Codex took it.

Owns: the permission profile of read-only and write, the parameters of thread/start and thread/resume that say the
mode, the comparison of the response with them. Codex's sandbox is the only enforcer. Which folders: folders.py.
Serves rule.modes, rule.readBack, rule.execRulesClosed; facts: codex-facts section 3.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from adapters.codex.folders import Folders
from adapters.contract import AgentRequest, Mode
from adapters.values import Value

SANDBOX_TYPE: dict[Mode, str] = {"read-only": "readOnly", "write": "workspaceWrite", "yolo": "dangerFullAccess"}
APPROVAL_POLICY = "never"
HERE = "local"  # the environment of Codex in which commands run on this machine, started by Codex itself


class Access(Value):
    """What a turn may do, in full: nothing of it is left to the user's configuration."""

    mode: Mode
    cwd: str
    folders: Folders
    network: bool
    profile: str  # unlike any profile of the user's, which would be merged into it

    @property
    def roots(self) -> tuple[str, ...]:
        """Writable beside the directory and the temporary folders; real paths."""
        return self.folders.roots


def access_of(request: AgentRequest, folders: Folders, *, profile: str) -> Access:
    return Access(
        mode=request.mode,
        cwd=request.cwd,
        folders=folders,
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
        files |= dict.fromkeys((*access.roots, *access.folders.pinned), "write")
        files |= dict.fromkeys(access.folders.read_only, "read")
    files |= dict.fromkeys(access.folders.denied, "deny")
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
        asked = sorted({*access.roots, *access.folders.pinned})
        compare("writable folders", asked, sorted(_roots(access, sandbox)))
    if access.mode != "yolo":
        compare("network", access.network, sandbox.get("networkAccess"))
        active = response.get("activePermissionProfile")
        compare("permission profile", access.profile, active.get("id") if isinstance(active, Mapping) else None)
        compare("where commands run", [HERE], _environments(response))
    compare("approval policy", APPROVAL_POLICY, response.get("approvalPolicy"))
    compare("directory", os.path.realpath(access.cwd), _real(response.get("cwd")))
    compare("model", model, response.get("model"))
    return found


def _environments(response: Mapping[str, Any]) -> list[str]:
    """The executors that a thread may use; 0.145 doesn't name them (then folder and environment are checked before)."""
    thread = response.get("thread")
    named = thread.get("environments") if isinstance(thread, Mapping) else None
    if named is None:
        return [HERE]
    if not isinstance(named, list):
        return ["(not a list)"]
    return [str(e.get("environmentId")) if isinstance(e, Mapping) else _say(e) for e in named]


def _roots(access: Access, sandbox: Mapping[str, Any]) -> set[str]:
    roots = sandbox.get("writableRoots")
    answered = {_real(r) for r in roots} if isinstance(roots, list) else {"(not a list)"}
    return answered - {os.path.realpath(access.cwd)}


def _real(path: Any) -> str:
    try:
        return os.path.realpath(path) if isinstance(path, str) else _say(path)
    except ValueError:  # no path: a NUL or half a surrogate pair is in it
        return repr(path)


def _say(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "on" if value else "off"
    return ", ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)
