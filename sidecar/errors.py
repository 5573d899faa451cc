"""The exception that a person can mend.

Owns: `UserError`. Does not own: how it is shown (cli) or what a harness refuses (adapters.contract.Refused).
"""

from __future__ import annotations


class UserError(Exception):
    """Something its reader can put right. `reason` is a stable word, `message` one plain line."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
