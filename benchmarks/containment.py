"""Containment under random trials: a shape of process, a death, and then nothing may live.

Prints trials, survivors and the time from the death to the end of the last process; exits 1 if anything survived.
`--shapes crowd --deaths lifeline` is the promise of 100 descendants in 250 ms. Serves spec:cc-agents.work-containment.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from guarded import CONTROL, GUARD, SHAPES, Guarded, argv_of  # noqa: E402

from sidecar.leftovers import orphans  # noqa: E402

GRACE_S = 0.1  # of SIGTERM: short, so that a deaf process costs a trial little
SIZES = {"crowd": 100}  # processes that a shape makes; else one
ENDS_ON_ITS_OWN_S = 15.0  # past it a trial is given up, and what lives is a survivor


def guard_ends(act: Callable[[Guarded], None]) -> Callable[[Guarded], None]:
    def death(guarded: Guarded) -> None:
        act(guarded)
        guarded.process.wait(ENDS_ON_ITS_OWN_S)

    return death


def guard_killed(guarded: Guarded) -> None:
    """As the sidecar does when its guard is gone without a last word."""
    record = orphans.read_record(str(guarded.record_path))
    guarded.process.kill()
    guarded.process.wait()
    orphans.end_survivors(record, guarded.turn, grace_s=GRACE_S)


def both_killed(guarded: Guarded) -> None:
    """As the next cc-agents does when sidecar and guard are gone."""
    guarded.let_go()
    guard_killed(guarded)


DEATHS: dict[str, Callable[[Guarded], None]] = {
    "exit": guard_ends(lambda guarded: guarded.end_app_server()),
    "lifeline": guard_ends(lambda guarded: guarded.let_go()),
    "term": guard_ends(lambda guarded: guarded.process.terminate()),
    "guard-killed": guard_killed,
    "both-killed": both_killed,
}


def trial(shapes: list[str], death: str, guard: Path) -> tuple[float, int]:
    """Seconds from the death to the end of the last process, and how many outlived it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Guarded(folder, argv_of(folder, *shapes), grace_s=GRACE_S, guard=guard) as guarded:
            guarded.wait_for(1 + sum(SIZES.get(shape, 1) for shape in shapes))
            began = time.monotonic()
            DEATHS[death](guarded)
            took_s = time.monotonic() - began
            return took_s, len(guarded.survivors())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--shapes", nargs="+", choices=(*SHAPES, "crowd"), default=SHAPES)
    parser.add_argument("--deaths", nargs="+", choices=DEATHS, default=[*DEATHS])
    parser.add_argument("--no-subreaper", action="store_true", help="the control: survivors have to be found")
    args = parser.parse_args()
    dice, survivors = random.Random(args.seed), 0
    times: dict[str, list[float]] = defaultdict(list)
    for _ in range(args.trials):
        shapes = dice.sample(args.shapes, k=min(len(args.shapes), dice.randint(1, 3)))
        death = dice.choice(args.deaths)
        took_s, left = trial(shapes, death, CONTROL if args.no_subreaper else GUARD)
        times[death].append(took_s)
        if left:
            survivors += left
            sys.stdout.write(f"{left} survived: {death} of {' '.join(shapes)}\n")
    sys.stdout.write(f"trials {args.trials}  seed {args.seed}  survivors {survivors}\n")
    for death, taken in sorted(times.items()):
        taken.sort()
        sys.stdout.write(
            f"{death:13} {len(taken):5}  median {taken[len(taken) // 2] * 1e3:6.1f} ms  "
            f"worst {taken[-1] * 1e3:6.1f} ms\n"
        )
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
