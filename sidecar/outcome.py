"""The one honest end of a turn, as a value: its JSON and its exit code.

Owns: `Outcome`, the table of exit codes. Does not own how it is shown (render.py). The shape is
sidecar/schemas/outcome.json. Serves rule.exitCodes, rule.errorKinds.
"""

from __future__ import annotations

from typing import Any

from adapters.contract import Ending, Kind, Problem, TurnError
from adapters.values import Value, as_dict
from sidecar.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_REFUSED, UserError

EXIT_COMPLETED = 0

EXIT_OF_REASON = {
    "not_signed_in": 3,
    "mode_not_enforced": 7,
    "timeout": 8,
    "idle_timeout": 8,
    "token_limit": 8,
    "app_server_exited": 9,
    "protocol": 9,
}
EXIT_OF_KIND: dict[Kind, int] = {"auth": 3, "quota": 4, "rate-limit": 5, "capacity": 6, "other": EXIT_FAILED}


class Timing(Value):
    """`started_at` is a Unix time in seconds, None when nothing was started; the others are seconds."""

    queued_s: float = 0.0
    started_at: float | None = None
    duration_s: float = 0.0


class Outcome(Ending):
    """How the conversation ended, and what the sidecar knows beside it. `processes_ended` counts what the guard had to
    end; `signal` is what ended us, if any did."""

    job: str | None
    processes_ended: int = 0
    timing: Timing = Timing()
    signal: int | None = None

    @property
    def exit_code(self) -> int:
        if self.status == "completed":
            return EXIT_COMPLETED
        error = self.error
        if self.signal is not None and self.status == "interrupted":
            return 128 + self.signal
        if error is not None:
            code = EXIT_OF_REASON.get(error.reason)
            if code is None and error.kind != "other":
                code = EXIT_OF_KIND[error.kind]
            if code is not None:
                return code
        return {"refused": EXIT_REFUSED, "interrupted": EXIT_INTERRUPTED}.get(self.status, EXIT_FAILED)

    def to_json(self) -> dict[str, Any]:
        """The public shape: sidecar/schemas/outcome.json."""
        effective = self.effective
        return {
            "job": self.job,
            "status": self.status,
            "final_text": self.final_text,
            "partial_text": self.partial_text,
            "usage": _plain(self.usage),
            "child_usage": _plain(self.child_usage),
            "error": _plain(self.error),
            "effective": {
                **_plain(effective),
                "writable_roots": list(effective.writable_roots),
                "switched_off": list(effective.switched_off),
                "added": list(effective.added),
            },
            "thread": self.thread,
            "turn": self.turn,
            "declined": [dict(d) for d in self.declined],
            "warnings": list(self.warnings),
            "confirmed": self.confirmed,
            "processes_ended": self.processes_ended,
            "timing": _plain(self.timing),
            "exit_code": self.exit_code,
        }


def _plain(value: Any) -> Any:
    return None if value is None else as_dict(value)


def of_ending(
    ending: Ending, *, job: str, timing: Timing, processes_ended: int, signal: int | None, warnings: tuple[str, ...]
) -> Outcome:
    fields = {name: getattr(ending, name) for name in Ending.fields}
    fields["warnings"] = (*ending.warnings, *warnings)
    return Outcome(job=job, timing=timing, processes_ended=processes_ended, signal=signal, **fields)


def refused(*problems: Problem, job: str | None = None, kind: Kind = "other") -> Outcome:
    """A request that never became a turn: every problem, a line each; the first names the reason."""
    message = "\n".join(p.message for p in problems)
    return Outcome(job=job, status="refused", error=TurnError(kind=kind, reason=problems[0].reason, message=message))


def stopped_early(signal: int | None = None) -> Outcome:
    """Ctrl-C, or another signal, while the request was being read or its thread waited for: nothing was created."""
    error = TurnError(kind="other", reason="interrupted", message="interrupted before anything was started")
    return Outcome(job=None, status="interrupted", error=error, confirmed=True, signal=signal)


def problems_of(error: UserError) -> list[Problem]:
    """A UserError's message holds a line for each problem."""
    return [Problem(reason=error.reason, message=line) for line in error.message.splitlines()]
