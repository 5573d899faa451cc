"""`cc-agents usage`: tokens by day, model, directory and thread; a table, JSON, or a page of HTML."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence

from sidecar import files, paths
from sidecar.config import load_settings
from sidecar.errors import UserError
from sidecar.records import dump
from sidecar.store import Store
from sidecar.views.tables import columns, folder, plain
from sidecar.views.terminal import columns as width
from sidecar.views.usage_page import money, page
from sidecar.views.usage_report import BY, Entry, Prices, Sum, entries, sums, total

DAY_S = 86400.0
BAR = 24  # cells of the longest bar
FRACTIONS = " ▏▎▍▌▋▊▉"
LISTED = 15  # of what is not a day; --by shows all


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--by", choices=BY, help="one of the tables, whole")
    parser.add_argument("--days", metavar="N", type=int, help="only turns of the last N days")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one object: total and the four tables")
    form.add_argument("--html", metavar="FILE", help="write a page that needs no network")


def run(args: argparse.Namespace) -> int:
    if args.days is not None and args.days <= 0:
        raise UserError("bad_option", "--days must be more than 0")
    settings = load_settings(os.environ, {})
    since = None if args.days is None else time.time() - args.days * DAY_S
    found = entries(Store(paths.state_dir(os.environ)), since)
    prices = settings.prices.value
    if args.html:
        _write(args.html, page(found, prices))
    elif args.json:
        tables = {by: [s.to_json() for s in sums(found, by, prices)] for by in BY}
        note = f"of the jobs that are kept: {settings.keep_days.value} days, {settings.keep_count.value} jobs"
        sys.stdout.buffer.write(dump({"total": total(found, prices).to_json(), **tables, "note": note}, indent=2))
    else:
        shown = (args.by,) if args.by else BY
        sys.stdout.write("\n".join(_section(found, by, prices, whole=args.by is not None) for by in shown))
        sys.stdout.write(f"\n{_summary(total(found, prices), prices)}")
    return 0


def _write(path: str, text: str) -> None:
    try:
        files.write(path, text.encode("utf-8", "replace"))
    except OSError as error:
        raise UserError("bad_option", f"--html {path}: {error.strerror}") from None
    sys.stderr.write(f"cc-agents: {path} is written\n")


def _section(found: Sequence[Entry], by: str, prices: Prices, *, whole: bool) -> str:
    rows = sums(found, by, prices)
    listed = rows if whole or by == "day" else rows[:LISTED]
    most = max((r.total_tokens for r in rows), default=0)
    names = (by.upper(), "TURNS", "INPUT", "CACHED", "OUTPUT", "TOTAL", *(["COST"] if prices else []), "")
    table = [names, *(_row(r, by, prices, most) for r in listed)]
    more = f"and {len(rows) - len(listed)} more (--by {by})\n" if len(listed) < len(rows) else ""
    return columns(table, right=range(1, len(names) - 1)) + more


def _row(row: Sum, by: str, prices: Prices, most: int) -> tuple[str, ...]:
    name = folder(row.key, os.environ) if by == "directory" else plain(row.key)
    numbers = [row.turns, row.input_tokens, row.cached_input_tokens, row.output_tokens, row.total_tokens]
    cells = [name, *(f"{n:,}" for n in numbers), *([money(row)] if prices else [])]
    return (*cells, bar(row.total_tokens, most) if _drawn() else "")


def bar(value: int, most: int, cells: int = BAR) -> str:
    """A bar whose length says the share of the greatest, in eighths of a cell."""
    eighths = round(cells * 8 * value / most) if most else 0
    return "█" * (eighths // 8) + (FRACTIONS[eighths % 8] if eighths % 8 else "")


def _drawn() -> bool:
    """Bars on a terminal that is wide enough; in a pipe they would only be in the way."""
    return sys.stdout.isatty() and width(1) >= 100


def _summary(row: Sum, prices: Prices) -> str:
    cached = f" ({row.cached_input_tokens:,} cached)" if row.cached_input_tokens else ""
    parts = [
        f"{row.turns} turns: {row.total_tokens:,} tokens, {row.input_tokens:,} in{cached}, {row.output_tokens:,} out"
    ]
    if row.child_tokens:
        parts.append(f"sub-agents used {row.child_tokens:,} more")
    if row.unknown:
        parts.append(f"{row.unknown} turns told no usage")
    if prices:
        parts.append(f"cost {money(row)}")
    return "; ".join(parts) + "\n"
