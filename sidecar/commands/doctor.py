"""`cc-agents doctor`: looks at the whole chain that a turn needs, and says what to do where it doesn't hold."""

from __future__ import annotations

import argparse
import os
import sys

from adapters.contract import Finding
from adapters.values import as_dict
from sidecar.errors import EXIT_FAILED
from sidecar.records import dump
from sidecar.views.tables import plain

NAME_WIDTH = 13  # of the longest name but a reason of a refusal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cwd", metavar="DIR", help="the directory whose configuration counts (this one)")
    parser.add_argument("--json", action="store_true", help="print one object: ok, findings")


def run(args: argparse.Namespace) -> int:
    from sidecar import doctor  # with most of us in it: not for --help

    findings: list[Finding] = []
    for finding in doctor.examine(os.environ, args.cwd):
        findings.append(finding)
        if not args.json:
            sys.stdout.write(line(finding))
            sys.stdout.flush()
    failed = any(f.level == "failure" for f in findings)
    if args.json:
        sys.stdout.buffer.write(dump({"ok": not failed, "findings": [as_dict(f) for f in findings]}, indent=2))
    else:
        sys.stdout.write(f"\n{verdict(findings)}\n")
    return EXIT_FAILED if failed else 0


def verdict(findings: list[Finding]) -> str:
    """The last line: whether turns can be run here."""
    failures = [f for f in findings if f.level == "failure"]
    warned = sum(f.level == "warning" for f in findings)
    warnings = f" ({warned} warning{'s' if warned > 1 else ''}, see above)" if warned else ""
    if not failures:
        return f"Ready for turns{warnings}."
    return f"Not ready: {', '.join(dict.fromkeys(f.name for f in failures))}{warnings}."


def line(finding: Finding) -> str:
    todo = f"  -> {plain(finding.todo)}" if finding.todo else ""
    return f"{finding.level:<7}  {finding.name:<{NAME_WIDTH}}  {plain(finding.text)}{todo}\n"
