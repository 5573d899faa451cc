"""The socket by which other processes reach a running turn: where it is, and how to ask over it.

Owns: the path, the client's side, one JSON object a line each way. Does not own: what is done about it
(control_server.py). Standard library only. Serves rule.steer.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sidecar import deadlines, paths

PATH_BYTES = 100  # of a socket's address: 108 on Linux, 104 elsewhere, with the NUL
STEER_ANSWER_S = 600.0  # for the turn to start: a queue for slots may be long
# The turn's own grace may be an option of its start: far longer than all that it is made of by default.
INTERRUPT_ANSWER_S = 10 * (deadlines.GRACE_S + deadlines.TERM_GRACE_S + 3 * deadlines.GUARD_S)
MESSAGE_BYTES = 16 << 20  # a steer is a prompt: far more than Codex takes


def folder_of(runtime: str) -> str:
    return os.path.join(runtime, "control")


def path_of(runtime: str, job: str) -> str:
    return os.path.join(folder_of(runtime), f"{job}.sock")


@contextmanager
def short(path: str) -> Iterator[str]:
    """A name of `path` that fits into a socket's address, for this block: relative to its folder if need be."""
    if len(os.fsencode(path)) < PATH_BYTES:
        yield path
        return
    back = os.open(".", os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.chdir(os.path.dirname(path))
        yield os.path.basename(path)
    finally:
        os.fchdir(back)
        os.close(back)


def listen(runtime: str, job: str) -> socket.socket:
    """The listening socket of a job, mode 0600 in a folder of mode 0700. Raises OSError, UserError."""
    paths.make_private(folder_of(runtime), reason="runtime_dir")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with short(path_of(runtime, job)) as name:
            listener.bind(name)
            os.chmod(name, 0o600)
        listener.listen()
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


def is_heard(path: str) -> bool:
    """Whether anybody listens at that socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as talk:
        talk.settimeout(1.0)
        try:
            with short(path) as name:
                talk.connect(name)
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:  # its queue is full, or something else that is no proof
            return True
    return True


def ask(runtime: str, job: str, message: Mapping[str, Any], within_s: float) -> dict[str, Any]:
    """The answer of the job's sidecar. Raises OSError: ConnectionError or FileNotFoundError when nobody listens or
    the sidecar went away, TimeoutError when there is no answer in time."""
    end = time.monotonic() + within_s
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as talk:
        talk.settimeout(within_s)
        with short(path_of(runtime, job)) as name:
            talk.connect(name)
        talk.sendall(json.dumps(message).encode("ascii") + b"\n")
        data = b""
        while not data.endswith(b"\n"):
            talk.settimeout(max(0.001, end - time.monotonic()))
            more = talk.recv(65536)
            if not more:
                raise ConnectionResetError("the sidecar went away before it answered")
            data += more
    answer = json.loads(data)
    return answer if isinstance(answer, dict) else {}
