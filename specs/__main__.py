"""`python -m specs`: the table of rules, examples and tests, with the drawing.

Owns: the options and the exit codes: 0 fine, 1 `--check` found something, 2 a file could not be read.
Does not own: what is printed (specs/table.py, specs/drawing.py).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from specs.drawing import mermaid
from specs.marks import MarkError
from specs.model import SpecError
from specs.table import as_json, as_text, faults, load_table

ROOT = Path(__file__).resolve().parent.parent


def main(argv: Sequence[str], root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(prog="python -m specs", description="Rules, their examples and tests.")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--check", action="store_true", help="print what is wrong, and exit with 1 if anything is")
    form.add_argument("--json", action="store_true", help="the same table as one JSON object")
    options = parser.parse_args(argv)
    try:
        table = load_table(root)
    except (SpecError, MarkError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    if options.check:
        found = faults(table)
        sys.stdout.writelines(f"{line}\n" for line in found)
        return 1 if found else 0
    if options.json:
        sys.stdout.write(json.dumps(as_json(table) | {"mermaid": mermaid(table)}, indent=2, ensure_ascii=False))
        sys.stdout.write("\n")
    else:
        sys.stdout.write(f"{as_text(table)}\n```mermaid\n{mermaid(table)}```\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
