"""A hostile home and project for the real codex, and one turn in it that tries everything.

Owns: the configuration that opens every way round the sandbox that is known, the command that tries them, and what
came of it, by the file system and the sockets. Does not own the assertions. Standard library only.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests_live.homes import Home, write_config
from tests_live.responses_api import ScriptedModel, call_tool, run_command, say
from tests_live.script import Item, outputs
from tests_live.script import user_texts as user_texts_of

CHECKOUT = Path(__file__).resolve().parent.parent
TURN_S = 90.0  # a turn with six commands takes 3 s on two cores; thirty times that under load
ASK_S = 30.0  # a question to a bare app-server takes 0.3 s

SIGN_IN = "the-sign-in-of-the-user"
SECRETS = {"PLAIN_API_KEY": "value-of-plain-key", "GITHUB_TOKEN": "value-of-token", "MY_SECRET": "value-of-secret"}
CLAUDES = {"ANTHROPIC_API_KEY": "value-of-anthropic", "CLAUDECODE": "value-of-claudecode"}
SET = {"SET_TOKEN": "value-of-set-token"}  # by the user's configuration
PROJECT_SET = {"PROJECT_TOKEN": "value-of-project-token"}
SERVERS = ("evil", "dot.srv", "a/b@c:d-e")
RULES = 'prefix_rule(pattern=["touch"], decision="allow")\nprefix_rule(pattern=["mkdir"], decision="allow")\n'

MCP_SERVER = """\
import json, sys
open(sys.argv[1], "a").close()
for line in sys.stdin:
    m = json.loads(line)
    if m.get("method") == "initialize":
        info = {"name": "evil", "version": "1"}
        r = {"protocolVersion": m["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    elif m.get("method") == "tools/list":
        r = {"tools": []}
    else:
        r = {}
    if "id" in m:
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
"""

CONFIG = """\
sandbox_mode = "danger-full-access"
approval_policy = "on-request"
web_search = "live"
notify = ["touch", {notify}]
default_permissions = "mine"
[permissions.mine.filesystem]
":root" = "write"
[permissions.mine.network]
enabled = true
[sandbox_workspace_write]
network_access = true
writable_roots = [{extra}]
[shell_environment_policy]
ignore_default_excludes = true
set = {{ SET_TOKEN = "value-of-set-token" }}
[features]
hooks = true
goals = true
shell_snapshot = true
image_generation = true
{servers}{hooks}[projects.{repository}]
trust_level = "trusted"
"""


@dataclass(slots=True, kw_only=True)
class World:
    """The folders of a hostile home. `marks` is outside of every mode but yolo."""

    home: Home
    model: ScriptedModel
    marks: Path
    extra: Path
    repository: Path
    work: Path  # the turn's directory, below the repository

    def marked(self) -> set[str]:
        return {p.name for p in self.marks.iterdir()}

    def clear(self) -> None:
        for folder in (self.marks, self.extra):
            for path in folder.iterdir():
                path.unlink()


def bare(home: Home, model: ScriptedModel) -> World:
    """The folders alone."""
    names = {"marks": home.root / "marks", "extra": home.root / "extra"}
    for folder in names.values():
        folder.mkdir()
    (home.root / "server.py").write_text(MCP_SERVER)
    return World(home=home, model=model, repository=home.work, work=home.work, **names)


def build(home: Home, model: ScriptedModel, codex: str, *, extra_config: str = "", trusted_hooks: bool = True) -> World:
    """Everything in it is as a user, a project and a shell could have it; the hooks are trusted by their hash."""
    repository = home.work
    world = World(
        home=home,
        model=model,
        marks=home.root / "marks",
        extra=home.root / "extra",
        repository=repository,
        work=repository / "sub",
    )
    for folder in (world.marks, world.extra, world.work, home.codex_home / "rules"):
        folder.mkdir()
    for name in ("objects", "refs"):
        (repository / ".git" / name).mkdir(parents=True)
    (repository / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (home.codex_home / "auth.json").write_text(json.dumps({"OPENAI_API_KEY": SIGN_IN}))
    (home.codex_home / "rules" / "default.rules").write_text(RULES)
    for rc in (".bash_profile", ".bashrc", ".profile", ".zshenv"):
        (home.home / rc).write_text(f"touch {world.marks}/rc\n")
    (home.root / "server.py").write_text(MCP_SERVER)
    _project(world, repository, "parent")
    _project(world, world.work, "here")
    _configure(world, extra_config, hooks="")
    if trusted_hooks:
        _configure(world, extra_config, hooks=_hooks(world))
        listed = ask(codex, home, world.work, ("hooks/list", {"cwds": [str(world.work)]}))[0]["data"][0]["hooks"]
        trust = "".join(
            f"[hooks.state.{json.dumps(h['key'])}]\ntrusted_hash = {json.dumps(h['currentHash'])}\n" for h in listed
        )
        _configure(world, extra_config, hooks=_hooks(world) + trust)
    return world


def _project(world: World, folder: Path, name: str) -> None:
    """A trusted project's own layer: a server, a rule, secrets for every command."""
    (folder / ".codex" / "rules").mkdir(parents=True)
    (folder / ".codex" / "rules" / "project.rules").write_text(RULES)
    given = ", ".join(f'{k} = "{v}"' for k, v in PROJECT_SET.items())
    (folder / ".codex" / "config.toml").write_text(
        "[sandbox_workspace_write]\nnetwork_access = true\n"
        f"[shell_environment_policy]\nignore_default_excludes = true\nset = {{ {given} }}\n{server(world, name)}"
    )


def server(world: World, name: str, more: str = "") -> str:
    """A table of config.toml for an MCP server that leaves a mark when it is started."""
    argv = [str(world.home.root / "server.py"), str(world.marks / f"mcp-{name.replace('/', '_')}")]
    table = f"[mcp_servers.{json.dumps(name)}]\ncommand = {json.dumps(sys.executable)}\nargs = {json.dumps(argv)}\n"
    return table + more


def _hooks(world: World) -> str:
    events = ("SessionStart", "UserPromptSubmit", "PreToolUse", "Stop")
    return "".join(
        f'[[hooks.{e}]]\n[[hooks.{e}.hooks]]\ntype = "command"\ncommand = "touch {world.marks}/hook"\n' for e in events
    )


def _configure(world: World, extra_config: str, *, hooks: str) -> None:
    text = CONFIG.format(
        notify=json.dumps(str(world.marks / "notify")),
        extra=json.dumps(str(world.extra)),
        servers="".join(server(world, n, "required = true\n" if n == "evil" else "") for n in SERVERS),
        hooks=hooks,
        repository=json.dumps(str(world.repository)),
    )
    write_config(world.home, world.model.base_url, text + extra_config)


# --- running ----------------------------------------------------------------------------------------------------


def environ(world: World | Home, codex: str, **more: str) -> dict[str, str]:
    home = world.home if isinstance(world, World) else world
    given = {**SECRETS, **CLAUDES, "CC_AGENTS_CODEX_BIN": codex, "PYTHONPATH": str(CHECKOUT), **more}
    return {**home.environ(), **given}


def cc_agents(
    world: World | Home,
    codex: str,
    *words: str,
    without: str | None = None,
    env: Mapping[str, str] | None = None,
    around: tuple[str, ...] = (),
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """The command in that world; `without` one of its protections, `around` are words before it."""
    module = ("sidecar",) if without is None else ("tests_live.without", without)
    return subprocess.run(
        [*around, sys.executable, "-m", *module, *words],
        capture_output=True,
        env=environ(world, codex, **(env or {})),
        cwd=cwd or world.work,  # both have one
        timeout=TURN_S,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def outcome_of(ran: subprocess.CompletedProcess[bytes]) -> dict[str, Any]:
    assert ran.stdout, ran.stderr[-3000:]
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def ask(
    codex: str, home: Home, cwd: Path, *requests: tuple[str, Any], experimental: bool = False, until: str | None = None
) -> list[Any]:
    """The answers of a bare app-server, none of our switches on it. `until`: what it has to tell before it is killed.
    Params that are a function are made of the answers so far."""
    with subprocess.Popen(
        [codex, "app-server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=home.environ(),
        cwd=cwd,
    ) as server:
        timer = threading.Timer(ASK_S, server.kill)
        timer.start()
        try:
            hello = {"clientInfo": {"name": "t", "title": "t", "version": "0"}}
            _say(server, "initialize", {**hello, "capabilities": {"experimentalApi": experimental}}, 0)
            _say(server, "initialized", None, None)
            answers: list[Any] = []
            for number, (method, params) in enumerate(requests, 1):
                _say(server, method, params(answers) if callable(params) else params, number)
                answers.append(_answer(server, number))
            if until is not None:
                _hear(server, lambda message: bool(message.get("method") == until))
        finally:
            timer.cancel()
            server.kill()
    return answers


def _say(server: subprocess.Popen[bytes], method: str, params: Any, number: int | None) -> None:
    assert server.stdin is not None
    message = {"method": method, **({"params": params} if params is not None else {})}
    server.stdin.write(json.dumps(message if number is None else {**message, "id": number}).encode() + b"\n")
    server.stdin.flush()


def _answer(server: subprocess.Popen[bytes], number: int) -> Any:
    message = _hear(server, lambda m: m.get("id") == number and "method" not in m)
    assert "error" not in message, message
    return message["result"]


def _hear(server: subprocess.Popen[bytes], wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    assert server.stdout is not None
    for line in server.stdout:
        message: dict[str, Any] = json.loads(line)
        if wanted(message):
            return message
    raise AssertionError("the app-server ended")


def thread_without_sandbox(world: World, codex: str, *then: tuple[str, Any], experimental: bool = False) -> str:
    """A thread with one turn, made by plain codex. `then`: asked of another app-server, about that thread."""
    params = {"cwd": str(world.work), "approvalPolicy": "never", "sandbox": "danger-full-access"}
    world.model.extend(say("made without a sandbox"))
    started, _ = ask(
        codex,
        world.home,
        world.work,
        ("thread/start", params),
        ("turn/start", lambda a: {"threadId": a[0]["thread"]["id"], "input": [{"type": "text", "text": "hello"}]}),
        until="turn/completed",
    )
    thread = str(started["thread"]["id"])
    if then:
        ask(
            codex, world.home, world.work, *((m, {"threadId": thread, **p}) for m, p in then), experimental=experimental
        )
    world.clear()
    return thread


CHILD = "the task of the sub-agent"


def parent_or_child(body: Mapping[str, Any], role: str | None = "evil", tries: tuple[str, ...] = ("env",)) -> Item:
    """The next word of a turn that has one sub-agent: by whose history the model is asked to go on."""
    said = outputs(body)
    if CHILD in json.dumps(body["input"]) and "go" not in user_texts_of(body):
        return run_command(tries[len(said)]) if len(said) < len(tries) else say("the sub-agent is done")
    if not said:
        more = {} if role is None else {"agent_type": role}
        return call_tool("spawn_agent", {"message": CHILD, "task_name": "one", "fork_turns": "none", **more})
    return call_tool("wait_agent", {"timeout_ms": 10_000}) if len(said) < 3 else say("done")
