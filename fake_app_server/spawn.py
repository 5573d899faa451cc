"""Real child processes of every kind that has escaped from somebody, for containment tests.

Owns: the step `spawn` and, run as a program by file path, the child itself. Does not own: ending them; the
fake never does, since that is what is being tested. Serves spec:cc-agents.fakes. Standard library only.
"""

from __future__ import annotations

import os
import signal
import sys
import time

# How long the step waits until every child has written its id: a loaded machine starts slowly.
BORN_S = 20.0
POLL_S = 0.005
APPEND_EVERY_S = 0.1
STORM_EVERY_S = 0.01
CLOSED_UP_TO = 256


def spawn(
    shape: str,
    seconds: float = 600,
    pid_file: str | None = None,
    count: int = 1,
    appends: str | None = None,
    stdout: bool = False,
) -> None:
    """Starts `count` children of a shape. With `pid_file`, returns when each has added its id as a line.

    `appends`: the child adds a line to this file every 100 ms instead of sleeping. `stdout`: it keeps ours.
    """
    argv = [sys.executable, "-I", "-S", os.path.abspath(__file__)]
    argv += [shape, str(seconds), _absolute(pid_file), str(count), _absolute(appends)]
    null = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0)
    actions: list[tuple[int, ...] | tuple[object, ...]] = [null, (os.POSIX_SPAWN_DUP2, 0, 2)]
    if not stdout:
        actions.append((os.POSIX_SPAWN_DUP2, 0, 1))
    before = lines_in(pid_file)
    child = os.posix_spawn(sys.executable, argv, os.environ, file_actions=actions)
    if shape in ("double_fork", "clean_env"):
        os.waitpid(child, 0)
    deadline = time.monotonic() + BORN_S
    while pid_file and lines_in(pid_file) < before + count:
        if time.monotonic() > deadline:
            raise RuntimeError(f"spawn: {shape} did not start within {BORN_S} s")
        time.sleep(POLL_S)


def _absolute(path: str | None) -> str:
    return os.path.abspath(path) if path else ""


def lines_in(path: str | None) -> int:
    if not path or not os.path.exists(path):
        return 0
    with open(path, "rb") as file:
        return file.read().count(b"\n")


# --- the child ----------------------------------------------------------------------------------------------


class Child:
    def __init__(self, shape: str, seconds: str, pid_file: str, count: str, appends: str) -> None:
        self.shape, self.seconds = shape, float(seconds)
        self.pid_file, self.count, self.appends = pid_file, int(count), appends

    def run(self) -> None:
        orphans = self.shape in ("double_fork", "clean_env")
        for left in range(self.count, 0, -1):
            if (left == 1 and not orphans) or os.fork() == 0:
                self.leaf()
        os._exit(0)

    def leaf(self) -> None:
        """Becomes what the shape says, writes its id, and stays."""
        if self.shape in ("setsid", "double_fork", "clean_env") and os.getpid() != os.getsid(0):
            os.setsid()
        if self.shape in ("double_fork", "clean_env") and os.fork():
            os._exit(0)
        ignored = {"nohup": [signal.SIGHUP], "ignore_term": [signal.SIGTERM, signal.SIGHUP, signal.SIGINT]}
        for number in ignored.get(self.shape, ()):
            signal.signal(number, signal.SIG_IGN)
        if self.shape == "clean_env":
            os.chdir("/")
        self.born()
        if self.shape == "stopped":
            os.kill(os.getpid(), signal.SIGSTOP)
        if self.shape == "fork_storm":
            self.storm()
        if self.appends:
            self.write_on()
        self.sleep_on()

    def born(self) -> None:
        if self.pid_file:
            fd = os.open(self.pid_file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            os.write(fd, b"%d\n" % os.getpid())
            os.close(fd)

    def sleep_on(self) -> None:
        environment = dict(os.environ)
        if self.shape == "clean_env":
            environment = {}
            os.closerange(0, CLOSED_UP_TO)
        sleep = next(path for path in ("/bin/sleep", "/usr/bin/sleep") if os.path.exists(path))
        os.execve(sleep, ["sleep", str(self.seconds)], environment)

    def write_on(self) -> None:
        end = time.monotonic() + self.seconds
        while time.monotonic() < end:
            fd = os.open(self.appends, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            os.write(fd, b"still here\n")
            os.close(fd)
            time.sleep(APPEND_EVERY_S)
        os._exit(0)

    def storm(self) -> None:
        """Begets a short-lived child every 10 ms, each in a session of its own, until somebody ends it."""
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        end = time.monotonic() + self.seconds
        while time.monotonic() < end:
            if os.fork() == 0:
                os.setsid()
                os.execv("/bin/sh", ["sh", "-c", "sleep 0.5"])
            time.sleep(STORM_EVERY_S)
        os._exit(0)


if __name__ == "__main__":
    Child(*sys.argv[1:]).run()
