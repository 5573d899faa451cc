"""The floor: a driver that only pipes JSON-RPC into an app-server and prints the answer. `python -I -S bare.py PLAN`

PLAN is a file: {"argv": [...], "opening": [message, ...], "turn": message}. The opening is sent at once, the turn as
soon as the thread is known. Every line is read and parsed, nothing is checked. Standard library only, and little of it.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys

F_SETPIPE_SZ = 1031
PIPE_BYTES = 1 << 20
READ_BYTES = 1 << 20

TYPE_CHECKING = False  # as typing has it, without 5 ms of import
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def main(path: str) -> None:
    with open(path, "rb") as file:
        plan = json.load(file)
    (in_r, in_w), (out_r, out_w) = os.pipe(), os.pipe()
    fcntl.fcntl(out_r, F_SETPIPE_SZ, PIPE_BYTES)
    actions = [(os.POSIX_SPAWN_DUP2, in_r, 0), (os.POSIX_SPAWN_DUP2, out_w, 1)]
    pid = os.posix_spawn(plan["argv"][0], plan["argv"], os.environ, file_actions=actions)
    os.close(in_r)
    os.close(out_w)
    send(in_w, *plan["opening"])
    thread_start = next(m["id"] for m in plan["opening"] if m["method"] == "thread/start")
    answer = ""
    for message in messages(out_r):
        if message.get("id") == thread_start and "method" not in message:
            plan["turn"]["params"]["threadId"] = message["result"]["thread"]["id"]
            send(in_w, plan["turn"])
        elif message.get("method") == "item/completed" and message["params"]["item"]["type"] == "agentMessage":
            answer = message["params"]["item"]["text"]
        elif message.get("method") == "turn/completed":
            break
        elif "error" in message:
            sys.exit(f"error: {message['error']}")
    os.close(in_w)
    os.waitpid(pid, 0)
    sys.stdout.write(answer)


def send(fd: int, *said: Any) -> None:
    data = memoryview(b"".join(json.dumps(message).encode() + b"\n" for message in said))
    while data:
        data = data[os.write(fd, data) :]


def messages(fd: int) -> Iterator[Any]:
    parts: list[bytes] = []
    while data := os.read(fd, READ_BYTES):
        first, newline, tail = data.partition(b"\n")
        parts.append(first)
        if newline:
            *lines, rest = tail.split(b"\n")
            yield json.loads(b"".join(parts))
            for line in lines:
                yield json.loads(line)
            parts = [rest]


main(sys.argv[1])
