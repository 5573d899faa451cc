"""The options of a turn on the command line, for every verb that starts or resolves one.

Owns the flags' names and where the prompt comes from. Does not own what they mean (request.py, config.py).
Serves rule.promptByteForByte.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping

from adapters.contract import MODES, Problem, Refused, Review
from sidecar.config import Settings, load_settings
from sidecar.request import Flags, TurnRequest, build

OPTION_FLAGS = ("model", "effort", "timeout", "idle_timeout", "start_timeout", "grace")


def add_prompt_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("prompt", nargs="?", help="the prompt; - or nothing reads stdin")
    parser.add_argument("--prompt-file", metavar="F", help="read the prompt from a file")


def add_turn_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--mode", metavar="|".join(MODES), help="what the turn may do (read-only if nothing is said)")
    add("--model", metavar="M", help="a model of `cc-agents models`")
    add("--effort", metavar="E", help="a reasoning effort of that model")
    add("--cwd", metavar="DIR", help="the turn's working directory (this one)")
    add("--add-dir", metavar="DIR", action="append", default=[], help="also writable in write mode; repeatable")
    add("--network", action="store_true", help="allow the network in read-only and write")
    add("--output-schema", metavar="F", help="a JSON Schema for the final answer")
    add("--image", metavar="F", action="append", default=[], help="an image to send along; repeatable")
    add("--timeout", metavar="30m", help="end the turn after this time; none for no limit")
    add("--idle-timeout", metavar="15m", help="end the turn after this time without progress; none for no limit")
    add("--start-timeout", metavar="60s", help="how long each answer of Codex may take before the turn has started")
    add("--grace", metavar="5s", help="how long Codex may take to end what it was told to end or calls ended")
    add("--max-tokens", metavar="N", type=int, help="end the turn when it has used more tokens")
    add("--label", metavar="TEXT", help="a name for people to find the job by")


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--json", action="store_true", help="print one outcome object instead of the text")
    group.add_argument("--events", action="store_true", help="print one JSON event a line, the outcome last")
    parser.add_argument("--quiet", action="store_true", help="no status lines on stderr")
    parser.add_argument(
        "--attended", action="store_true", help="with --events: signs of life, and the turn ends when its reader goes"
    )


def request_from(
    args: argparse.Namespace, environ: Mapping[str, str], prompt: str | None = None, *, review: Review | None = None
) -> tuple[TurnRequest, Settings]:
    """Raises Refused or UserError with everything that is wrong with the options, or with the request.

    `prompt`: where it was read already.
    """
    settings = load_settings(environ, {name: getattr(args, name) for name in OPTION_FLAGS})
    flags = Flags(
        prompt=read_prompt(args.prompt, args.prompt_file) if prompt is None else prompt,
        mode=args.mode,
        model=args.model,
        effort=args.effort,
        cwd=args.cwd,
        add_dirs=tuple(args.add_dir),
        network=args.network,
        thread=getattr(args, "thread", None),
        output_schema=args.output_schema,
        images=tuple(args.image),
        review=review,
        max_tokens=args.max_tokens,
        label=args.label,
    )
    return build(flags, settings, environ), settings


def read_prompt(argument: str | None, file: str | None) -> str:
    """The prompt, byte for byte. Raises Refused when there is none, or when it isn't UTF-8."""
    if argument is not None and file is not None:
        raise _refused("the prompt is given twice: as an argument and with --prompt-file")
    if file is not None:
        return _decoded(_read_file(file), file)
    if argument is not None and argument != "-":
        return _decoded(os.fsencode(argument), "the argument")
    if argument is None and sys.stdin.isatty():
        raise _refused("no prompt: give it as an argument, with --prompt-file, or on stdin")
    return _decoded(sys.stdin.buffer.read(), "stdin")


def _read_file(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise _refused(f"--prompt-file {path}: {error.strerror}") from None


def _decoded(data: bytes, where: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise _refused(f"the prompt ({where}) is not UTF-8: byte {error.start} is {data[error.start]:#04x}") from None


def _refused(message: str) -> Refused:
    return Refused(Problem(reason="bad_request", message=message))
