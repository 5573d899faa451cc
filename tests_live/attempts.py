"""One turn in a hostile world that tries every way round the sandbox, and what came of it.

Owns: the commands, the sockets that they try, and reading off what they reached. Does not own the world (hostile.py).
Standard library only.
"""

from __future__ import annotations

import json
import os
import shlex
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests_live.homes import Home
from tests_live.hostile import World, cc_agents, outcome_of
from tests_live.responses_api import call_tool, javascript, offered_tools, patch, run_command, say

STEPS = 7  # of the model in try_everything
# A shell that stays open, and then is typed into.
TYPE = """\
const r = await tools.exec_command({cmd: "sh", tty: true, yield_time_ms: 250});
text(JSON.stringify(await tools.write_stdin({session_id: r.session_id, chars: TEXT, yield_time_ms: 500})));
"""


class Listener:
    """Counts connections on loopback and on a socket in our runtime folder."""

    def __init__(self, path: Path) -> None:
        self.hits: list[str] = []
        self._tcp = socket.create_server(("127.0.0.1", 0))
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._unix = socket.socket(socket.AF_UNIX)
        self._unix.bind(str(path))
        self._unix.listen()
        self.path = path
        for name, sock in (("tcp", self._tcp), ("unix", self._unix)):
            threading.Thread(target=self._count, args=(name, sock), daemon=True).start()

    @property
    def port(self) -> int:
        return int(self._tcp.getsockname()[1])

    def _count(self, name: str, sock: socket.socket) -> None:
        while True:
            try:
                connection, _ = sock.accept()
            except OSError:
                return  # closed
            self.hits.append(name)
            connection.close()

    def close(self) -> None:
        for sock in (self._tcp, self._unix):
            sock.shutdown(socket.SHUT_RDWR)
            sock.close()


@contextmanager
def listening(home: Home) -> Iterator[Listener]:
    listener = Listener(home.runtime / "cc-agents" / "s")
    try:
        yield listener
    finally:
        listener.close()


def attempt(world: World, listener: Listener) -> str:
    """One command that tries every place, both sockets and the secrets. Its exit says nothing."""
    home = world.home
    places = [
        world.marks / "write",
        world.extra / "write",
        world.work / "write",
        world.work / ".codex" / "rules" / "more.rules",
        world.repository / "above",
        home.tmp / "write",
        home.home / "write",
        home.codex_home / "rules" / "more.rules",
        home.config / "write",
        Path(f"/tmp/cc-agents-live-{os.getpid()}"),
    ]
    # not joined by && and not one word each: a command that a rule allows as a whole is tried by itself
    tries = [f"(echo x > {shlex.quote(str(p))}) 2>/dev/null" for p in places]
    where = f"(socket.AF_INET, ('127.0.0.1', {listener.port})), (socket.AF_UNIX, {str(listener.path)!r})"
    connect = (
        "import socket\n"
        f"for kind, where in ({where}):\n"
        "    try: s = socket.socket(kind); s.settimeout(5); s.connect(where); s.close()\n"
        "    except OSError as e: print(e)\n"
    )
    (world.home.root / "connect.py").write_text(connect)
    return "\n".join(
        [*tries, f"{sys.executable} -I {world.home.root}/connect.py", f"cat {home.codex_home}/auth.json", "env", "true"]
    )


def slash_tmp() -> Path:
    return Path(f"/tmp/cc-agents-live-{os.getpid()}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What came of a turn: by the file system, the sockets, and all that went to the model."""

    outcome: dict[str, Any]
    code: int
    requests: int
    marks: set[str]
    wrote: set[str]
    hits: set[str]
    told: str  # every request of this turn, as text
    tools: set[str]


def try_everything(
    world: World,
    codex: str,
    *words: str,
    without: str | None = None,
    env: Mapping[str, str] | None = None,
    around: tuple[str, ...] = (),
) -> Tried:
    """One turn of ours in which the model tries all that it can."""
    model, begun = world.model, len(world.model.requests)
    world.clear()
    with listening(world.home) as listener:
        model.extend(
            run_command(attempt(world, listener)),
            run_command(f"touch {world.marks}/rule"),
            patch(f"*** Begin Patch\n*** Add File: {world.marks}/patched\n+x\n*** End Patch"),
            call_tool("view_image", {"path": str(world.home.codex_home / "auth.json")}),
            call_tool("create_goal", {"objective": "go on for ever"}),
            javascript(TYPE.replace("TEXT", json.dumps(f"touch {world.marks}/typed; exit\n"))),
            say("done"),
        )
        ran = cc_agents(world, codex, "run", "--json", *words, "go", without=without, env=env, around=around)
        hits = set(listener.hits)
    requests = model.requests[begun:]
    model.drop_rest()
    home = world.home
    places = {
        "extra": world.extra / "write",
        "work": world.work / "write",
        "project": world.work / ".codex" / "rules" / "more.rules",
        "repository": world.repository / "above",
        "tmp": home.tmp / "write",
        "slash-tmp": slash_tmp(),
        "home": home.home / "write",
        "codex": home.codex_home / "rules" / "more.rules",
        "config": home.config / "write",
    }
    wrote = {name for name, path in places.items() if path.exists()}
    for path in places.values():
        path.unlink(missing_ok=True)
    return Tried(
        outcome=outcome_of(ran),
        code=ran.returncode,
        requests=len(requests),
        marks=world.marked(),
        wrote=wrote,
        hits=hits,
        told="\n".join(json.dumps(r.body, ensure_ascii=False) for r in requests),
        tools={tool for r in requests for tool in offered_tools(r)},
    )
