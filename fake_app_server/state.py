"""Threads and turns as the fake remembers them.

Owns: what a thread's turns hold and their shapes on the wire; `Store` keeps threads across processes when a
scenario asks for it. Does not own: when anything is sent. Serves spec:cc-agents.fakes.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from typing import Any

from fake_app_server import items
from fake_app_server.config import codex_home
from fake_app_server.wire import new_id, now_ms

Table = dict[str, Any]


class Turn:
    def __init__(self, turn_id: str, content: list[Any] | None = None) -> None:
        self.id = turn_id
        self.content = content or []  # the input of turn/start
        self.items: list[Table] = []
        self.status = "inProgress"
        self.error: Table | None = None
        self.accepted = False  # turn/start was answered
        self.started = False  # turn/started was sent
        self.settled = False  # the thread's status after this turn was sent
        self.steers: list[list[Any]] = []  # taken before turn/started, shown after it
        self.began_ms = now_ms()
        self.ended_ms: int | None = None
        self.over = threading.Event()  # wakes and stops whatever script plays this turn

    @classmethod
    def from_wire(cls, data: Table) -> Turn:
        turn = cls(data["id"])
        turn.items, turn.error = data.get("items", []), data.get("error")
        status = data.get("status", "completed")
        turn.status = "interrupted" if status == "inProgress" else status  # its process has died
        turn.began_ms = int(data.get("startedAt") or 0) * 1000
        turn.ended_ms = int(data.get("completedAt") or 0) * 1000
        return turn

    def end(self, status: str, error: Table | None) -> None:
        self.status, self.error, self.ended_ms = status, error, now_ms()

    def to_wire(self, found: list[Table] | None = None, view: str = "notLoaded") -> Table:
        ended = self.ended_ms
        return {
            "id": self.id,
            "rootTurnId": self.id,
            "items": found or [],
            "itemsView": view,
            "status": self.status,
            "error": self.error,
            "startedAt": self.began_ms // 1000 if self.started or ended else None,
            "completedAt": ended // 1000 if ended else None,
            "durationMs": ended - self.began_ms if ended else None,
        }

    def summary(self) -> Table:
        answer = items.answer_of(self.items) if self.status == "completed" else None
        return self.to_wire([answer], "summary") if answer else self.to_wire()

    def full(self) -> Table:
        return self.to_wire(self.items, "full")


class Thread:
    def __init__(self, thread_id: str, cwd: str, *, ephemeral: bool = False) -> None:
        self.id, self.cwd, self.ephemeral = thread_id, cwd, ephemeral
        self.model, self.effort, self.provider = "", None, "openai"
        self.version, self.originator = "", ""
        self.approval: Any = None
        self.turns: list[Turn] = []
        self.status: Table = {"type": "idle"}
        self.usage: Table | None = None  # the params of the last tokenUsage update
        self.created_ms = now_ms()
        self.started_here = False

    @property
    def running(self) -> Turn | None:
        last = self.turns[-1] if self.turns else None
        return last if last and last.status == "inProgress" else None

    def to_wire(self, turns: list[Table] | None = None) -> Table:
        seconds, path = self.created_ms // 1000, None
        if not self.ephemeral:
            path = os.path.join(codex_home(), "sessions", f"rollout-{self.id}.jsonl")
        prompt = next((part.get("text", "") for turn in self.turns for part in turn.content), "")
        environment = {"environmentId": "local", "cwd": self.cwd, "runtimeWorkspaceRoots": [self.cwd]}
        empty = (
            "extra forkedFromId attachedToThreadId parentThreadId section sectionEnteredAt projectId threadSource"
            " agentNickname agentRole gitInfo name daybreakEnabled"
        )
        return {
            **dict.fromkeys(empty.split()),
            "id": self.id,
            "environments": [environment],
            "sessionId": self.id,
            "preview": prompt,
            "ephemeral": self.ephemeral,
            "historyMode": "paginated",
            "modelProvider": self.provider,
            "model": self.model,
            "reasoningEffort": self.effort,
            "createdAt": seconds,
            "updatedAt": seconds,
            "recencyAt": seconds,
            "status": self.status,
            "path": path,
            "cwd": self.cwd,
            "cliVersion": self.version,
            "originator": self.originator,
            "source": "vscode",
            "canAcceptDirectInput": True,
            "turns": turns or [],
        }


class Store:
    """Threads kept in a folder, so that a later process can resume and read them; one writer at a time."""

    def __init__(self, folder: str | None) -> None:
        self._folder = os.path.expanduser(os.path.expandvars(folder)) if folder else None
        self._locks: list[int] = []
        if self._folder:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)

    def _path(self, thread_id: str, suffix: str) -> str:
        return os.path.join(self._folder or "", thread_id + suffix)

    def lock(self, thread_id: str) -> bool:
        """False if another process writes this thread. The kernel drops the lock when this process ends."""
        if self._folder is None:
            return True
        fd = os.open(self._path(thread_id, ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return False
        self._locks.append(fd)
        return True

    def save(self, thread: Thread) -> None:
        if self._folder is None or thread.ephemeral:
            return
        data = {
            "cwd": thread.cwd,
            "model": thread.model,
            "effort": thread.effort,
            "approval": thread.approval,
            "usage": thread.usage,
            "turns": [turn.full() for turn in thread.turns],
        }
        # a name of its own for each write: two threads of this process may save at once
        part = self._path(thread.id, f".{new_id()}.part")
        with open(part, "w", encoding="utf-8") as file:
            json.dump(data, file)
        os.replace(part, self._path(thread.id, ".json"))

    def load(self, thread_id: str) -> Thread | None:
        if self._folder is None or not os.path.exists(self._path(thread_id, ".json")):
            return None
        with open(self._path(thread_id, ".json"), encoding="utf-8") as file:
            data = json.load(file)
        thread = Thread(thread_id, data["cwd"])
        thread.model, thread.effort = data["model"], data["effort"]
        thread.usage, thread.approval = data["usage"], data["approval"]
        thread.turns = [Turn.from_wire(turn) for turn in data["turns"]]
        return thread
