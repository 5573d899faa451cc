"""The one table, as text and as Markdown. Owns how a figure is written; judges nothing."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.figure import Budget, Figure, Spread

HEAD = ("what", "ours", "the peer or the floor", "ratio", "budget", "met")


def as_text(figures: Sequence[Figure]) -> str:
    """Aligned columns; the notes below."""
    rows = [HEAD, *map(cells, figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join([*lines, *notes(figures)]) + "\n"


def as_markdown(figures: Sequence[Figure]) -> str:
    rows = [HEAD, ("---",) * len(HEAD), *map(cells, figures)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def notes(figures: Sequence[Figure]) -> list[str]:
    return ["", *(f"{figure.what}: {figure.note}" for figure in figures if figure.note)]


def cells(figure: Figure) -> tuple[str, ...]:
    other = f"{said(figure.beside, figure.unit)} {figure.other}" if figure.beside else figure.other
    ratio = "" if figure.ratio is None else f"{figure.ratio:.2f}"
    met = {None: "", True: "yes", False: "no"}[figure.met]
    worst = figure.budget is not None and figure.budget.of == "worst"
    ours = said(figure.ours, figure.unit, worst=worst)
    return figure.what, ours, other, ratio, promised(figure.budget, figure.unit), met


def said(spread: Spread, unit: str, *, worst: bool = False) -> str:
    """The median and half the width of the middle half: half of all runs lie about so far from it."""
    text = f"{number(spread.median)}"
    if spread.count > 1:
        text += f" ±{number(spread.quartiles / 2)}"
    if worst:
        text += f", worst {number(spread.high)}"
    return f"{text} {unit}".rstrip()


def promised(budget: Budget | None, unit: str) -> str:
    if budget is None:
        return ""
    if budget.of == "ratio":
        return f"ratio {budget.at_most:.2f}"
    before, after = {"ours": ("", ""), "worst": ("worst ", ""), "over": ("", " over it")}[budget.of]
    return f"{before}{number(budget.at_most)} {unit}{after}".strip()


def number(value: float) -> str:
    """Three figures or so: more would be noise."""
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
