"""The exception that a person can mend.

Owns: `UserError`, and the exit codes that are no outcome's alone.
Does not own: how it is shown (cli) or what a harness refuses (adapters.contract.Refused).
"""

from __future__ import annotations

EXIT_FAILED = 1
EXIT_REFUSED = 2  # before a turn
EXIT_STILL_RUNNING = 10  # `result` of a job that has not ended, `wait` whose time was over
EXIT_INTERRUPTED = 130  # also `interrupt JOB`; a signal gives 128 + its number


class UserError(Exception):
    """Something its reader can put right. `reason` is a stable word, `message` one plain line."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
