"""The mark that a turn puts on its processes beside the one in their environment: a limit that Linux no longer uses.

Owns: which limit, and the number of a turn. Does not own: setting it (the guard does), finding it (orphans.py).
Serves rule.markOfLimits.
"""

from __future__ import annotations

import hashlib

# The limit on file locks has had no effect since Linux 2.4. It is inherited by fork and exec like any other, so it
# outlives a cleared environment, a new session and a changed name, and /proc/PID/limits shows it.
RLIMIT_LOCKS = 10


def limit_mark(turn: str) -> int:
    """62 bits: no turn has another's number, and none is the "unlimited" that everybody else has."""
    return int.from_bytes(hashlib.blake2b(turn.encode(), digest_size=8).digest(), "big") >> 2
