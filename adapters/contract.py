"""What a harness adapter is to the sidecar: the only types that cross between the two.

Owns: the request an adapter sees, the plan it answers with, the events and the one ending of a turn.
Does not own: processes (the sidecar starts what the plan says, under the guard), slots, jobs, rendering.
Serves spec:cc-agents.adapter-contract. Standard library only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from adapters.values import Value

Mode: TypeAlias = Literal["read-only", "write", "yolo"]
MODES: tuple[Mode, ...] = ("read-only", "write", "yolo")

Kind: TypeAlias = Literal["capacity", "rate-limit", "quota", "auth", "other"]
Status: TypeAlias = Literal["completed", "failed", "interrupted", "refused"]
Source: TypeAlias = str  # "header", "--model", "CC_AGENTS_MODEL", "codex config", "catalog default", ...

NO_FIELDS: Mapping[str, Any] = {}


class Sourced(Value):
    """A value and where it came from, as the user would name the place."""

    value: str
    source: Source


class Review(Value):
    """What the harness shall review: the changes against `base`, or the uncommitted ones."""

    base: str | None = None


class AgentRequest(Value):
    """One turn as it was asked for. Paths are absolute and real; the harness has checked nothing of it."""

    prompt: str
    mode: Mode
    model: Sourced | None
    effort: Sourced | None
    cwd: str
    add_dirs: tuple[str, ...] = ()
    writable_dirs: tuple[str, ...] = ()  # the user's option; counts in write mode only
    network: bool = False
    thread: str | None = None  # resume this thread instead of starting one
    output_schema: Mapping[str, Any] | None = None
    images: tuple[str, ...] = ()
    review: Review | None = None  # the harness' own review in the place of a prompt
    harness_bin: str | None = None  # the option that names the harness' executable
    protected: tuple[str, ...] = ()  # what must stay read-only even below a writable folder
    private: tuple[str, ...] = ()  # folders of ours that a command must not even read: sockets are in them


class Problem(Value):
    """One thing that is wrong with a request, in words its author can act on."""

    reason: str  # a stable word, see sidecar/schemas/outcome.json
    message: str


class Resolved(Value):
    """A request that passed every check that needs no process: what to start, and the adapter's own plan."""

    request: AgentRequest
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    plan: Any = None  # the adapter's own; the sidecar never looks inside


# --- events: what happens while a turn runs -----------------------------------------------------------------


class StatusEvent(Value):
    """A change of state worth one line to a person. `state` is a stable word."""

    state: str
    text: str


class TextDelta(Value):
    item: str
    text: str


class ItemEvent(Value):
    """An item of this turn began or ended; `detail` holds the harness' own fields, shortened."""

    item: str
    kind: str  # the harness' item type: agentMessage, commandExecution, fileChange, ...
    phase: Literal["started", "completed"]
    text: str = ""  # agentMessage: its text; a command: the command line
    detail: Mapping[str, Any] = NO_FIELDS


class UsageEvent(Value):
    usage: Usage


class DeclinedEvent(Value):
    """A request of the harness that was declined: its method and what it was about."""

    method: str
    subject: str


class WarningEvent(Value):
    text: str


class BegunEvent(Value):
    """The turn is known to the harness: the ids by which it can be steered, interrupted and found again."""

    thread: str
    turn: str


Event: TypeAlias = StatusEvent | TextDelta | ItemEvent | UsageEvent | DeclinedEvent | WarningEvent | BegunEvent
Events: TypeAlias = Callable[[Event], None]


# --- the ending ---------------------------------------------------------------------------------------------


class Usage(Value):
    """Tokens of one turn. `cached_input_tokens` is part of `input_tokens`, reasoning part of output."""

    input_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_output_tokens: int = 0
    total_tokens: int = 0


class TurnError(Value):
    """Why a turn did not complete. `retry_at` is a Unix time in seconds, when the harness named one."""

    kind: Kind
    reason: str
    message: str
    codex_error_info: Any = None
    http_status: int | None = None
    retry_at: int | None = None


class Effective(Value):
    """What was really in force, as the harness answered it."""

    model: Sourced | None = None
    effort: Sourced | None = None
    mode: Mode = "read-only"
    sandbox: Mapping[str, Any] | None = None
    approval_policy: Any = None
    writable_roots: tuple[str, ...] = ()
    network: bool | None = None
    cwd: str = ""
    switched_off: tuple[str, ...] = ()
    added: tuple[str, ...] = ()  # beyond what was asked: "read-only <path>", "unreadable <path>", "TMPDIR=<path>"
    codex: Mapping[str, Any] = NO_FIELDS  # {path, version}


