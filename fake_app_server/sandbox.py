"""What a thread may do, computed from a request as Codex 0.171 computes it.

Owns: sandbox, activePermissionProfile and approvalPolicy of thread/start and thread/resume.
Does not own: enforcement (there is none here) and merging (config). Serves spec:cc-agents.fakes.
Each row was compared with the real binary: profile entries, built-in profiles, `sandbox`, leaks of the user's config.
"""

from __future__ import annotations

import os
from typing import Any

from fake_app_server.config import ConfigError

Table = dict[str, Any]

MODES = ("read-only", "workspace-write", "danger-full-access")
ACCESS = ("read", "write", "deny", "none")
BUILT_IN = {
    ":read-only": "read-only",
    ":workspace": "workspace-write",
    ":danger-full-access": "danger-full-access",
}


class BadVariant(Exception):
    """A word that Codex doesn't know in this place."""

    def __init__(self, word: str) -> None:
        known = ", ".join(f"`{mode}`" for mode in MODES)
        super().__init__(f"Invalid request: unknown variant `{word}`, expected one of {known}")


def permissions(params: Table, config: Table, cwd: str) -> tuple[Table, Table | None]:
    """(sandbox, activePermissionProfile) of a thread. Raises BadVariant and ConfigError."""
    mode = params.get("sandbox")
    if mode is not None:
        if mode not in MODES:
            raise BadVariant(str(mode))
        return from_mode(mode, config), None
    name = config.get("default_permissions")
    if name is not None:
        return from_profile(name, config, cwd), {"id": name, "extends": None}
    if config.get("sandbox_mode"):
        return from_mode(config["sandbox_mode"], config), None
    trusted = ((config.get("projects") or {}).get(cwd) or {}).get("trust_level") == "trusted"
    return from_mode("workspace-write" if trusted else "read-only", config), {
        "id": ":workspace" if trusted else ":read-only",
        "extends": None,
    }


def from_mode(mode: str, config: Table) -> Table:
    """`sandbox` of the request: for workspace-write the configuration still decides network and roots."""
    if mode == "danger-full-access":
        return {"type": "dangerFullAccess"}
    if mode == "read-only":
        return {"type": "readOnly", "networkAccess": False}
    own = config.get("sandbox_workspace_write") or {}
    return workspace_write(
        own.get("writable_roots") or [],
        network=bool(own.get("network_access")),
        tmpdir=not own.get("exclude_tmpdir_env_var"),
        slash_tmp=not own.get("exclude_slash_tmp"),
    )


def workspace_write(roots: list[str], *, network: bool, tmpdir: bool, slash_tmp: bool) -> Table:
    return {
        "type": "workspaceWrite",
        "writableRoots": roots,
        "networkAccess": network,
        "excludeTmpdirEnvVar": not tmpdir,
        "excludeSlashTmp": not slash_tmp,
    }


def from_profile(name: str, config: Table, cwd: str) -> Table:
    """A permission profile says the whole truth: nothing of the user's sandbox settings leaks into it."""
    if name in BUILT_IN:
        return from_mode(BUILT_IN[name], {})
    profiles = config.get("permissions")
    if not profiles:
        raise ConfigError("default_permissions requires a `[permissions]` table")
    if name not in profiles:
        raise ConfigError(f"default_permissions refers to unknown profile `{name}`")
    files = profiles[name].get("filesystem") or {}
    write = {path for path, access in files.items() if _access(access) == "write"}
    network = bool((profiles[name].get("network") or {}).get("enabled"))
    if ":root" in write:
        if network:
            return {"type": "dangerFullAccess"}
        return {"type": "externalSandbox", "networkAccess": "restricted"}
    if not write:
        return {"type": "readOnly", "networkAccess": network}
    roots = {path for path in write if path.startswith("/")} - {cwd}
    whole = ":workspace_roots" in write or cwd in write
    if ":slash_tmp" in write and not whole:
        roots.add("/tmp")  # without a writable workspace Codex lists it as a root too
    tmp_is_tmpdir = os.environ.get("TMPDIR", "/tmp").rstrip("/") == "/tmp" and not whole
    return workspace_write(
        sorted(roots),
        network=network,
        tmpdir=":tmpdir" in write or (":slash_tmp" in write and tmp_is_tmpdir),
        slash_tmp=":slash_tmp" in write,
    )


def _access(access: Any) -> str:
    if isinstance(access, dict):  # paths below the entry, "." being the entry itself
        return _access(access.get(".", "read"))
    if access not in ACCESS:
        raise ConfigError(
            "data did not match any variant of untagged enum FilesystemPermissionToml\nin `permissions`\n"
        )
    return str(access)
