"""The usage report as one HTML file: a chart, the tables, nothing from the network.

Owns the page. Does not own the sums (usage_report.py). Standard library only. Serves rule.usageTold.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from html import escape

from sidecar.views.usage_report import BY, Entry, Prices, Sum, sums, total

TITLES = {"day": "By day", "model": "By model", "directory": "By directory", "thread": "By thread"}
PARTS = (("fresh", "input, not cached"), ("cached", "input from the cache"), ("output", "output"))
WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 920, 300, 76, 34, 14
MOST_BARS = 60  # days in the chart; the table has them all
TICKS = 4

STYLE = """
:root { color-scheme: light dark; --ink: #1d2433; --soft: #5d6679; --line: #d9dee8; --paper: #ffffff;
  --fresh: #2f6fde; --cached: #9dc1f7; --output: #e08a2b; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9f0; --soft: #9aa4b8; --line: #323a4a; --paper: #151a23;
  --fresh: #5b93f0; --cached: #345a94; --output: #eea14f; } }
body { margin: 2rem auto; max-width: 60rem; padding: 0 1rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem }
p { color: var(--soft); margin: .3rem 0 1rem }
svg { width: 100%; height: auto } svg text { fill: var(--soft); font-size: 12px }
.fresh { fill: var(--fresh) } .cached { fill: var(--cached) } .output { fill: var(--output) }
.grid { stroke: var(--line) }
.key { display: inline-block; width: .8em; height: .8em; border-radius: 2px; margin: 0 .4em 0 1.2em }
.key.fresh { background: var(--fresh) } .key.cached { background: var(--cached) }
.key.output { background: var(--output) }
.wide { overflow-x: auto } table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th, td { text-align: right; padding: .25rem .6rem; border-bottom: 1px solid var(--line); white-space: nowrap }
th { color: var(--soft); font-weight: 600 }
th:first-child, td:first-child { text-align: left; white-space: normal; overflow-wrap: anywhere }
tfoot td { font-weight: 600 }
"""


def page(found: Sequence[Entry], prices: Prices) -> str:
    everything = total(found, prices)
    days = sums(found, "day", prices)
    written = time.strftime("%Y-%m-%d %H:%M")
    body = [
        "<h1>cc-agents: what was used</h1>",
        f"<p>{everything.turns:,} turns, written {written}. Cached input is a part of input.</p>",
        _chart(days[-MOST_BARS:]) if days else "<p>No turn was started yet.</p>",
    ]
    for by in BY:
        body += [f"<h2>{TITLES[by]}</h2>", _table(sums(found, by, prices), everything, with_cost=bool(prices))]
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>cc-agents usage</title>\n<style>{STYLE}</style>\n<body>\n" + "\n".join(body) + "\n</body>\n</html>\n"
    )


# --- the chart ------------------------------------------------------------------------------------------------


def parts_of(day: Sum) -> tuple[int, int, int]:
    cached = min(day.cached_input_tokens, day.input_tokens)
    return day.input_tokens - cached, cached, day.output_tokens


def _chart(days: Sequence[Sum]) -> str:
    top = ceiling(max(day.total_tokens for day in days))
    room = HEIGHT - BOTTOM - TOP
    step = (WIDTH - LEFT) / len(days)
    thick = min(step * 0.7, 56.0)
    marks = [_tick(top * n // TICKS, top, room) for n in range(TICKS + 1)]
    every = -(-len(days) // 12)  # a label for at most twelve days
    for n, day in enumerate(days):
        left = LEFT + step * n + (step - thick) / 2
        marks.append(_bar(day, left, thick, top, room))
        if n % every == 0:
            marks.append(
                f'<text x="{left + thick / 2:.1f}" y="{HEIGHT - 12}" text-anchor="middle">{escape(day.key[5:])}</text>'
            )
    keys = "".join(f'<span class="key {name}"></span>{what}' for name, what in PARTS)
    svg = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="Tokens by day">{"".join(marks)}</svg>'
    return f"<h2>Tokens by day</h2>\n<p>{keys}</p>\n{svg}"


def _tick(value: int, top: int, room: int) -> str:
    y = TOP + room * (1 - value / top)
    line = f'<line class="grid" x1="{LEFT}" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>'
    return f'{line}<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{short(value)}</text>'


def _bar(day: Sum, left: float, thick: float, top: int, room: int) -> str:
    said = f"{day.key}: {day.input_tokens:,} in ({day.cached_input_tokens:,} cached), {day.output_tokens:,} out"
    pieces, y = [f"<title>{escape(said)}</title>"], float(TOP + room)
    for (name, _), tokens in zip(PARTS, parts_of(day), strict=True):
        high = room * tokens / top
        y -= high
        pieces.append(f'<rect class="{name}" x="{left:.1f}" y="{y:.2f}" width="{thick:.1f}" height="{high:.2f}"/>')
    return f"<g>{''.join(pieces)}</g>"


def ceiling(value: int) -> int:
    """The next round number: 1, 2, 4, 6 or 8 and zeros, and at least 4, so that a quarter of it is whole."""
    size = 1
    while size * 10 <= value:
        size *= 10
    return max(4, next(n * size for n in (1, 2, 4, 6, 8, 10) if n * size >= value))


def short(value: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.0f}"


# --- the tables -----------------------------------------------------------------------------------------------


def _table(rows: Sequence[Sum], everything: Sum, *, with_cost: bool) -> str:
    names = [
        "",
        "turns",
        "unknown",
        "input",
        "cached",
        "output",
        "total",
        "sub-agents",
        *(["cost"] if with_cost else []),
    ]
    head = "".join(f"<th>{name}</th>" for name in names)
    lines = "\n".join(f"<tr>{_cells(row, with_cost)}</tr>" for row in rows)
    foot = f"<tfoot><tr>{_cells(everything, with_cost)}</tr></tfoot>"
    return (
        f'<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{lines}\n</tbody>\n{foot}\n</table></div>'
    )


def _cells(row: Sum, with_cost: bool) -> str:
    numbers = [row.turns, row.unknown, row.input_tokens, row.cached_input_tokens, row.output_tokens, row.total_tokens]
    cells = [escape(row.key), *(f"{n:,}" for n in numbers), f"{row.child_tokens:,}"]
    if with_cost:
        cells.append(money(row))
    return "".join(f"<td>{cell}</td>" for cell in cells)


def money(row: Sum) -> str:
    """The cost of the turns that have a price; ≥ where some have none, or sub-agents took part."""
    if not row.priced:
        return "-"
    return f"{'≥ ' if row.priced < row.turns or row.child_tokens else ''}{row.cost:,.2f}"
