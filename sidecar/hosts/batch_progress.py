"""The display of a batch on stderr: one line that is rewritten on a terminal, else a line for each end.

Owns: the words and the estimate. Does not own: when something ends (batch.py). Serves rule.batch.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from adapters.contract import Event, UsageEvent
from sidecar.views.tables import plain, span
from sidecar.views.terminal import columns

STDERR = 2
CLEAR = "\r\x1b[K"
REDRAW_S = 0.1  # at most: two hundred turns have many events
BAR = 20


class Progress:
    def __init__(self, environ: Mapping[str, str], *, quiet: bool) -> None:
        self._quiet = quiet
        self._terminal = os.isatty(STDERR) and environ.get("TERM") != "dumb"
        self._all = 0
        self._done: Counter[str] = Counter()
        self._used: dict[str, int] = {}
        self._running: set[str] = set()
        self._began = self._drawn_at = time.monotonic()
        self._run_here = 0

    def begin(self, lines: int) -> None:
        self._all = lines
        self._draw()

    def started(self, job: str) -> None:
        self._running.add(job)
        self._draw()

    def event(self, job: str, event: Event) -> None:
        if isinstance(event, UsageEvent):
            self._used[job] = event.usage.input_tokens + event.usage.output_tokens
            if time.monotonic() - self._drawn_at >= REDRAW_S:
                self._draw()

    def ended(self, number: int, label: str | None, told: Mapping[str, Any]) -> None:
        job = str(told.get("job"))
        if job in self._running:
            self._running.discard(job)
            self._run_here += 1
        if usage := told.get("usage"):
            self._used[job] = usage["input_tokens"] + usage["output_tokens"]
        self._done[word(told)] += 1
        if told["status"] != "completed" or not self._terminal:
            name = f"line {number}" + (f" ({plain(label)})" if label else "")
            why = plain((told.get("error") or {}).get("message") or "")
            self._line(f"{name}: {word(told)}{f': {why}' if why else ''}")
        self._draw()

    def finish(self) -> None:
        if self._terminal and not self._quiet:
            sys.stderr.write(CLEAR)
        if not self._quiet:
            sys.stderr.write(f"cc-agents: {self.summary()}\n")
            sys.stderr.flush()

    def summary(self) -> str:
        """`12 of 40 done (1 failed: quota), 3 running, 1,234 tokens, about 5m left`."""
        bad = ", ".join(f"{n} {what}" for what, n in sorted(self._done.items()) if what != "completed")
        done = sum(self._done.values())
        parts = [f"{done} of {self._all} done{f' ({bad})' if bad else ''}"]
        if self._running:
            parts.append(f"{len(self._running)} running")
        parts.append(f"{sum(self._used.values()):,} tokens")
        left = self._all - done
        if left and self._run_here:
            parts.append(f"about {span((time.monotonic() - self._began) / self._run_here * left)} left")
        return ", ".join(parts)

    def _draw(self) -> None:
        if not self._terminal or self._quiet:
            return
        self._drawn_at = time.monotonic()
        full = round(BAR * sum(self._done.values()) / self._all) if self._all else BAR
        text = f"[{'#' * full}{'.' * (BAR - full)}] {self.summary()}"
        sys.stderr.write(CLEAR + text[: max(20, columns(2) - 1)])
        sys.stderr.flush()

    def _line(self, text: str) -> None:
        if not self._quiet:
            sys.stderr.write(f"{CLEAR if self._terminal else ''}cc-agents: {text}\n")
            sys.stderr.flush()


def word(told: Mapping[str, Any]) -> str:
    """completed, interrupted, refused, or failed with its kind."""
    if told["status"] != "failed":
        return str(told["status"])
    error = told.get("error") or {}
    return f"failed: {error.get('kind') if error.get('kind') != 'other' else error.get('reason')}"
