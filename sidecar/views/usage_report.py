"""What the kept jobs have used, by day, model, directory or thread; and what it cost, where prices are configured.

Owns: the sums. No token is counted twice: cached input is a part of input, reasoning a part of output. A turn for
which Codex gave no usage is counted as unknown, never as 0. Does not own how it is shown. Serves rule.usageTold.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from adapters.values import Value, as_dict
from sidecar.leftovers import recover
from sidecar.store import JobView, Store

BY = ("day", "model", "directory", "thread")
FIELDS = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens")
MILLION = 1_000_000
UNKNOWN = "unknown"

Prices = Mapping[str, Mapping[str, float]]


class Entry(Value):
    """One turn. `own` is None where Codex gave no usage; `children` is its sub-agents' usage."""

    day: str
    model: str
    directory: str
    thread: str
    own: Mapping[str, int] | None
    children: Mapping[str, int] | None


class Sum(Value, frozen=False):
    """Tokens of some turns. `cost` is of those `priced`; sub-agents have no price, for their model isn't told."""

    key: str
    turns: int = 0
    unknown: int = 0
    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_output_tokens: int = 0
    child_tokens: int = 0
    priced: int = 0
    cost: float = 0.0

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def add(self, entry: Entry, prices: Prices) -> None:
        self.turns += 1
        if entry.children is not None:
            self.child_tokens += entry.children["input_tokens"] + entry.children["output_tokens"]
        if entry.own is None:
            self.unknown += 1
            return
        for name in FIELDS:
            setattr(self, name, getattr(self, name) + entry.own[name])
        if (price := prices.get(entry.model)) is not None:
            self.priced += 1
            self.cost += cost_of(entry.own, price)

    def to_json(self) -> dict[str, Any]:
        cost = round(self.cost, 6) if self.priced else None
        return {**as_dict(self), "total_tokens": self.total_tokens, "cost": cost}


def cost_of(used: Mapping[str, int], price: Mapping[str, float]) -> float:
    cached = min(used["cached_input_tokens"], used["input_tokens"])
    fresh = used["input_tokens"] - cached
    return (fresh * price["input"] + cached * price["cached_input"] + used["output_tokens"] * price["output"]) / MILLION


def entries(store: Store, since: float | None = None) -> list[Entry]:
    """Every turn that was started since then (Unix time), the oldest first."""
    found = []
    for view in store.list_jobs():
        started = view.record.get("started_at")
        if isinstance(started, int | float) and (since is None or started >= since):
            found.append(_entry(view, float(started)))
    return found[::-1]


def _entry(view: JobView, started: float) -> Entry:
    outcome = recover.outcome_of(view) or {}
    model = ((outcome.get("effective") or {}).get("model") or {}).get("value")
    own = outcome.get("usage") if outcome else recover.usage_of(view)
    return Entry(
        day=time.strftime("%Y-%m-%d", time.localtime(started)),
        model=model if isinstance(model, str) else UNKNOWN,
        directory=view.cwd or UNKNOWN,
        thread=view.thread or UNKNOWN,
        own=_numbers(own),
        children=_numbers(outcome.get("child_usage")),
    )


def _numbers(usage: Any) -> dict[str, int] | None:
    if not isinstance(usage, Mapping):
        return None
    return {name: value if isinstance(value := usage.get(name), int) else 0 for name in FIELDS}


def sums(found: Iterable[Entry], by: str, prices: Prices) -> list[Sum]:
    """One sum for each value of `by`: days in order, all else by what was used most."""
    groups: dict[str, Sum] = {}
    for entry in found:
        key = getattr(entry, by)
        groups.setdefault(key, Sum(key=key)).add(entry, prices)
    if by == "day":
        return [groups[key] for key in sorted(groups)]
    return sorted(groups.values(), key=lambda s: (-s.total_tokens, s.key))


def total(found: Iterable[Entry], prices: Prices) -> Sum:
    everything = Sum(key="total")
    for entry in found:
        everything.add(entry, prices)
    return everything
