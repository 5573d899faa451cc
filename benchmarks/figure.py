"""One figure of the table: what was measured, beside what, and what was promised.

Owns: medians and spread, the ratio, and the judgement of a budget. Does not own measuring, nor how a figure looks.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The median of some figures, and how far they lie apart; `quartiles` is the width of their middle half."""

    median: float
    low: float
    high: float
    quartiles: float
    count: int

    @classmethod
    def of(cls, figures: Sequence[float]) -> Spread:
        if len(figures) < 2:
            return cls(median=figures[0], low=figures[0], high=figures[0], quartiles=0.0, count=1)
        first, median, third = statistics.quantiles(figures, n=4, method="inclusive")
        return cls(median=median, low=min(figures), high=max(figures), quartiles=third - first, count=len(figures))


Of = Literal["ratio", "ours", "worst", "over"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """`of` says what must not be above: the ratio, our median, our worst, or our median less the other's."""

    at_most: float
    of: Of = "ours"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """`key` names it for good (part.what). `beside` is the peer or the floor, measured in the same minutes."""

    key: str
    what: str
    unit: str
    ours: Spread
    other: str = ""
    beside: Spread | None = None
    budget: Budget | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        if self.beside is None or self.beside.median == 0:
            return None
        return self.ours.median / self.beside.median

    @property
    def judged(self) -> float | None:
        """The number that the budget is about."""
        if self.budget is None:
            return None
        numbers: dict[Of, float | None] = {
            "ratio": self.ratio,
            "ours": self.ours.median,
            "worst": self.ours.high,
            "over": None if self.beside is None else self.ours.median - self.beside.median,
        }
        return numbers[self.budget.of]

    @property
    def met(self) -> bool | None:
        """None: nothing was promised."""
        judged = self.judged
        return None if judged is None or self.budget is None else judged <= self.budget.at_most

    def to_json(self) -> dict[str, Any]:
        return {**dataclasses.asdict(self), "ratio": self.ratio, "judged": self.judged, "met": self.met}


def figure(
    key: str,
    what: str,
    unit: str,
    ours: Sequence[float],
    other: str = "",
    beside: Sequence[float] | None = None,
    *,
    budget: Budget | None = None,
    note: str = "",
) -> Figure:
    """A figure of two lists of measurements."""
    return Figure(
        key=key,
        what=what,
        unit=unit,
        ours=Spread.of(ours),
        other=other,
        beside=Spread.of(beside) if beside else None,
        budget=budget,
        note=note,
    )
