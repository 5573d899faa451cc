"""From a verb to its exit code: its module, its options, and the one place where refusals become text.

Owns loading sidecar/commands/<verb>.py by name, and the form of a refusal. Does not own what else ends a process
(cli.entry). Serves rule.lightStart, rule.exitCodes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from adapters.contract import Refused
from sidecar.errors import EXIT_REFUSED, UserError
from sidecar.views.terminal import columns


def dispatch(verb: str, description: str, words: Sequence[str]) -> int:
    """The exit code of `cc-agents <verb> <words>`; ends the process for --help and for options that don't parse."""
    command = import_module(f"sidecar.commands.{verb.replace('-', '_')}")
    parser = Parser(prog=f"cc-agents {verb}", description=description)
    command.add_arguments(parser)
    try:
        return int(command.run(parser.parse_args(words)))
    except Refused as refused:
        return complain(*(p.message for p in refused.problems))
    except UserError as error:
        return complain(*error.message.splitlines())


class _Formatter(argparse.HelpFormatter):
    """argparse makes one for each option, to try its metavar; without a width each asks shutil for it."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=columns(1) - 2)


class Parser(argparse.ArgumentParser):
    """argparse with one clear line for bad input, like every other refusal."""

    def __init__(self, *, prog: str, description: str) -> None:
        super().__init__(prog=prog, description=description, allow_abbrev=False, formatter_class=_Formatter)

    def error(self, message: str) -> None:  # type: ignore[override]  # it ends the process, as argparse's does
        sys.exit(complain(f"{message} (see {self.prog} --help)"))


def complain(*lines: str) -> int:
    """Each problem on a line of stderr; the exit code of a refusal."""
    sys.stderr.write("".join(f"cc-agents: {line}\n" for line in lines))
    return EXIT_REFUSED
