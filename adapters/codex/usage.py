"""What a turn used, out of a thread's running totals.

Owns the arithmetic of thread/tokenUsage/updated. `total` grows over the thread's whole life and `last` is one
model request, so neither is the turn. Serves rule.exactFinal; facts: codex-facts section 7.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.contract import Usage

FIELDS = {
    "input_tokens": "inputTokens",
    "cached_input_tokens": "cachedInputTokens",
    "cache_write_input_tokens": "cacheWriteInputTokens",
    "output_tokens": "outputTokens",
    "reasoning_output_tokens": "reasoningOutputTokens",
    "total_tokens": "totalTokens",
}


def from_wire(tokens: Any) -> Usage | None:
    """Usage of a wire object, None where it is no object; a missing or broken field counts 0 (0.130 has fewer)."""
    if not isinstance(tokens, Mapping):
        return None
    values = {ours: tokens.get(theirs) for ours, theirs in FIELDS.items()}
    return Usage(**{k: v for k, v in values.items() if isinstance(v, int) and not isinstance(v, bool)})


def minus(a: Usage, b: Usage) -> Usage:
    return Usage(**{f: max(0, getattr(a, f) - getattr(b, f)) for f in FIELDS})


def plus(a: Usage, b: Usage) -> Usage:
    return Usage(**{f: getattr(a, f) + getattr(b, f) for f in FIELDS})


class TurnUsage:
    """The usage of one turn on one thread.

    The baseline is what the thread had used before: nothing for a new thread; else the total that Codex replays
    under an older turn id; else, when no replay came, the first own total less its own `last`.
    """

    def __init__(self, *, fresh: bool) -> None:
        self._baseline: Usage | None = Usage() if fresh else None
        self._fresh = fresh
        self._latest: Usage | None = None

    def observe(self, *, own: bool, total: Usage, last: Usage | None) -> None:
        if not own:
            if self._latest is None and not self._fresh:
                self._baseline = total
            return
        if self._baseline is None:
            self._baseline = minus(total, last or Usage())  # without `last` it is not known: not counted
        self._latest = total

    def disown(self) -> None:
        """What was counted so far was another turn's."""
        if self._latest is not None:
            self._baseline, self._latest = self._latest, None

    @property
    def value(self) -> Usage | None:
        """None when Codex gave none: never a made-up zero."""
        if self._latest is None:
            return None
        return minus(self._latest, self._baseline or Usage())


def add_up(usages: list[Usage]) -> Usage | None:
    """The sum, None of nothing."""
    if not usages:
        return None
    total = Usage()
    for usage in usages:
        total = plus(total, usage)
    return total
