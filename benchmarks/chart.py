"""The budgets as a picture: how much of each one was used, as SVG drawn by hand. Judges nothing."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from benchmarks.figure import Figure
from benchmarks.table import number

ROW, TOP, LABEL, SCALE, RIGHT = 24, 48, 500, 150, 130  # pixels; SCALE is one whole budget
MOST = 2.0  # a bar ends there, however far over its budget it is
MET, MISSED, INK, LINE = "#2e7d5b", "#c2452d", "#1f2328", "#8c959f"
STYLE = f"text{{font:13px system-ui,sans-serif;fill:{INK}}}.small{{font-size:11px;fill:{LINE}}}"


def as_svg(figures: Sequence[Figure], caption: str) -> str:
    """A row for each figure that has a budget; the line is the whole budget, left of it is met."""
    shown = [figure for figure in figures if figure.met is not None]
    width, height = LABEL + int(SCALE * MOST) + RIGHT, TOP + ROW * len(shown) + 16
    line = LABEL + SCALE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        f"<title>{escape(caption)}</title><style>{STYLE}</style>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        f'<text x="12" y="20">{escape(caption)}</text>',
        f'<text class="small" x="{line}" y="{TOP - 8}" text-anchor="middle">the whole budget</text>',
        *(part for at, figure in enumerate(shown) for part in row(figure, TOP + ROW * at)),
        f'<path d="M{line} {TOP - 4}V{height - 12}" stroke="{LINE}" stroke-dasharray="3 3"/>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def row(figure: Figure, top: int) -> list[str]:
    assert figure.budget is not None
    assert figure.judged is not None
    share = figure.judged / figure.budget.at_most
    length = max(1.0, SCALE * min(max(share, 0.0), MOST))
    colour, unit = MET if figure.met else MISSED, figure.unit if figure.budget.of != "ratio" else ""
    said = f"{number(figure.judged)} of {number(figure.budget.at_most)} {unit}".strip()
    middle = top + ROW - 8
    return [
        f'<text x="{LABEL - 8}" y="{middle}" text-anchor="end">{escape(figure.what)}</text>',
        f'<rect x="{LABEL}" y="{top + 4}" width="{length:.0f}" height="{ROW - 8}" fill="{colour}"/>',
        f'<text class="small" x="{LABEL + SCALE * MOST + 8:.0f}" y="{middle}">{escape(said)}</text>',
    ]
