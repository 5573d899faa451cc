"""Sessions of the real Claude Code with this plugin: an own home, a scripted Claude on loopback, and no other traffic.

Owns: the environment, starting and ending a session, reading what it printed. Does not own: what Claude says
(messages_api.py) or what Codex does (the fake, or the real one with responses_api.py).
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from fake_app_server.shim import write_shim
from tests_live.homes import Home
from tests_live.messages_api import ScriptedClaude

CHECKOUT = Path(__file__).resolve().parent.parent
SESSION_S = 240.0  # a session takes 2 to 5 s on two idle cores; on loaded ones it took 50
FACT_S = 120.0  # the start of a session and of Codex behind it took 30 s on a loaded machine
POLL_S = 0.02
GUARD = "cc-plugin-sec-default@builtin"  # Claude Code's own judge of modules; it hears managed settings alone
NO_MODULES = json.dumps({"pluginConfigs": {GUARD: {"options": {"allowManagedModsOnly": True}}}})

COMMAND = """\
#!/bin/sh
exec {python} -I -c 'import sys; sys.path.insert(0, sys.argv.pop(1)); from sidecar.cli import entry; entry()' \
{checkout} "$@"
"""


def wait_for(fact: Callable[[], Any], within_s: float = FACT_S) -> Any:
    """What the fact is once it is true."""
    end = time.monotonic() + within_s
    while not (found := fact()):
        assert time.monotonic() < end, "it never became true"
        time.sleep(POLL_S)
    return found


class Said:
    """What a session printed (--output-format stream-json), one message a line."""

    def __init__(self, code: int, out: bytes, err: bytes) -> None:
        self.code, self.err = code, err.decode("utf-8", "replace")
        self.messages: list[dict[str, Any]] = [json.loads(line) for line in out.splitlines() if line.strip()]

    @cached_property
    def results(self) -> list[dict[str, Any]]:
        return [m for m in self.messages if m["type"] == "result"]

    @property
    def result(self) -> str:
        """The last word of the session."""
        assert self.results, f"no result: {self.err[-2000:]}"
        return str(self.results[-1].get("result"))

    @property
    def denied(self) -> int:
        return sum(len(m.get("permission_denials") or ()) for m in self.results)

    def reports(self) -> list[str]:
        """Each agent's report of a foreground call, as it is, without the frame that the main model gets it in."""
        found = [m["tool_use_result"] for m in self.messages if isinstance(m.get("tool_use_result"), dict)]
        return ["".join(b["text"] for b in r["content"]) for r in found if r.get("agentId") and r.get("content")]


class Desk:
    """A user of Claude Code: their home, their codex, and the plugin from this checkout."""

    def __init__(self, home: Home, claude: str) -> None:
        self.home, self.claude = home, claude
        self.log = home.root / "fake.ndjson"
        self.config = home.home / ".claude"
        self.bin = home.root / "bin"
        self.bin.mkdir()
        self.config.mkdir()
        # A copy: Claude Code writes its own files beside a module that it loads from a folder.
        self.market = home.root / "market"
        self.plugin = self.market / "plugin"
        shutil.copytree(CHECKOUT / "plugin", self.plugin)
        shutil.copytree(CHECKOUT / ".claude-plugin", self.market / ".claude-plugin")
        self.env: dict[str, str] = {}
        self.plays(None)
        self.cli = self.bin / "cc-agents"
        self.cli.write_text(COMMAND.format(python=shlex.quote(sys.executable), checkout=shlex.quote(str(CHECKOUT))))
        self.cli.chmod(0o755)

    # --- what Codex does

    def plays(self, scenario: Any) -> None:
        """From now on the codex is the fake with this scenario."""
        self.env["CC_AGENTS_CODEX_BIN"] = str(write_shim(self.home.root / "fake", scenario=scenario, log=self.log))

    def logged(self, key: str) -> list[Any]:
        if not self.log.exists():
            return []
        lines = self.log.read_bytes().split(b"\n")[:-1]
        return [entry[key] for entry in map(json.loads, lines) if key in entry]

    def asked(self, method: str) -> list[dict[str, Any]]:
        """The params of each request of this method that Codex got."""
        return [m.get("params") or {} for m in self.logged("recv") if m.get("method") == method]

    def prompts(self) -> list[str]:
        """What Codex was asked, turn by turn."""
        return ["".join(part.get("text", "") for part in p["input"]) for p in self.asked("turn/start")]

    # --- sessions

    def environ(self, claude: ScriptedClaude | None) -> dict[str, str]:
        base_url = claude.base_url if claude else "http://127.0.0.1:9"  # the discard port: nobody is asked
        return self.home.environ(
            **{
                "PATH": f"{self.bin}:/usr/local/bin:/usr/bin:/bin",
                "CLAUDE_CONFIG_DIR": str(self.config),
                "ANTHROPIC_API_KEY": "sk-ant-not-a-key",
                "ANTHROPIC_BASE_URL": base_url,
                "DISABLE_AUTOUPDATER": "1",
                "DISABLE_TELEMETRY": "1",
                "DISABLE_ERROR_REPORTING": "1",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL": "1",  # it clones from GitHub
                **self.env,
            }
        )

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command of claude that talks to no model."""
        return subprocess.run(
            [self.claude, *words],
            cwd=self.home.work,
            env=self.environ(None),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SESSION_S,
            check=False,
        )

    @contextlib.contextmanager
    def begun(
        self,
        claude: ScriptedClaude,
        prompt: str,
        *words: str,
        installed: bool = False,
        modules: bool = True,
        options: Mapping[str, str] | None = None,
    ) -> Iterator[Session]:
        """A session under way. It is killed with the block if it still runs."""
        plugin = [] if installed else ["--plugin-dir", str(self.plugin)]
        plugin += [] if modules else ["--managed-settings", NO_MODULES]
        wanted = {"pluginConfigs": {"cc-agents@inline": {"options": options}}}
        settings = ["--settings", json.dumps(wanted)] if options else []
        argv = [self.claude, "-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
        process = subprocess.Popen(
            [*argv, *plugin, *settings, *words],
            cwd=self.home.work,
            env=self.environ(claude),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        session = Session(process)
        try:
            session.says({"type": "user", "message": {"role": "user", "content": prompt}})
            yield session
        finally:
            if process.poll() is None:
                process.kill()
            session.closed()

    def session(self, claude: ScriptedClaude, prompt: str = "go", *words: str, **options: Any) -> Said:
        """A whole session of one prompt."""
        with self.begun(claude, prompt, *words, **options) as session:
            return session.end()

    def commands(self, claude: ScriptedClaude, *prompts: str) -> list[str]:
        """One session of several prompts; what each gave."""
        with self.begun(claude, prompts[0]) as session:
            for prompt in prompts[1:]:
                session.says({"type": "user", "message": {"role": "user", "content": prompt}})
            return [str(result["result"]) for result in session.end().results]


class Session:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def says(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def esc(self) -> None:
        """What the Esc key is to a session without a terminal."""
        self.says({"type": "control_request", "request_id": "1", "request": {"subtype": "interrupt"}})

    def kill(self, signum: signal.Signals) -> None:
        os.kill(self.process.pid, signum)

    def end(self) -> Said:
        """No more is said; what it printed until it ended."""
        out, err = self.process.communicate(timeout=SESSION_S)
        return Said(self.process.returncode, out, err)

    def closed(self) -> None:
        self.process.wait(SESSION_S)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