class Ending(Value):
    """How the conversation with the harness ended. The sidecar makes the outcome of it when nothing lives."""

    status: Status
    final_text: str = ""
    partial_text: str = ""
    usage: Usage | None = None
    child_usage: Usage | None = None
    error: TurnError | None = None
    effective: Effective = Effective()
    thread: str | None = None
    turn: str | None = None
    declined: tuple[Mapping[str, str], ...] = ()
    warnings: tuple[str, ...] = ()
    confirmed: bool = False  # the harness itself said that the turn is over


class ModelInfo(Value):
    """One entry of the harness' catalog."""

    id: str
    hidden: bool
    default: bool
    efforts: tuple[str, ...]
    default_effort: str | None
    description: str = ""


class Preview(Value):
    """What a turn would be, asked of the harness without starting a thread."""

    effective: Effective
    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()
    models: tuple[ModelInfo, ...] = ()


# --- the seams ----------------------------------------------------------------------------------------------


class Channel(Protocol):
    """Bytes to and from the harness process. `receive` answers b"" at the end of its output."""

    async def receive(self) -> bytes: ...
    async def send(self, data: bytes) -> None: ...
    async def close_send(self) -> None: ...


class Steer(Protocol):
    """A text for the running turn. The adapter calls exactly one of the two."""

    text: str

    def accept(self) -> None: ...
    def refuse(self, why: str) -> None: ...


class Control(Protocol):
    """What reaches a running turn from outside.

    `stop` is None until somebody wants the turn to end; `wait` returns when `stop` or a steer is new.
    """

    @property
    def stop(self) -> Stop | None: ...
    def next_steer(self) -> Steer | None: ...
    async def wait(self) -> None: ...


class Stop(Value):
    """Why a running turn has to end before its own end."""

    reason: str  # interrupted, timeout, idle_timeout, token_limit
    message: str


class Limits(Value):
    """Bounds of one conversation, in seconds and tokens; None is no bound."""

    start_s: float
    grace_s: float
    idle_s: float | None = None
    tokens: int | None = None


@runtime_checkable
class Adapter(Protocol):
    name: str
    slot_key: str
    modes: tuple[Mode, ...]

    def check(self, request: AgentRequest, environ: Mapping[str, str]) -> Resolved:
        """Everything that can be known without a process. Raises `Refused` with every problem found."""
        ...

    async def preview(self, channel: Channel, resolved: Resolved, limits: Limits) -> Preview: ...

    async def run(
        self, channel: Channel, resolved: Resolved, events: Events, control: Control, limits: Limits
    ) -> Ending: ...


@runtime_checkable
class StartsAgain(Protocol):
    """Of an adapter whose harness may fail at its start for no lasting reason."""

    def start_again(self, message: str) -> bool:
        """Whether a start that ended so, before anything was asked of it, is worth another try."""
        ...


@runtime_checkable
class Recalls(Protocol):
    """Of an adapter that can read a turn back from the harness' own memory of a thread."""

    async def recall(
        self, channel: Channel, resolved: Resolved, thread: str, turn: str | None, limits: Limits
    ) -> Ending:
        """How that turn of that thread ended, the last one where `turn` is None; `usage` is not known to it.

        Raises PeerError; its reason is `thread_unknown` when the harness doesn't know thread or turn.
        """
        ...


class Finding(Value):
    """One line of `doctor`: what was looked at, how it is, and what its reader can do about it."""

    level: Literal["ok", "warning", "failure"]
    name: str
    text: str
    todo: str = ""


class Trial(Value):
    """A harmless command that shows whether the harness' sandbox works on this machine. `judge` gets its exit code,
    or None when it had to be ended, and what it said."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    judge: Callable[[int | None, str], Finding]


@runtime_checkable
class Tidies(Protocol):
    """Of an adapter whose harness leaves something behind on disk."""

    def tidy(self, resolved: Resolved) -> None:
        """Called once nothing of the turn lives. Quick; never raises."""
        ...


@runtime_checkable
class Examinable(Protocol):
    """An adapter that has more to tell `doctor` than its check and preview do."""

    def examine(self, request: AgentRequest, environ: Mapping[str, str]) -> tuple[Finding, ...]:
        """What can be seen without a process. Never raises Refused: what is wrong is a finding."""
        ...

    def trial(self, resolved: Resolved, forbidden: str) -> Trial:
        """`forbidden` is a path that a read-only turn must not be able to make."""
        ...


class Refused(Exception):
    """A request that cannot become a turn. Raised by `check`, with every problem that was found."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("; ".join(p.message for p in problems))
        self.problems = problems


class PeerError(Exception):
    """The harness broke the protocol or went away. Raised by the wire, names the method and the field."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
