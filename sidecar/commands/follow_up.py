"""`cc-agents follow-up JOB PROMPT`: the next turn on a job's thread, in the same mode unless told otherwise."""

from __future__ import annotations

import argparse
import os

from adapters.values import replace
from sidecar import paths
from sidecar.commands.run import add_run_arguments, told
from sidecar.config import Settings
from sidecar.intake import following
from sidecar.intake.turn_options import read_prompt, request_from
from sidecar.request import TurnRequest
from sidecar.store import JobView, Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", metavar="JOB PROMPT", nargs="*", help="a job or a thread, and the prompt (- is stdin)")
    parser.add_argument("--last", action="store_true", help="the last thread of this directory in the place of JOB")
    parser.add_argument("--prompt-file", metavar="F", help="read the prompt from a file")
    add_run_arguments(parser)


def run(args: argparse.Namespace) -> int:
    return told(args, lambda: _request(args))


def _request(args: argparse.Namespace) -> tuple[TurnRequest, Settings]:
    job, argument = _words(args.words, last=args.last)
    store = Store(paths.state_dir(os.environ))
    view: JobView | None  # None: a thread that no job of ours knows
    if job is None:
        view = following.last(store, args.cwd, os.environ)
        thread = view.thread
    else:
        thread, view = following.find(store, job)
    prompt = read_prompt(argument, args.prompt_file)
    if view is not None:
        following.take_over(args, view, prompt)
    request, settings = request_from(args, os.environ, prompt)
    request = replace(request, agent=replace(request.agent, thread=thread))
    return (following.same_model(request, args, view, prompt) if view is not None else request), settings


def _words(words: list[str], *, last: bool) -> tuple[str | None, str | None]:
    """The job and the prompt. Raises Refused."""
    most = 1 if last else 2
    if len(words) > most or (not last and not words):
        wanted = "the prompt" if last else "a job (or a thread) and the prompt"
        raise following.refused("bad_request", f"follow-up takes {wanted}, not {len(words)} words")
    job = None if last else words[0]
    rest = words if last else words[1:]
    return job, rest[0] if rest else None
