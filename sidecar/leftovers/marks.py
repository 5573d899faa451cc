"""The mark that a turn puts on its processes beside the one in their environment: a limit that Linux no longer uses.

Owns: which limit, and the number of a turn. Does not own: setting it (the guard does), finding it (orphans.py).
Serves rule.markOfLimits.
"""

from __future__ import annotations

# The limit on file locks has had no effect since Linux 2.4. It is inherited by fork and exec like any other, so it
# outlives a cleared environment, a new session and a changed name, and /proc/PID/limits shows it.
RLIMIT_LOCKS = 10

MERSENNE_61 = 2**61 - 1  # a prime: what is left of a division by it depends on every byte


def limit_mark(turn: str) -> int:
    """Below 2**61: two turns hardly ever have one number, and none has the "unlimited" that everybody else has."""
    return int.from_bytes(turn.encode(), "big") % MERSENNE_61
