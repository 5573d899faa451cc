"""The floor of many turns: starts the fake N times, so many at once, one turn each. `python -I -S bare_many.py PLAN`

PLAN is a plan of bare.py with "times" and "at_once". Prints how many turns completed. One process, no guard, no
record, nothing checked: what is left is the price of starting the fake. Standard library only.
"""

from __future__ import annotations

import json
import os
import selectors
import sys

READ_BYTES = 1 << 16

TYPE_CHECKING = False  # as typing has it, without 5 ms of import
if TYPE_CHECKING:
    from typing import Any


class Turn:
    def __init__(self, plan: Any) -> None:
        (in_r, self.stdin), (self.stdout, out_w) = os.pipe(), os.pipe()
        actions = [(os.POSIX_SPAWN_DUP2, in_r, 0), (os.POSIX_SPAWN_DUP2, out_w, 1)]
        self.pid = os.posix_spawn(plan["argv"][0], plan["argv"], os.environ, file_actions=actions)
        os.close(in_r)
        os.close(out_w)
        self.plan, self.rest, self.completed = plan, b"", False
        self.send(*plan["opening"])

    def send(self, *said: Any) -> None:
        os.write(self.stdin, b"".join(json.dumps(message).encode() + b"\n" for message in said))

    def read(self) -> bool:
        """False at the end of the turn."""
        data = os.read(self.stdout, READ_BYTES)
        *lines, self.rest = (self.rest + data).split(b"\n")
        for message in map(json.loads, lines):
            if message.get("id") == self.plan["opening"][-1]["id"]:
                thread = message["result"]["thread"]["id"]
                params = {**self.plan["turn"]["params"], "threadId": thread}
                self.send({**self.plan["turn"], "params": params})
            self.completed = self.completed or message.get("method") == "turn/completed"
        return bool(data) and not self.completed

    def end(self) -> None:
        os.close(self.stdin)
        os.close(self.stdout)
        os.waitpid(self.pid, 0)


def main(path: str) -> None:
    with open(path, "rb") as file:
        plan = json.load(file)
    left, completed, chosen = plan["times"], 0, selectors.DefaultSelector()
    while left or chosen.get_map():
        while left and len(chosen.get_map()) < plan["at_once"]:
            turn = Turn(plan)
            chosen.register(turn.stdout, selectors.EVENT_READ, turn)
            left -= 1
        for key, _ in chosen.select():
            if not key.data.read():
                chosen.unregister(key.fd)
                completed += key.data.completed
                key.data.end()
    sys.stdout.write(str(completed))


main(sys.argv[1])
