"""Containment of the whole command under random trials: shapes that a turn leaves, a death, and nothing may live.

Prints trials, survivors, slots still held and wrong exit codes; exits 1 on any. Plays the fake, or with --codex the
real one with a scripted model, in yolo. The controls take a part of the product out and have to find survivors.
Serves spec:cc-agents.work-containment.
"""

from __future__ import annotations

import argparse
import random
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from turns import ANSWER, PATIENCE_S, pids_in  # noqa: E402
from whole import (  # noqa: E402
    GONE_S,
    KILL,
    SHAPES,
    STOP,
    TESTS,
    Death,
    WholeUser,
    app_server_stopped,
    both_killed,
    by_signal,
    guard_killed,
    guard_stopped,
    kill,
    wait_for,
)

from fake_app_server import spawn  # noqa: E402
from tests_live.homes import PROVIDER, live_tmp  # noqa: E402
from tests_live.responses_api import ScriptedModel, run_command, say  # noqa: E402

BETWEEN_LOOKS_S = 0.15  # a death comes up to that long after the last process: before, at and after a look of the guard
STORM_S = 15.0  # for the end of a storm on a machine that does other things
Said = subprocess.Popen[bytes]


def end_itself(user: WholeUser, cli: Said) -> None:
    (user.root / "go").touch()


def app_server_killed(user: WholeUser, cli: Said) -> None:
    kill(user.app_server())


def killed_with_a_stopped_guard(user: WholeUser, cli: Said) -> None:
    kill(user.guard(), signum=STOP)
    kill(cli.pid)


class Kind(NamedTuple):
    death: Death
    code: int  # of the command
    reap: bool = False  # the rest is for the next command


DEATHS = {
    "itself": Kind(end_itself, 0),
    "app-server-killed": Kind(app_server_killed, 9),
    "int": Kind(by_signal(signal.SIGINT), 130),
    "term": Kind(by_signal(signal.SIGTERM), 143),
    "hup": Kind(by_signal(signal.SIGHUP), 129),
    "killed": Kind(by_signal(KILL), -9),
    "guard-killed": Kind(guard_killed, 9),
    "both-killed": Kind(both_killed, -9, reap=True),
    "guard-stopped": Kind(guard_stopped, 143),
    "app-server-stopped": Kind(app_server_stopped, 143),
    "stopped-and-killed": Kind(killed_with_a_stopped_guard, -9, reap=True),
}


# --- the two codexes ------------------------------------------------------------------------------------------


@contextmanager
def fake_user(shapes: list[str]) -> Iterator[WholeUser]:
    with tempfile.TemporaryDirectory() as name:
        user = WholeUser(Path(name).resolve())
        user.plays({"turn": [*user.leaves(*shapes), {"wait": {"file": str(user.root / "go")}}, *ANSWER[1:]]})
        yield user


def real_user(codex: str) -> Callable[[list[str]], object]:
    @contextmanager
    def made(shapes: list[str]) -> Iterator[WholeUser]:
        root = Path(tempfile.mkdtemp(prefix="s", dir=live_tmp()))
        try:
            user = WholeUser(root)
            (root / "pids").mkdir()
            with ScriptedModel([run_command(script(user, shapes)), say("ANSWER")], then="repeat") as model:
                text = PROVIDER.format(first="", extra="", base_url=model.base_url, request_retries=0, stream_retries=0)
                (user.codex_home / "config.toml").write_text(text)
                user.env.update(CC_AGENTS_CODEX_BIN=codex, MOCK_KEY="not-a-key", TMPDIR=str(root))
                yield user
        finally:
            shutil.rmtree(root, ignore_errors=True)

    return made


def script(user: WholeUser, shapes: list[str]) -> str:
    """The command that the model asks for: it leaves the shapes and waits for the word to end."""
    python = shlex.join([sys.executable, "-I", "-S", str(spawn.__file__)])
    lines = [f"{python} {s} 600 {user.pid_file(s)} 1 '' </dev/null >/dev/null 2>&1 &" for s in shapes]
    return "\n".join([*lines, f"while [ ! -e {user.root}/go ]; do sleep 0.05; done"])


# --- a trial --------------------------------------------------------------------------------------------------


class Found(NamedTuple):
    survivors: list[str]
    slots: int
    code: int
    took_s: float


def trial(user: WholeUser, shapes: list[str], kind: Kind, pause_s: float) -> Found:
    how = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    cli = user.start("run", "--mode", "yolo", "--grace", "0.5s", "--", "do it", **how)
    try:
        wait_for(lambda: all(pids_in(user.pid_file(s)) for s in shapes))
        time.sleep(pause_s)
        began = time.monotonic()
        kind.death(user, cli)
        code = cli.wait(PATIENCE_S)
        if kind.reap:
            user.run("reap")
        until = time.monotonic() + (STORM_S if "fork_storm" in shapes else GONE_S) * (code == -9)
        while ((left := user.survivors()) or user.slots_taken()) and time.monotonic() < until:
            time.sleep(0.002)
        took_s = time.monotonic() - began
        return Found(left, len(user.slots_taken()), code, took_s)
    finally:
        kill(cli.pid)
        cli.wait(PATIENCE_S)
        for words in user.survivors():
            kill(int(words.split()[0]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--shapes", nargs="+", choices=(*SHAPES, "fork_storm"), default=[*SHAPES, "fork_storm"])
    parser.add_argument("--deaths", nargs="+", choices=DEATHS, default=[*DEATHS])
    parser.add_argument("--codex", metavar="PATH", help="the real codex, with a scripted model")
    parser.add_argument("--no-subreaper", action="store_true", help="a control: survivors have to be found")
    parser.add_argument("--no-record", action="store_true", help="the other one: neither record nor marks")
    args = parser.parse_args()
    open_user = real_user(args.codex) if args.codex else fake_user
    taken_out = ["without_subreaper"] * args.no_subreaper + ["without_record"] * args.no_record
    dice, times, survivors, slots, wrong = random.Random(args.seed), defaultdict(list), 0, 0, 0
    for number in range(args.trials):
        shapes = dice.sample(args.shapes, k=min(len(args.shapes), dice.randint(1, 3)))
        death, pause_s = dice.choice(args.deaths), dice.uniform(0, BETWEEN_LOOKS_S)
        with open_user(shapes) as user:
            if taken_out:
                user.entry = (str(TESTS / "cli_entry.py"), ",".join(taken_out))
            found = trial(user, shapes, DEATHS[death], pause_s)
        times[death].append(found.took_s)
        survivors, slots = survivors + len(found.survivors), slots + found.slots
        bad = found.code != DEATHS[death].code
        wrong += bad
        if found.survivors or found.slots or bad:
            say_line(f"trial {number}: {death} of {' '.join(shapes)}: code {found.code}, slots {found.slots}")
            for line in found.survivors:
                say_line(f"    {line[:160]}")
    say_line(f"trials {args.trials}  seed {args.seed}  survivors {survivors}  slots {slots}  wrong codes {wrong}")
    for death, taken in sorted(times.items()):
        taken.sort()
        middle, worst = taken[len(taken) // 2] * 1e3, taken[-1] * 1e3
        say_line(f"{death:20} {len(taken):5}  median {middle:7.1f} ms  worst {worst:7.1f} ms")
    return 1 if survivors or slots or wrong else 0


def say_line(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
