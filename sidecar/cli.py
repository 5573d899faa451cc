"""The command line: which verbs there are, and what is said without one.

Owns their names. Does not own what a verb does (sidecar/commands) or how it is called (dispatch.py).
Serves rule.lightStart.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from adapters.version import VERSION
from sidecar.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_REFUSED

TYPE_CHECKING = False  # as typing has it, without loading it
if TYPE_CHECKING:
    from typing import NoReturn

COMMANDS = {
    "run": "run one turn and print Codex's answer",
    "check": "resolve and refuse as run does, start no turn",
    "follow-up": "go on with the thread of a job, in the same mode",
    "review": "let Codex review the uncommitted changes, or those against a base",
    "batch": "run many requests of a file through the slots; resumable",
    "serve": "run turns for another program: JSON-RPC 2.0, one object a line on stdio",
    "status": "the jobs, or all about one of them",
    "wait": "wait until jobs have ended",
    "result": "the answer of a job, exactly",
    "events": "what happened in a job, one JSON object a line",
    "steer": "say something to a running turn",
    "interrupt": "end a running turn",
    "slots": "who has the slots",
    "doctor": "look at the whole chain, and say what to do where it doesn't hold",
    "usage": "tokens by day, model, directory and thread",
    "reap": "end what dead turns have left",
    "models": "the models and efforts that Codex offers",
    "demo": "the whole main job with scripted answers, for a machine without Codex",
}


def entry() -> NoReturn:
    """The whole process: `main`, and then its end without taking the modules apart, which takes 20 ms after a turn."""
    try:
        code = main()
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    except SystemExit as end:  # argparse's, after --help or a word that it doesn't know
        code = end.code if isinstance(end.code, int) else EXIT_FAILED
    except OSError as error:  # a full disk, say: stdout's or that of our own folders
        code = _fault(error)
    try:
        sys.stdout.flush()
    except OSError as error:
        code = code or _fault(error)
    if threads := sys.modules.get("threading"):
        for thread in threads.enumerate():
            if not thread.daemon and thread is not threads.main_thread():
                thread.join()
    os._exit(code)


def _fault(error: OSError) -> int:
    if not isinstance(error, BrokenPipeError):  # whoever closed our stdout knows
        sys.stderr.write(f"cc-agents: {error}\n")
    return EXIT_FAILED


def main(argv: Sequence[str] | None = None) -> int:
    _fill_closed_streams()
    words = list(sys.argv[1:] if argv is None else argv)
    if words and words[0] in ("--version", "-V"):
        _print(f"cc-agents {VERSION}\n")
        return 0
    if not words or words[0] in ("--help", "-h", "help"):
        _print(usage())
        return 0 if words else EXIT_REFUSED
    from sidecar.dispatch import complain, dispatch  # argparse and all else that --help doesn't need

    verb = words[0]
    if verb not in COMMANDS:
        return complain(f"unknown command {verb!r}: one of {', '.join(COMMANDS)}")
    return dispatch(verb, COMMANDS[verb], words[1:])


def _fill_closed_streams() -> None:
    """A descriptor from 0 to 2 that came to us closed must not become a file of ours, which prints would go into."""
    for fd, flags in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):  # 1: an answer can't be written there
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, flags)  # the lowest free number
    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")


def usage() -> str:
    width = max(map(len, COMMANDS))
    verbs = "".join(f"  {name:<{width}}  {what}\n" for name, what in COMMANDS.items())
    return (
        "usage: cc-agents COMMAND [OPTION]...\n\n"
        "Runs a GPT model as an agent through your own Codex: one guarded app-server per turn.\n\n"
        f"{verbs}\n"
        "cc-agents COMMAND --help says more; --version says which this is.\n"
    )


def _print(text: str) -> None:
    sys.stdout.write(text)
