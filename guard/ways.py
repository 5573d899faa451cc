"""The two ways to hold on to processes: Linux with its subreaper, and polling elsewhere.

Owns: what differs between systems when a process is bound to the guard, found and signalled. Does not own: when
that happens (supervisor.py). Standard library only. Serves spec:cc-agents.work-containment.
"""

from __future__ import annotations

# `signal` and `ctypes` proper cost 15 ms of start-up (enum, structures); these are the C modules below them.
import _ctypes
import _signal as signal  # type: ignore[import-not-found]
import errno
import os

from guard.processes import Proc, Tree, proc_pids, proc_table, ps_pids, ps_table, read_stat

POLL_S = 0.1  # how late a new process group may get into the record
PS_POLL_S = 0.25  # the same where each look costs a run of ps
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
RLIMIT_LOCKS = 10  # without effect since Linux 2.4


class LinuxWay:
    """Orphans below the guard become its children, and the app-server dies with it: nothing gets away."""

    fd_dir, poll_s = "/proc/self/fd", POLL_S
    wait_is_proof = True  # no children left means no descendants left

    def adopt_orphans(self) -> None:
        if prctl(PR_SET_CHILD_SUBREAPER, 1) != 0:
            raise OSError(errno.ENOSYS, "this kernel has no child subreaper")

    def die_with(self, parent: int) -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the call above: no signal will come
            os._exit(126)

    def mark(self, number: int) -> None:
        """On this process and all that it will start: what finds them when the guard and the sidecar are gone."""
        import resource  # 1 ms that only the child spends

        try:
            resource.setrlimit(RLIMIT_LOCKS, (number, resource.getrlimit(RLIMIT_LOCKS)[1]))
        except (OSError, ValueError):
            pass  # somebody has put a lower bound on it: record and environment are left

    def tree(self) -> Tree:
        return Tree(proc_pids(), proc_table, by_group=False)

    def read(self, pid: int) -> Proc:
        """A process that is known to live. Raises OSError."""
        return found(read_stat(pid))

    def send(self, proc: Proc, *signums: int) -> None:
        try:
            fd = os.pidfd_open(proc.pid)
        except ProcessLookupError:
            return
        except (OSError, AttributeError):  # an old kernel, a strict filter, a Python built without it
            send_checked(proc, *signums)
            return
        try:
            now = read_stat(proc.pid)  # read after the open: the descriptor can't come to mean another process
            if now and now.key == proc.key:
                for signum in signums:
                    signal.pidfd_send_signal(fd, signum)
        except (ProcessLookupError, PermissionError):
            pass  # gone, or another user's: the next look tells which
        finally:
            os.close(fd)


class PollingWay:
    """No subreaper: what was seen once, and the groups it was seen in, are followed from look to look.

    Weaker: a process that leaves its group and loses its parent between two looks is not found, and a guard killed
    by -9 leaves even the app-server to sidecar/leftovers/orphans.py.
    """

    fd_dir = "/dev/fd"
    wait_is_proof = False

    def __init__(self) -> None:
        self.has_proc = os.path.exists("/proc/self/stat")
        self.poll_s = POLL_S if self.has_proc else PS_POLL_S

    def adopt_orphans(self) -> None:
        """There is no such thing here."""

    def die_with(self, parent: int) -> None:
        """There is no such thing here."""

    def mark(self, number: int) -> None:
        """Nothing here tells the limits of another process."""

    def tree(self) -> Tree:
        pids, table = (proc_pids, proc_table) if self.has_proc else (ps_pids, ps_table)
        return Tree(pids(), table, by_group=True)

    def read(self, pid: int) -> Proc:
        if self.has_proc:
            return found(read_stat(pid))
        return found(next((p for p in ps_table(set())[1] if p.pid == pid), None))

    def send(self, proc: Proc, *signums: int) -> None:
        if self.has_proc:
            send_checked(proc, *signums)
        else:
            send_now(proc.pid, *signums)  # the look that found it is just over; numbers return far later


def found(proc: Proc | None) -> Proc:
    if proc is None:
        raise OSError(errno.ESRCH, "the process table doesn't show the guard")
    return proc


def prctl(option: int, value: int) -> int:
    call = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # type: ignore[arg-type]  # None is the program itself
    return int(_ctypes.call_function(call, (option, value, 0, 0, 0)))


def send_checked(proc: Proc, *signums: int) -> None:
    now = read_stat(proc.pid)
    if now and now.key == proc.key:
        send_now(proc.pid, *signums)


def send_now(pid: int, *signums: int) -> None:
    try:
        for signum in signums:
            os.kill(pid, signum)
    except (ProcessLookupError, PermissionError):
        pass  # gone, or another user's: the next look tells which


def kill_group(pgid: int, signum: int) -> None:
    try:
        os.killpg(pgid, signum)
    except (ProcessLookupError, PermissionError):
        pass  # gone, or another user's: the next look tells which


def close_above_2(fd_dir: str, *, keep: int) -> None:
    for fd in [int(name) for name in os.listdir(fd_dir)]:
        if fd > 2 and fd != keep:
            try:
                os.close(fd)
            except OSError:
                continue  # the descriptor of the listing itself


def hurry() -> None:
    """Ahead of the processes that are being ended: in a fork storm each of thousands has the same share of the CPU.

    Only root may. For others a storm lasts longer, and ends all the same.
    """
    try:
        if hasattr(os, "sched_setscheduler"):
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
        else:
            os.setpriority(os.PRIO_PROCESS, 0, -20)
    except OSError:
        pass  # not allowed, or not in this C library
