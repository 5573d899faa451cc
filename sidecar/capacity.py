"""How many turns this machine can take when nobody set a cap.

Owns: the cores and the memory that this process may really use (affinity, cgroup v1 and v2), and the cap of them.
Does not own: the slots. Serves spec:cc-agents.codex-adapter (rule.defaultCap).
"""

from __future__ import annotations

import os
from collections.abc import Iterator

TURNS_PER_CORE = 3
MEMORY_PER_TURN = 800 * 1024 * 1024


def default_cap(root: str = "/") -> int:
    """The cap for this machine. `root` holds proc/ and sys/, for tests."""
    return cap_from(available_cores(root), available_memory(root))


def cap_from(cores: float, memory_bytes: int | None) -> int:
    """The smaller of three per core and memory / 800 MiB, rounded down after the product; at least one."""
    by_cores = int(TURNS_PER_CORE * cores)
    by_memory = by_cores if memory_bytes is None else memory_bytes // MEMORY_PER_TURN
    return max(1, min(by_cores, by_memory))


def available_cores(root: str = "/", affinity: int | None = None) -> float:
    """Cores by affinity, less where a CPU quota says so; a quota of one and a half stays 1.5."""
    if affinity is None:
        try:
            affinity = len(os.sched_getaffinity(0))
        except AttributeError:  # not Linux
            affinity = os.cpu_count() or 1
    return min([float(affinity), *_cpu_quotas(root)])


def available_memory(root: str = "/") -> int | None:
    """Bytes of memory of the machine, less where a cgroup is limited to less; None when nothing tells."""
    return min([*_machine_memory(root), *_memory_limits(root)], default=None)


def _cpu_quotas(root: str) -> Iterator[float]:
    for folder in _cgroup_folders(root, ""):
        quota, _, period = _read(f"{folder}/cpu.max").partition(" ")
        if quota.isdecimal() and period.isdecimal() and int(period):
            yield int(quota) / int(period)
    for folder in _cgroup_folders(root, "cpu"):
        quota, period = _read(f"{folder}/cpu.cfs_quota_us"), _read(f"{folder}/cpu.cfs_period_us")
        if quota.isdecimal() and period.isdecimal() and int(period):  # no quota is -1
            yield int(quota) / int(period)


def _memory_limits(root: str) -> Iterator[int]:
    for controller, name in (("", "memory.max"), ("memory", "memory.limit_in_bytes")):
        for folder in _cgroup_folders(root, controller):
            if (limit := _read(f"{folder}/{name}")).isdecimal():  # no limit is "max", or in v1 a huge number
                yield int(limit)


def _machine_memory(root: str) -> Iterator[int]:
    for line in _read(os.path.join(root, "proc/meminfo")).splitlines():
        if line.startswith("MemTotal:"):
            yield int(line.split()[1]) * 1024
            return
    try:
        yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):  # not known to this system
        return


def _cgroup_folders(root: str, controller: str) -> Iterator[str]:
    """Our cgroup's folder and all above it, for a v1 controller or "" for v2: the tightest of them counts."""
    mount = os.path.join(root, "sys/fs/cgroup")
    for line in _read(os.path.join(root, "proc/self/cgroup")).splitlines():
        names, _, path = line.partition(":")[2].partition(":")
        if controller not in names.split(","):
            continue
        tops = (
            (mount, f"{mount}/unified") if not names else dict.fromkeys((f"{mount}/{names}", f"{mount}/{controller}"))
        )
        # In a container the path may be the host's, which isn't mounted here: then only the top exists.
        parts = [p for p in path.split("/") if p and p != ".."]
        for top in tops:
            yield from ("/".join([top, *parts[:n]]) for n in range(len(parts), -1, -1))


def _read(path: str) -> str:
    """The text of a kernel file; empty when it isn't there or not ours to read, which limits nothing."""
    try:
        with open(path, encoding="ascii", errors="replace") as f:
            return f.read().strip()
    except OSError:
        return ""
