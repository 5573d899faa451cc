"""Plays what was recorded of the real Codex to a conversation in memory.

Owns: the order of a recording (nothing is said before the request that it followed), its ids, and the fields of
thread/start and resume that follow from what is asked now. Does not own: cutting into reads (peer.py).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from peer import ANSWERS, Codex, Cut, Message, line, opened, whole

TRANSCRIPTS = Path(__file__).parent / "transcripts"
FROM_REQUEST = ("cwd", "approvalPolicy", "sandbox", "activePermissionProfile", "model")


def recording(name: str) -> list[Message]:
    text = (TRANSCRIPTS / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(entry) for entry in text.split("\n") if entry]


def names(folder: str = "") -> list[str]:
    found = sorted((TRANSCRIPTS / folder).glob("*.jsonl"))
    return [str(path.relative_to(TRANSCRIPTS).with_suffix("")) for path in found]


class Replay(Codex):
    """A recording as the peer. What it has no answer for is answered as any Codex would."""

    def __init__(self, entries: list[Message], *, cut: Cut = whole) -> None:
        super().__init__(cut=cut)
        self._left = list(entries)
        self._waiting: dict[str, Message] = {}  # our requests that the recording has not come to yet
        self._ids: dict[Any, Message] = {}  # recorded id -> our request
        self._methods = {e["msg"]["method"] for e in entries if e["dir"] == "out" and "method" in e["msg"]}
        self.replied: list[Message] = []  # our answers to its requests

    def hear(self, sent: Message) -> None:
        if "method" not in sent:
            self.replied.append(sent)
        elif sent["method"] in self._methods:
            self._waiting[sent["method"]] = sent
        elif "id" in sent:
            answer = ANSWERS.get(sent["method"], {})
            self.say(line({"id": sent["id"], "result": answer}))
        self._go_on()

    def _go_on(self) -> None:
        while self._left:
            entry = self._left[0]
            message = entry["msg"]
            if entry["dir"] == "in":
                self._say(message)
            elif "method" not in message:
                if not any(r["id"] == message["id"] for r in self.replied):
                    return
            elif message["method"] not in self._waiting:
                return
            elif "id" in message:
                self._ids[message["id"]] = self._waiting.pop(message["method"])
            del self._left[0]

    def _say(self, message: Message) -> None:
        if "method" in message:
            self.say(line(message))
            return
        request = self._ids[message["id"]]
        message = {**message, "id": request["id"]}
        if request["method"] in ("thread/start", "thread/resume"):
            now = opened(request["params"])
            message["result"] = {**message["result"], **{field: now[field] for field in FROM_REQUEST}}
        self.say(line(message))


def lines_of(name: str) -> list[bytes]:
    """What came from Codex in a recording, as it was on the wire."""
    return [line(e["msg"]) for e in recording(name) if e["dir"] == "in"]
