"""Fixtures of the live suite: the codex under test, a home, the scripted model, and our own command.

Owns: the opt-in, and the check after each test that no process of its home is alive.
Does not own: what a home or a model is (homes.py, responses_api.py).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests_live.claude_code import Desk
from tests_live.homes import Home, open_home, still_alive
from tests_live.homes import write_config as write_config_file
from tests_live.responses_api import ScriptedModel

CHECKOUT = Path(__file__).resolve().parent.parent
COMMAND = "CC_AGENTS_LIVE=1 CC_AGENTS_LIVE_CODEX=/path/to/codex[:/path/to/another] bin/test tests_live"
TURN_S = 60.0  # a turn with commands takes 1 s on two cores; twenty times that under load, and some

CcAgents = Callable[..., "subprocess.CompletedProcess[bytes]"]
WriteConfig = Callable[..., Path]


def binaries() -> list[str]:
    """The executables under test. Ends pytest with one clear line when the suite was not asked for."""
    if os.environ.get("CC_AGENTS_LIVE") != "1":
        pytest.exit(f"The live suite was NOT run. Run: {COMMAND}", returncode=5)
    named = [part for part in os.environ.get("CC_AGENTS_LIVE_CODEX", "").split(os.pathsep) if part]
    if not named:
        pytest.exit(f"CC_AGENTS_LIVE_CODEX must name the codex to test. Run: {COMMAND}", returncode=4)
    for path in named:
        if shutil.which(path) is None:
            pytest.exit(f"CC_AGENTS_LIVE_CODEX: {path} is not an executable", returncode=4)
    return [os.path.abspath(str(shutil.which(path))) for path in named]


def pytest_collection(session: pytest.Session) -> None:
    binaries()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "codex" in metafunc.fixturenames:
        paths = binaries()
        metafunc.parametrize("codex", paths, ids=[version(path) for path in paths], indirect=True)


def version(codex: str) -> str:
    """`0.171.0`, as the binary says it."""
    said = subprocess.run([codex, "--version"], capture_output=True, text=True, timeout=TURN_S, check=True)
    return said.stdout.split()[-1]


@pytest.fixture(scope="session")
def codex(request: pytest.FixtureRequest) -> str:
    """The executable under test: each one of CC_AGENTS_LIVE_CODEX in turn."""
    return str(request.param)


@pytest.fixture
def home() -> Iterator[Home]:
    """Folders of its own, removed after the test."""
    with open_home() as made:
        yield made


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    """A model with no steps yet: `model.extend(say("hi"))`. One request too many fails the test."""
    with ScriptedModel([], then="error") as made:
        yield made


@pytest.fixture(autouse=True)
def nothing_lives_on(home: Home, model: ScriptedModel) -> Iterator[None]:
    """After each test, while its model still listens: no process has its home in the environment."""
    yield
    alive = still_alive(home)
    assert not alive, f"still alive after the test: {alive}"


@pytest.fixture(scope="session")
def claude_code() -> str:
    """The Claude Code under test; skips where none was named."""
    named = os.environ.get("CC_AGENTS_LIVE_CLAUDE", "")
    if not named:
        pytest.skip("CC_AGENTS_LIVE_CLAUDE names no claude")
    found = shutil.which(named)
    assert found is not None, f"CC_AGENTS_LIVE_CLAUDE: {named} is not an executable"
    return os.path.abspath(found)


@pytest.fixture
def desk(home: Home, claude_code: str) -> Desk:
    """A user of that Claude Code with this plugin."""
    return Desk(home, claude_code)


@pytest.fixture
def codex_desk(desk: Desk, codex: str, model: ScriptedModel) -> Desk:
    """The same with the real codex behind it, and behind that the scripted model."""
    write_config_file(desk.home, model.base_url)
    desk.env["CC_AGENTS_CODEX_BIN"] = codex
    return desk


@pytest.fixture
def write_config() -> WriteConfig:
    """write_config(home, model, extra="", *, model_name=None): config.toml for that scripted model."""

    def write(
        home: Home, model: ScriptedModel, extra: str = "", *, model_name: str | None = None, **retries: int
    ) -> Path:
        return write_config_file(home, model.base_url, extra, model=model_name, **retries)

    return write


@pytest.fixture
def cc_agents(home: Home, codex: str) -> CcAgents:
    """cc_agents(*args, input=None, env={}, cwd=None, timeout=60): our command in that home, as bytes."""

    def run(
        *args: str,
        input: bytes | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        timeout: float = TURN_S,
    ) -> subprocess.CompletedProcess[bytes]:
        environ = home.environ(**{"CC_AGENTS_CODEX_BIN": codex, "PYTHONPATH": str(CHECKOUT), **(env or {})})
        return subprocess.run(
            [sys.executable, "-m", "sidecar", *args],
            capture_output=True,
            env=environ,
            cwd=cwd or home.work,
            timeout=timeout,
            check=False,
            stdin=subprocess.DEVNULL if input is None else None,
            input=input,
        )

    return run
