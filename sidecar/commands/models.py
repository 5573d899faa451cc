"""`cc-agents models`: the models and efforts that Codex offers here, as a table or as JSON."""

from __future__ import annotations

import argparse
import os
import sys

from adapters.contract import ModelInfo, Refused
from adapters.values import as_dict
from sidecar.begin import check
from sidecar.config import load_settings
from sidecar.records import dump
from sidecar.request import Flags, build


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cwd", metavar="DIR", help="the directory whose configuration counts (this one)")
    parser.add_argument("--json", action="store_true", help="print a list of objects")


def run(args: argparse.Namespace) -> int:
    from sidecar import inquiry  # with an event loop in it: not for --help

    request = build(Flags(prompt="models", cwd=args.cwd), load_settings(os.environ, {}), os.environ)
    adapter, resolved = check(request, os.environ)
    preview = inquiry.ask(adapter, resolved, request.limits, os.environ)
    if not preview.models and preview.problems:
        raise Refused(*preview.problems)
    listed = [m for m in preview.models if not m.hidden]
    if args.json:
        sys.stdout.buffer.write(dump([as_dict(m) for m in listed], indent=2))
    else:
        chosen = preview.effective.model
        sys.stdout.write(table(listed, chosen.value if chosen else None))
    return 0


def table(models: list[ModelInfo], chosen: str | None) -> str:
    """One line a model; * marks the one that a turn here would get, [effort] the model's default."""
    width = max((len(m.id) for m in models), default=0)
    lines = []
    for model in models:
        efforts = " ".join(f"[{e}]" if e == model.default_effort else e for e in model.efforts)
        lines.append(f"{'*' if model.id == chosen else ' '} {model.id:<{width}}  {efforts}\n")
    return "".join(lines) + "* what a turn here gets if nothing is said; [effort] is the model's default\n"
