"""The guard: one small process per turn that starts the app-server and outlives every process of the turn.

Owns: starting the app-server, watching, ending everything below itself. Does not own: the app-server's bytes (it
never touches them), the slot's rules, what a guard killed by -9 leaves behind (sidecar/leftovers/orphans.py). Standard
library only. Serves spec:cc-agents.work-containment.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # `signal` proper costs 10 ms of start-up (enum)
import errno
import os
import select
import sys
import time

from guard.processes import Proc
from guard.record import Record, json_text
from guard.ways import LinuxWay, PollingWay, close_above_2, hurry, kill_group

TYPE_CHECKING = False  # as typing has it, without 5 ms of import
if TYPE_CHECKING:
    from collections.abc import Callable

ORPHAN_GRACE_S = 0.1  # the sidecar is gone: nobody waits for a tidy end, and 250 ms are promised
AFTER_EXIT_GRACE_S = 0.3  # the app-server is gone: what is left has had its chance
TERM_POLL_S = 0.02  # how late a process born during a grace gets its TERM
FREEZE_S = 0.05  # longer than this no chase after new processes: kill what is known, look again
BACKOFF_MIN_S, BACKOFF_MAX_S = 0.002, 1.0  # between two rounds of KILL that change nothing
STUCK_AFTER_S = 2.0  # a KILL without effect for that long is reported
STORM = 100  # that many processes born during a grace is no tidy end: it is cut short
CROWD = 300  # more than a turn has at once: a storm that was there before its end
HURRY_AFTER_S = 0.2  # of killing: what is left replaces itself faster than it is killed
REAP_S = 0.05  # a storm must not keep the guard at reaping alone
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
WAYS: dict[str, type[LinuxWay] | type[PollingWay]] = {"linux": LinuxWay, "polling": PollingWay}


class Guard:
    def __init__(self, options: dict[str, str], argv: list[str]) -> None:
        self.argv, self.turn, self.record_path = argv, options["turn"], options["record"]
        self.report_fd, self.lifeline = int(options["report"]), int(options["lifeline"])
        self.grace_s = {
            "signal": float(options["grace"]),
            "lifeline": float(options.get("orphan-grace", ORPHAN_GRACE_S)),
            "exit": min(float(options["grace"]), AFTER_EXIT_GRACE_S),
        }
        self.way = WAYS[options.get("way", "linux" if sys.platform == "linux" else "polling")]()
        self.poll_s = float(options.get("poll", self.way.poll_s))
        self.tree = self.way.tree()
        self.record: Record | None = None
        self.app_pid, self.status, self.failed = 0, 0, False
        self.over = self.let_go = self.childless = False
        self.hurried = False
        self.stops, self.exec_fd, self.mark = 0, -1, int(options.get("mark", 0))
        self.ended: set[tuple[int, int]] = set()
        self.poller = select.poll()
        self.readers: dict[int, Callable[[], object]] = {}

    def run(self) -> int:
        self.listen()
        try:
            self.start()
        except OSError as e:
            self.fail(e.errno or errno.EIO, f"the guard could not start it: {e}")
        reason = self.watch()
        self.end(self.grace_s[reason], cut_short_by=1 if reason == "exit" else 2)
        self.keep_record(None)
        self.report(event="ended", reason=reason, processes_ended=len(self.ended))
        code = os.waitstatus_to_exitcode(self.status)
        return 127 if self.failed else code if code >= 0 else 128 - code

    # --- the start -----------------------------------------------------------------------------------------

    def start(self) -> None:
        self.way.adopt_orphans()
        self.exec_fd, errors = os.pipe()
        gate, opener = os.pipe()
        guard = os.getpid()
        self.app_pid = os.fork()
        if self.app_pid == 0:
            os.close(opener)  # end of file at the gate has to mean that the guard is gone
            self.become_app_server(guard, gate, errors)
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)  # the pipes are the app-server's alone: their ends must show
        for fd in (gate, errors, null):
            os.close(fd)
        self.hear(self.exec_fd, self.on_exec)
        try:
            os.setpgid(self.app_pid, self.app_pid)
            procs = self.tree.scan()
            me, app = self.way.read(guard), self.tree.known[self.app_pid]
            self.record = Record(path=self.record_path, turn=self.turn, guard=me, app_server=app)
            self.record.update(procs)
            os.write(opener, b"!")
        finally:
            os.close(opener)  # without the mark the child ends itself

    def become_app_server(self, guard: int, gate: int, errors: int) -> None:
        """In the child: wait until the record is published, then exec with nothing above 2 open."""
        try:
            self.way.die_with(guard)
            self.way.mark(self.mark)
            for signum, handler in self.before.items():
                signal.signal(signum, handler)
            if not os.read(gate, 1):
                os._exit(126)
            close_above_2(self.way.fd_dir, keep=errors)
            os.execvp(self.argv[0], self.argv)
        except OSError as e:
            os.write(errors, b"%d" % (e.errno or errno.EIO))
        finally:
            os._exit(127)

    # --- what it hears -------------------------------------------------------------------------------------

    def listen(self) -> None:
        """From here on no request to end ends the guard before its work is done."""
        self.wake, into = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(into, False)
        signal.set_wakeup_fd(into, warn_on_full_buffer=False)
        self.before = {s: signal.signal(s, self.on_stop) for s in STOP_SIGNALS}
        self.before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
        self.before |= {signal.SIGPIPE: signal.SIG_DFL, signal.SIGXFSZ: signal.SIG_DFL}  # Python ignores both
        self.hear(self.wake, lambda: os.read(self.wake, 65536))
        self.hear(self.lifeline, self.on_lifeline)

    def hear(self, fd: int, reader: Callable[[], object]) -> None:
        self.readers[fd] = reader
        self.poller.register(fd, select.POLLIN)

    def on_stop(self, *_: object) -> None:
        self.stops += 1

    def on_lifeline(self) -> None:
        if not os.read(self.lifeline, 4096):
            self.let_go = True
            self.poller.unregister(self.lifeline)

    def on_exec(self) -> None:
        """The child's error pipe: closed by a good exec, else the errno."""
        code = os.read(self.exec_fd, 16)
        self.poller.unregister(self.exec_fd)
        os.close(self.exec_fd)
        self.exec_fd = -1
        if code:
            self.fail(int(code), f"{self.argv[0]}: {os.strerror(int(code))}")
        elif self.record and not self.failed:
            self.report(event="started", **self.record.app_server)

    def pause(self, until: float) -> None:
        """Sleep until something is heard, at the latest `until`; then reap."""
        left_ms = max(0.0, until - time.monotonic()) * 1000
        for fd, _ in self.poller.poll(int(left_ms + 0.999)):
            self.readers[fd]()
        self.reap()

    def reap(self) -> None:
        until = time.monotonic() + REAP_S
        while time.monotonic() < until:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.over = self.childless = True
                return
            if pid == 0:
                return
            self.tree.known.pop(pid, None)  # from now on its number can be given again
            if pid == self.app_pid:
                self.on_app_exit(status)

    def on_app_exit(self, status: int) -> None:
        if self.exec_fd >= 0:
            self.on_exec()  # it may have died of a failed exec that was not heard of yet
        self.app_pid, self.status, self.over = 0, status, True
        if not self.failed:
            code = os.waitstatus_to_exitcode(status)
            self.report(event="exited", code=code if code >= 0 else None, signal=-code if code < 0 else None)

    def report(self, **event: object) -> None:
        try:
            os.write(self.report_fd, json_text(event).encode() + b"\n")
        except OSError:
            pass  # nobody listens any more: the work goes on all the same

    def fail(self, code: int, message: str) -> None:
        self.failed = True
        self.report(event="failed", errno=code, message=message)

    # --- the turn, and its end -----------------------------------------------------------------------------

    def watch(self) -> str:
        """Until there is a reason to end everything; keeps the record meanwhile."""
        look_at = time.monotonic() + self.poll_s
        while True:
            self.pause(look_at)
            if self.stops or self.let_go:
                return "signal" if self.stops else "lifeline"
            if self.over:
                return "exit"
            if time.monotonic() >= look_at:
                self.keep_record(self.tree.scan())
                look_at = time.monotonic() + self.poll_s

    def keep_record(self, procs: list[Proc] | None) -> None:
        """Up to date while something lives, removed when nothing does (None)."""
        try:
            if self.record:
                self.record.remove() if procs is None else self.record.update(procs)
        except OSError as e:  # a full disk ends no turn; each look tries again
            self.report(event="record_failed", errno=e.errno, message=str(e))

    def end(self, grace_s: float, *, cut_short_by: int) -> None:
        """TERM, grace, KILL. Returns when nothing lives, and only then."""
        until = time.monotonic() + grace_s
        asked, crowd = set[tuple[int, int]](), 0
        while not self.gone() and time.monotonic() < until and self.stops + self.let_go < cut_short_by:
            fresh = [p for p in self.look_below() if p.key not in asked]
            crowd = crowd or len(self.ended)
            if len(self.ended) > crowd + STORM:
                self.hurry()
                break
            for p in fresh:
                self.way.send(p, signal.SIGTERM, signal.SIGCONT)  # the stopped can't hear TERM before CONT
            asked.update(p.key for p in fresh)
            self.rest(min(until, time.monotonic() + TERM_POLL_S), cut_short_by=cut_short_by)
        self.kill()

    def gone(self) -> bool:
        self.reap()
        return self.childless and (self.way.wait_is_proof or not self.tree.scan())

    def rest(self, until: float, *, cut_short_by: int = sys.maxsize) -> None:
        while time.monotonic() < until and self.stops + self.let_go < cut_short_by:
            self.pause(until)
            if self.childless and self.way.wait_is_proof:
                return

    def look_below(self, settled: set[int] | frozenset[int] = frozenset()) -> list[Proc]:
        """All known ones, zombies too: they stand for their groups. Counts those alive."""
        self.ended.update(p.key for p in self.tree.scan(settled))
        return list(self.tree.known.values())

    def kill(self) -> None:
        """Stop all, then kill all: what is stopped can't replace what is killed. Again until nothing is left."""
        begun = time.monotonic()
        backoff_s, since, last, told = BACKOFF_MIN_S, begun, [(0, 0)], False
        self.hit(list(self.tree.known.values()), signal.SIGSTOP)  # before the time that a look takes in a storm
        while not self.gone():
            if time.monotonic() - begun > HURRY_AFTER_S or len(self.tree.known) > CROWD:
                self.hurry()
            procs = self.freeze()
            self.hit(procs, signal.SIGKILL)
            if not procs:
                self.tree.forget_foreign()
            keys = sorted(p.key for p in procs)
            if keys != last:
                backoff_s, since, last = BACKOFF_MIN_S, time.monotonic(), keys
            elif not told and time.monotonic() - since > STUCK_AFTER_S:
                told = True
                self.report(event="stuck", pids=[pid for pid, _ in keys])
            self.rest(time.monotonic() + backoff_s)
            backoff_s = min(backoff_s * 2, BACKOFF_MAX_S)

    def hurry(self) -> None:
        """Not sooner than it has to be: on a loaded machine the kernel lets what dies wait for a second (6.18)."""
        if not self.hurried:
            self.hurried = True
            hurry()

    def freeze(self) -> list[Proc]:
        """SIGSTOP to everything until a look shows nothing new; all that is known then."""
        until = time.monotonic() + FREEZE_S
        stopped: set[int] = set()
        while True:
            self.reap()
            procs = self.look_below(stopped)
            fresh = [p for p in procs if p.pid not in stopped]
            if not fresh or time.monotonic() > until:
                return procs
            self.hit(fresh, signal.SIGSTOP)
            stopped.update(p.pid for p in fresh)

    def hit(self, procs: list[Proc], signum: int) -> None:
        # One killpg also reaches what the group forks at that moment. Its number can't have been given again as long
        # as a child that only the guard can reap is in it.
        groups = {p.pgid for p in procs if p.ppid == self.tree.me} - {os.getpgid(0)}
        for pgid in groups:
            kill_group(pgid, signum)
        for p in procs:
            if p.pgid not in groups and not p.zombie:
                self.way.send(p, signum)
