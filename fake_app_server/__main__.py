"""`python -m fake_app_server [SCENARIO.json] [ARGUMENTS]`: finds the scenario, writes the first log line, plays.

Owns: argv, the two environment variables, exit code 64. Does not own: everything after that (server).
Serves spec:cc-agents.fakes.
"""

from __future__ import annotations

import os
import sys

from fake_app_server.scenario import Scenario, ScenarioError, load
from fake_app_server.wire import Log

SCENARIO_VARIABLE = "FAKE_APP_SERVER_SCENARIO"
LOG_VARIABLE = "FAKE_APP_SERVER_LOG"
BAD_SCENARIO = 64


def main(argv: list[str], scenario: str | None = None, log: str | None = None) -> None:
    """Never returns but for --version. `scenario` and `log` are what a shim has fixed; else the environment says."""
    if scenario is None and argv and os.path.isfile(argv[0]):
        scenario, argv = argv[0], argv[1:]
    scenario = scenario or os.environ.get(SCENARIO_VARIABLE)
    try:
        play = load(scenario) if scenario else Scenario({})
    except ScenarioError as error:
        sys.stderr.write(f"fake_app_server: {error}\n")
        sys.exit(BAD_SCENARIO)
    journal = Log(log or os.environ.get(LOG_VARIABLE))
    first = {
        "argv": argv,
        "cwd": os.getcwd(),
        "env": dict(os.environ),
        "pid": os.getpid(),
        "pgid": os.getpgid(0),
    }
    journal.write(start=first)
    if "--version" in argv:
        sys.stdout.write(f"codex-cli {play.version}\n")
        return
    from fake_app_server.server import start

    start(play, argv, journal)


if __name__ == "__main__":
    main(sys.argv[1:])
