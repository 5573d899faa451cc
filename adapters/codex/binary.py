"""Finds the native codex behind the command that the user has.

Owns: PATH look-up, and the way from npm's Node script to the binary it would start (SIGKILL of that Node leaves the
app-server alive, so it is never started). Serves design.binary; facts: codex-facts section 14. Starts nothing.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping

from adapters.contract import Problem, Refused
from adapters.values import Value

INSTALL_HINT = "install it with `npm install -g @openai/codex`, or name it with CC_AGENTS_CODEX_BIN"

_OS = {"linux": ("linux", "unknown-linux-musl"), "darwin": ("darwin", "apple-darwin")}
_MACHINE = {
    "x86_64": ("x64", "x86_64"),
    "amd64": ("x64", "x86_64"),
    "arm64": ("arm64", "aarch64"),
    "aarch64": ("arm64", "aarch64"),
}


class Binary(Value):
    """`path` is what is started; `command` what the user named or PATH had; `shim` the Node script between them."""

    path: str
    command: str
    shim: str | None = None


def find(named: str | None, environ: Mapping[str, str]) -> Binary:
    """The codex to start. Raises Refused `codex_not_found` with the way to get one."""
    wanted = named or "codex"
    found = _which(os.path.expanduser(wanted), environ.get("PATH", os.defpath))
    if found is None:
        where = f"{named} is not an executable file" if named else "codex is not on PATH"
        raise Refused(Problem(reason="codex_not_found", message=f"{where}: {INSTALL_HINT}"))
    command = os.path.abspath(found)
    real = os.path.realpath(command)
    if not real.endswith(os.path.join("bin", "codex.js")):
        return Binary(path=command, command=command)
    for native in _native_candidates(os.path.dirname(os.path.dirname(real))):
        if os.access(native, os.X_OK) and os.path.isfile(native):
            return Binary(path=native, command=command, shim=real)
    raise Refused(
        Problem(
            reason="codex_not_found",
            message=f"{command} is npm's script, but the native codex for {sys.platform} {os.uname().machine} is "
            "missing (installed with --omit=optional?): run `npm install -g @openai/codex` again",
        )
    )


def _which(command: str, path: str) -> str | None:
    """As shutil.which has it, but never from the current directory by an empty entry; and shutil loads four
    compressors, for which Codex would wait."""
    folders = [entry for entry in path.split(os.pathsep) if entry]
    found = [command] if os.path.dirname(command) else [os.path.join(folder, command) for folder in folders]
    return next((f for f in found if os.path.isfile(f) and os.access(f, os.X_OK)), None)


def _native_candidates(package: str) -> Iterator[str]:
    os_name, triple_end = _OS.get(sys.platform, (sys.platform, "unknown"))
    machine = os.uname().machine
    npm_arch, arch = _MACHINE.get(machine.lower(), (machine, machine))
    name, triple = f"codex-{os_name}-{npm_arch}", f"{arch}-{triple_end}"
    for root in (
        os.path.join(package, "node_modules", "@openai", name),
        os.path.join(os.path.dirname(package), name),
        package,
    ):
        vendor = os.path.join(root, "vendor", triple)
        if entry := _entrypoint(os.path.join(vendor, "codex-package.json")):
            yield os.path.join(vendor, entry)
        yield os.path.join(vendor, "bin", "codex")
        yield os.path.join(vendor, "codex", "codex")  # 0.130 and older


def _entrypoint(manifest: str) -> str | None:
    try:
        with open(manifest, "rb") as file:
            entry = json.load(file).get("entrypoint")
    except (OSError, ValueError, AttributeError):
        return None  # older packages have none: the known places follow
    return entry if isinstance(entry, str) else None


def parts(found: Binary) -> tuple[str, ...]:
    """The files and folders that make this codex: who can write one, decides what the next turn runs."""
    real = os.path.realpath(found.path)
    if found.shim is not None:  # npm's: bin/codex.js of one package, and bin/codex of another with all that it needs
        return (found.command, os.path.dirname(os.path.dirname(found.shim)), os.path.dirname(os.path.dirname(real)))
    return (found.command, real, os.path.join(os.path.dirname(real), "codex-code-mode-host"))
