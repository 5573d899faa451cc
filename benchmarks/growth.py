"""How a cost grows with a size: a straight line through the points, and how much the curve bends upwards.

Owns the arithmetic only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Point = tuple[float, float]  # size, cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """`each` is the cost of one more, `base` that of none at all."""

    each: float
    base: float


def fit(points: Sequence[Point]) -> Line:
    """Least squares. Raises ValueError when all points have one size."""
    count = len(points)
    mean_x, mean_y = sum(x for x, _ in points) / count, sum(y for _, y in points) / count
    across = sum((x - mean_x) ** 2 for x, _ in points)
    if across == 0:
        raise ValueError("a line needs two sizes")
    each = sum((x - mean_x) * (y - mean_y) for x, y in points) / across
    return Line(each=each, base=mean_y - each * mean_x)


def bend(points: Sequence[Point]) -> float:
    """The cost of one more in the last step, over that of one more in all steps before it.

    1 is a straight line; twice the size at four times the cost gives 2 or more. Needs three points, by size.
    """
    if len(points) < 3:
        raise ValueError("three sizes show whether a line bends")
    before, last = fit(points[:-1]).each, fit(points[-2:]).each
    return last / before
