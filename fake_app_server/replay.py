"""Plays a recording of the real Codex: each line {"dir": "out"|"in", "t": seconds, "msg": message}.

Owns: the order of a recording and the ids of its requests. Does not own: requests that the recording lacks
(the defaults answer them). Serves spec:cc-agents.fakes.
"""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

from fake_app_server.answers import RpcError
from fake_app_server.config import merge
from fake_app_server.wire import Message

if TYPE_CHECKING:
    from fake_app_server.server import Server

# What the client asks for is not what was asked when it was recorded; the rest of the response stays as it was.
FROM_REQUEST = (
    "cwd",
    "runtimeWorkspaceRoots",
    "approvalPolicy",
    "sandbox",
    "activePermissionProfile",
    "model",
)
OPENING = ("thread/start", "thread/resume")


class Replay:
    def __init__(self, server: Server, path: str) -> None:
        with open(path, encoding="utf-8") as file:
            self._entries = [json.loads(line) for line in file if line.strip()]
        self._server = server
        self._requests: dict[Any, Message] = {}  # recorded id -> the client's request
        for entry in self._entries:
            message = entry["msg"]
            if entry["dir"] == "out" and "method" in message and "id" in message:
                server.held[message["method"]] = server.held.get(message["method"], 0) + 1

    def start(self) -> None:
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        for entry in self._entries:
            message = entry["msg"]
            if entry["dir"] == "in":
                self._say(message)
            elif "method" not in message:
                self._await_answer(message["id"])
            elif "id" in message:
                self._await_request(message)

    def _await_request(self, recorded: Message) -> None:
        server, method = self._server, recorded["method"]
        with server.news:
            while (found := next((e for e in server.inbox if e[1]["method"] == method), None)) is None:
                server.news.wait()
            server.inbox.remove(found)
            server.held[method] -= 1
        self._requests[recorded["id"]] = found[1]

    def _await_answer(self, ask_id: Any) -> None:
        server = self._server
        with server.news:
            while (answer := server.replies.pop((type(ask_id), ask_id), None)) is None:
                server.news.wait()
        server.log.write(asked=None, id=ask_id, answer=answer)

    def _say(self, message: Message) -> None:
        if "method" in message:
            if message["method"] not in self._server.output.opted_out:
                self._server.output.send(message)
            return
        request = self._requests.get(message["id"])
        if request is None:
            return  # it answers something that this client never asked
        message = {**message, "id": request["id"]}
        if "result" in message:
            message["result"] = self._result(request, message["result"])
        self._server.output.send(message)

    def _result(self, request: Message, recorded: Any) -> Any:
        answers, method = self._server.answers, request["method"]
        if method == "initialize":
            return merge(recorded, {"codexHome": answers.initialize(request.get("params"))["codexHome"]})
        if method not in OPENING or not self._server.scenario.true_to_request:
            return recorded
        try:
            opening = answers.thread_start if method == OPENING[0] else answers.thread_resume
            computed = opening(request.get("params"))
        except RpcError as error:
            self._server.complain(f"fake: the recording goes on although this is wrong: {error}")
            return recorded
        thread = answers.threads.pop(computed["thread"]["id"])
        thread.id = recorded["thread"]["id"]
        answers.threads[thread.id] = thread
        return {
            **recorded,
            **{field: computed[field] for field in FROM_REQUEST},
            "thread": {**recorded["thread"], "cwd": thread.cwd, "model": thread.model},
        }
