"""What the notifications of one conversation say about one turn.

Owns: telling this turn's messages from those of other threads and turns, collecting answer, usage, errors, declined
requests and warnings, and passing contract events on. Synchronous: it runs in the reader and never waits.
Does not own what is done about it (conversation.py). Serves rule.exactFinal, rule.approvalsNever, rule.mcpOff.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from adapters.codex import usage as tokens
from adapters.codex.answer import Answer
from adapters.codex.errors import classify
from adapters.codex.methods import refusal_for, subject_of
from adapters.codex.wire import mapping, text_of
from adapters.contract import (
    BegunEvent,
    DeclinedEvent,
    Event,
    Events,
    ItemEvent,
    StatusEvent,
    TextDelta,
    TurnError,
    Usage,
    UsageEvent,
    WarningEvent,
)
from adapters.jsonrpc import Refusal
from adapters.values import replace

MAX_NOTES = 100  # warnings and declined requests kept; a flood of them is counted, not stored
MAX_NOTE_CHARS = 4000
MCP_RUNNING = ("starting", "ready")


class Tracker:
    def __init__(
        self, events: Events, clock: Callable[[], float], changed: Callable[[], None], *, no_hooks: bool = False
    ) -> None:
        self._events = events
        self._delta_item, self._deltas = "", list[str]()  # text of one item that was read and not told yet
        self._clock = clock
        self._changed = changed
        self._no_hooks = no_hooks
        self.thread: str | None = None
        self.turn: str | None = None
        self.turn_asked = False
        self.reviews = False  # what was asked for is a review
        self.started = False
        self.answer = Answer()
        self._usage = tokens.TurnUsage(fresh=True)
        self._children: dict[str, tokens.TurnUsage] = {}
        self._busy_children: set[str] = set()
        self.completed: Mapping[str, Any] | None = None
        self.completed_at = 0.0
        self.error: TurnError | None = None
        self.error_at: float | None = None
        self.refusal: TurnError | None = None
        self.idle_at: float | None = None  # the thread is idle although the turn has not ended
        self.breach: str | None = None  # what started although it was switched off
        self.declined: list[dict[str, str]] = []
        self.warnings: list[str] = []
        self.dropped_notes = 0
        self.last_progress = clock()
        self._retry_at: int | None = None
        self._handlers: dict[str, Callable[[Mapping[str, Any]], None]] = {
            "turn/started": self._on_turn_started,
            "turn/completed": self._on_turn_completed,
            "item/started": self._on_item_started,
            "item/completed": self._on_item_completed,
            "item/agentMessage/delta": self._on_delta,
            "thread/tokenUsage/updated": self._on_usage,
            "thread/status/changed": self._on_thread_status,
            "error": self._on_error,
            "mcpServer/startupStatus/updated": self._on_mcp_status,
            "hook/started": self._on_hook,
            "account/rateLimits/updated": self._on_rate_limits,
            "warning": self._on_warning,
            "configWarning": self._on_warning,
            "guardianWarning": self._on_warning,
            "model/rerouted": self._on_rerouted,
        }

    # --- what the conversation tells --------------------------------------------------------------------------

    def thread_opened(self, thread: str, *, fresh: bool) -> None:
        self.thread = thread
        self._usage = tokens.TurnUsage(fresh=fresh)

    def turn_was_asked(self) -> None:
        self.turn_asked = True
        self.last_progress = self._clock()

    def turn_answered(self, turn: str) -> None:
        if self.turn not in (None, turn):  # what was taken for our turn was another's
            self.started, self.completed, self.answer = False, None, Answer()
            self._usage.disown()
        self.turn = turn
        self.last_progress = self._clock()

    def turn_refused(self, message: str) -> None:
        """Codex answered turn/start with an error: there is no turn, and there will be no turn/completed."""
        self.refusal = replace(classify(None, message), reason="codex_refused")
        self._changed()

    def warn(self, text: str) -> None:
        if text and text not in self.warnings and self._note(self.warnings, text[:MAX_NOTE_CHARS]):
            self._emit(WarningEvent(text=text[:MAX_NOTE_CHARS]))

    def tell_deltas(self) -> None:
        """Text that was read together is told together: of 20,000 deltas in a burst a few hundred events are left."""
        if self._deltas:
            text = "".join(self._deltas)
            self._deltas.clear()
            self._events(TextDelta(item=self._delta_item, text=text))

    def _emit(self, event: Event) -> None:
        self.tell_deltas()
        self._events(event)

    # --- what it knows ----------------------------------------------------------------------------------------

    @property
    def usage(self) -> Usage | None:
        return self._usage.value

    @property
    def child_usage(self) -> Usage | None:
        return tokens.add_up([u.value for u in self._children.values() if u.value is not None])

    @property
    def tokens_spent(self) -> int:
        return sum(u.total_tokens for u in (self.usage, self.child_usage) if u is not None)

    @property
    def children_at_work(self) -> int:
        return len(self._busy_children)

    # --- the wire ---------------------------------------------------------------------------------------------

    def on_notification(self, method: str, params: Mapping[str, Any]) -> None:
        if self.thread is not None and params.get("threadId") == self.thread:
            if method.startswith(("item/", "turn/")) and params.get("turnId", self.turn) == self.turn:
                self.last_progress = self._clock()
        elif method.startswith(("item/", "turn/")):
            self.last_progress = self._clock()  # a sub-agent's work is this turn's work
        handler = self._handlers.get(method)
        if handler is not None:
            handler(params)

    def on_request(self, method: str, params: Mapping[str, Any]) -> Refusal:
        subject = subject_of(params)[:MAX_NOTE_CHARS]
        self._note(self.declined, {"method": method, "subject": subject})
        self._emit(DeclinedEvent(method=method, subject=subject))
        self._changed()
        return refusal_for(method)

    def _own(self, params: Mapping[str, Any]) -> bool:
        return self.turn is not None and params.get("threadId") == self.thread and params.get("turnId") == self.turn

    def _on_turn_started(self, params: Mapping[str, Any]) -> None:
        turn = text_of(mapping(params.get("turn")), "rootTurnId", "id")
        if params.get("threadId") != self.thread:
            if isinstance(child := params.get("threadId"), str):
                self._busy_children.add(child)
            return
        if self.turn is None and self.turn_asked and not self.reviews:
            self.turn_answered(turn)  # the answer to turn/start is late or lost
        # the reviewer has a turn of its own inside the one that was asked for; 0.145 doesn't say which is its root
        own = turn == self.turn or (self.reviews and self.turn is not None)
        if own and self.turn is not None and self.thread is not None and not self.started:
            self.started = True
            self._emit(BegunEvent(thread=self.thread, turn=self.turn))
            self._changed()

    def _on_turn_completed(self, params: Mapping[str, Any]) -> None:
        turn = mapping(params.get("turn"))
        if params.get("threadId") != self.thread:
            self._busy_children.discard(str(params.get("threadId")))
            return
        if self.turn is None or turn.get("id") != self.turn or self.completed is not None:
            return
        self.answer.summary(turn.get("items"))
        self.completed = turn
        self.completed_at = self._clock()
        error = mapping(turn.get("error"))
        if error:
            self.error = self._classify(error)
        self._changed()

    def _on_item_started(self, params: Mapping[str, Any]) -> None:
        if self._own(params):
            item = mapping(params.get("item"))
            self.answer.started(item)
            self._item(item, "started")

    def _on_item_completed(self, params: Mapping[str, Any]) -> None:
        if self._own(params):
            item = mapping(params.get("item"))
            self.answer.completed(item)
            self._item(item, "completed")
            self._changed()

    def _item(self, item: Mapping[str, Any], phase: Any) -> None:
        kind = text_of(item, "type") or "unknown"
        detail = {
            k: item[k] for k in ("phase", "delivery", "status", "exitCode", "durationMs") if item.get(k) is not None
        }
        text = text_of(item, "text", "command", "review", "query")
        self._emit(ItemEvent(item=str(item.get("id")), kind=kind, phase=phase, text=text, detail=detail))

    def _on_delta(self, params: Mapping[str, Any]) -> None:
        delta = params.get("delta")
        if self._own(params) and isinstance(delta, str):
            item = str(params.get("itemId"))
            self.answer.delta(item, delta)
            if item != self._delta_item:
                self.tell_deltas()
                self._delta_item = item
            self._deltas.append(delta)

    def _on_usage(self, params: Mapping[str, Any]) -> None:
        usage = mapping(params.get("tokenUsage"))
        total, last = tokens.from_wire(usage.get("total")), tokens.from_wire(usage.get("last"))
        thread = params.get("threadId")
        if total is None or not isinstance(thread, str):
            return
        if thread != self.thread:
            child = self._children.setdefault(thread, tokens.TurnUsage(fresh=False))
            child.observe(own=True, total=total, last=last)
        else:
            own = self._own(params)
            self._usage.observe(own=own, total=total, last=last)
            if own and (value := self._usage.value) is not None:
                self.last_progress = self._clock()
                self._emit(UsageEvent(usage=value))
        self._changed()

    def _on_thread_status(self, params: Mapping[str, Any]) -> None:
        status = mapping(params.get("status")).get("type")
        if params.get("threadId") == self.thread and self.turn is not None:
            self.idle_at = self._clock() if status in ("idle", "systemError") else None
            self._changed()

    def _on_error(self, params: Mapping[str, Any]) -> None:
        if params.get("threadId") not in (None, self.thread) or params.get("turnId") not in (None, self.turn):
            return
        error = mapping(params.get("error"))
        if params.get("willRetry") is True:
            text = text_of(error, "message") or "retrying"
            details = text_of(error, "additionalDetails")
            self._emit(StatusEvent(state="retry", text=f"Codex: {text}{f' ({details})' if details else ''}"))
            return
        self.error = self._classify(error)
        self.error_at = self._clock()
        self._changed()

    def _classify(self, error: Mapping[str, Any]) -> TurnError:
        return classify(
            error.get("codexErrorInfo"),
            text_of(error, "message"),
            details=text_of(error, "additionalDetails"),
            retry_at=self._retry_at,
        )

    def _breached(self, what: str) -> None:
        self.breach = self.breach or what
        self._changed()

    def _on_hook(self, params: Mapping[str, Any]) -> None:
        if self._no_hooks:
            run = mapping(params.get("run"))
            self._breached(f"a hook ({text_of(run, 'eventName', 'id') or 'unnamed'})")

    def _on_mcp_status(self, params: Mapping[str, Any]) -> None:
        name = text_of(params, "name") or "(unnamed)"
        status = params.get("status")
        if status in MCP_RUNNING:
            self._breached(f"MCP server {name!r}")
        else:
            why = text_of(params, "error", "failureReason")
            self.warn(f"MCP server {name} did not start: {why or status}")

    def _on_rate_limits(self, params: Mapping[str, Any]) -> None:
        limits = mapping(params.get("rateLimits"))
        windows = [mapping(limits.get(name)) for name in ("primary", "secondary")]
        resets = [(_number(w.get("usedPercent")), w["resetsAt"]) for w in windows if _number(w.get("resetsAt"))]
        if resets:
            self._retry_at = int(max(resets)[1])  # of the window that is used most

    def _on_warning(self, params: Mapping[str, Any]) -> None:
        parts = [text_of(params, "message", "summary"), text_of(params, "details")]
        self.warn(": ".join(p for p in parts if p))

    def _on_rerouted(self, params: Mapping[str, Any]) -> None:
        self.warn(f"Codex changed the model: {text_of(params, 'fromModel')} -> {text_of(params, 'toModel')}")

    def _note(self, notes: list[Any], note: Any) -> bool:
        if len(notes) >= MAX_NOTES:
            self.dropped_notes += 1
            return False
        notes.append(note)
        return True


def _number(value: Any) -> float:
    """0 for what is no number."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else 0
