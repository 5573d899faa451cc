"""The record of a turn's process groups: what is left to go by if the guard itself is killed by -9.

Owns: the file's shape, its publication and removal. Does not own: reading it (sidecar/leftovers/orphans.py) and the
job's own record. Standard library only. Serves spec:cc-agents.work-containment.

    {"version": 1, "turn": ID, "boot_id": ID or null, "guard": {pid, start_time},
     "app_server": {pid, pgid, start_time}, "groups": [{pgid, pid, start_time, sid}, ...]}

A group has up to four entries, one for each of its oldest living members: as long as one of them lives, the number
of the group can't mean another one. Times are clock ticks since boot; where boot_id is null, seconds since 1970.
"""

from __future__ import annotations

import os
from _json import encode_basestring_ascii as quoted

from guard.processes import Proc

MEMBERS_RECORDED = 4


def json_text(value: object) -> str:
    """JSON without the json module, whose decoder costs 12 ms of start-up."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{quoted(k)}:{json_text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(json_text, value)) + "]"
    if value is None:
        return "null"
    return quoted(value) if isinstance(value, str) else str(value)


def boot_id() -> str | None:
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except FileNotFoundError:
        return None


class Record:
    def __init__(self, *, path: str, turn: str, guard: Proc, app_server: Proc) -> None:
        self.path, self.draft = path, f"{path}.draft"
        app = app_server
        self.app_server = {"pid": app.pid, "pgid": app.pgid, "start_time": app.start_time}
        self.head = {
            "version": 1,
            "turn": turn,
            "boot_id": boot_id(),
            "guard": {"pid": guard.pid, "start_time": guard.start_time},
            "app_server": self.app_server,
        }
        self.published: set[tuple[int, int, int]] = set()

    def update(self, procs: list[Proc]) -> None:
        """Publish anew if one of the members to be recorded is new. Raises OSError."""
        groups: dict[int, list[Proc]] = {}
        for p in sorted(procs, key=lambda p: p.start_time):
            members = groups.setdefault(p.pgid, [])
            if len(members) < MEMBERS_RECORDED:
                members.append(p)
        chosen = {(p.pgid, *p.key): p for members in groups.values() for p in members}
        if chosen.keys() <= self.published:
            return
        entries = [{"pgid": p.pgid, "pid": p.pid, "start_time": p.start_time, "sid": p.sid} for p in chosen.values()]
        self.publish(json_text({**self.head, "groups": entries}))
        self.published = set(chosen)

    def publish(self, text: str) -> None:
        """Renamed into place, so a reader sees all of it. Not synced: it is about living processes, and what the
        kernel has not yet written is lost only together with them."""
        fd = os.open(self.draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            with open(fd, "w") as file:
                file.write(text)
            os.rename(self.draft, self.path)
        except OSError:
            os.unlink(self.draft)
            raise

    def remove(self) -> None:
        """Raises OSError."""
        if self.published:
            os.unlink(self.path)
