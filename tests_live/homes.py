"""A home of its own for the real codex: HOME, CODEX_HOME, XDG folders, and the processes that belong to it.

Owns: the folders, config.toml for a scripted model, the explicit environment, finding what is still alive.
Does not own: starting anything. Standard library only.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

GONE_S = 3.0  # a killed process is a moment in /proc; init needs a moment to reap what it adopted
GONE_CHECK_S = 0.02

PROVIDER = """\
{first}model_provider = "mock"
{extra}
[model_providers.mock]
name = "mock"
base_url = "{base_url}"
wire_api = "responses"
env_key = "MOCK_KEY"
request_max_retries = {request_retries}
stream_max_retries = {stream_retries}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """The folders of one test. `work` is the directory of the turn; none of them is below /tmp."""

    root: Path
    home: Path
    codex_home: Path
    config: Path
    state: Path
    runtime: Path
    tmp: Path
    work: Path

    @classmethod
    def below(cls, root: Path) -> Home:
        """Its folders made in `root`."""
        names = ("home", "codex_home", "config", "state", "runtime", "tmp", "work")
        for name in names:
            (root / name).mkdir(mode=0o700)
        return cls(root=root, **{name: root / name for name in names})

    def environ(self, **more: str) -> dict[str, str]:
        """A clean explicit environment: nothing of the caller's but PATH."""
        return {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "HOME": str(self.home),
            "CODEX_HOME": str(self.codex_home),
            "XDG_CONFIG_HOME": str(self.config),
            "XDG_STATE_HOME": str(self.state),
            "XDG_RUNTIME_DIR": str(self.runtime),
            "XDG_CACHE_HOME": str(self.root / "cache"),
            "XDG_DATA_HOME": str(self.root / "data"),
            "TMPDIR": str(self.tmp),
            "MOCK_KEY": "not-a-key",
            **more,
        }


def live_tmp() -> Path:
    """Where homes are made: CC_AGENTS_LIVE_TMP, else the user's cache. Codex dislikes a home below /tmp."""
    named = os.environ.get("CC_AGENTS_LIVE_TMP")
    folder = Path(named) if named else Path.home() / ".cache" / "cc-agents-live"
    folder.mkdir(parents=True, exist_ok=True)
    return folder.resolve()


@contextmanager
def open_home() -> Iterator[Home]:
    """A new home; its folders are removed at the end."""
    root = Path(tempfile.mkdtemp(prefix="h", dir=live_tmp()))  # short: a socket's path has 108 bytes at most
    try:
        yield Home.below(root)
    finally:
        shutil.rmtree(root)


def write_config(
    home: Home,
    base_url: str,
    extra: str = "",
    *,
    model: str | None = None,
    request_retries: int = 0,
    stream_retries: int = 0,
) -> Path:
    """config.toml with the scripted model as the provider. `extra` is TOML, its top-level keys first."""
    path = home.codex_home / "config.toml"
    path.write_text(
        PROVIDER.format(
            first="" if model is None else f'model = "{model}"\n',
            extra=extra,
            base_url=base_url,
            request_retries=request_retries,
            stream_retries=stream_retries,
        ),
        encoding="utf-8",
    )
    return path


def alive_in(home: Home) -> dict[int, str]:
    """Every living process with a folder of this home in its environment or command line: pid and command line.

    Not by HOME alone: Codex clears the environment of its helpers for files, and what is left is PATH.
    """
    mark = os.fsencode(f"{home.root}/")
    found: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                environ, command = (entry / "environ").read_bytes(), (entry / "cmdline").read_bytes()
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue  # it ended while we looked, or it is not ours; a zombie's environment is empty
            if mark in environ or mark in command:
                found[int(entry.name)] = command.replace(b"\0", b" ").decode("utf-8", "replace").strip()
    return found


def still_alive(home: Home, within_s: float = GONE_S) -> Mapping[int, str]:
    """What is alive in that home after at most `within_s`; empty as soon as nothing is."""
    deadline = time.monotonic() + within_s
    while (found := alive_in(home)) and time.monotonic() < deadline:
        time.sleep(GONE_CHECK_S)
    return found
