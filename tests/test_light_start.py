"""What a start loads: nothing heavy where nothing heavy is done, and Codex is on its way before the event loop.

Serves rule.lightStart. By what is imported, not by the clock.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from turns import ANSWER, PATIENCE_S, User

from sidecar.cli import COMMANDS

pytestmark = pytest.mark.rule("rule.lightStart")

HEAVY = ("anyio", "asyncio", "jsonschema", "psutil", "platformdirs", "dataclasses", "inspect")
# What was loaded once before Codex was started, and isn't any more; each is 2 to 20 ms for which a turn waits.
NOT_BEFORE_CODEX = (*HEAVY, "ctypes", "datetime", "hashlib", "lzma", "pathlib", "random", "secrets", "shutil", "socket",
                    "tempfile", "tomllib", "tomli", "importlib.metadata", "logging", "uuid")  # fmt: skip
LOADED = f"""
import json, sys
from sidecar.cli import main
try:
    code = main(sys.argv[1:])
except SystemExit as end:
    code = end.code
print("\\n" + json.dumps([code, [name for name in {HEAVY!r} if name in sys.modules]]))
"""
# Says in stderr's order when the guard was started and when anyio began to be loaded.
ORDER = f"""
import sys
watched = [name for name in {NOT_BEFORE_CODEX!r} if name not in sys.modules]  # what a .pth file loads is not ours
import subprocess
order = []

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name in ("anyio", "asyncio", "jsonschema", "psutil"):
            order.append(name)
        return None

sys.meta_path.insert(0, Watch())
popen = subprocess.Popen

class Noted(popen):
    def __init__(self, argv, *rest, **more):
        if any("guard.py" in str(word) for word in argv):
            order.append("guard")
            order.extend("early:" + name for name in watched if name in sys.modules)
        super().__init__(argv, *rest, **more)

subprocess.Popen = Noted
from sidecar.cli import main
code = main(sys.argv[1:])
sys.stderr.write("\\norder: " + " ".join(order))
sys.exit(code)
"""


def python(user: User, program: str, *words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-c", program, *words]
    env = {**user.env, "LC_ALL": "C.UTF-8"}
    return subprocess.run(
        argv, env=env, cwd=user.work, capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL
    )


@pytest.mark.parametrize(
    "words",
    [["--help"], ["--version"], ["help"], [], ["status"], ["slots"], ["nonsense"], *([v, "--help"] for v in COMMANDS)],
    ids=" ".join,
)
def test_nothing_heavy_is_loaded_by(user: User, words: list[str]) -> None:
    ran = python(user, LOADED, *words)
    code, loaded = json.loads(ran.stdout.splitlines()[-1])
    assert loaded == []
    assert code == (2 if words in ([], ["nonsense"]) else 0), ran.stderr


def test_a_refusal_loads_nothing_heavy_either(user: User) -> None:
    ran = python(user, LOADED, "run", "--cwd", "gone", "go")
    assert json.loads(ran.stdout.splitlines()[-1]) == [2, []]


def test_codex_is_started_before_the_event_loop_is_loaded(user: User) -> None:
    user.plays(ANSWER)
    ran = python(user, ORDER, "run", "go")
    assert (ran.returncode, ran.stdout) == (0, "ANSWER"), ran.stderr
    order = ran.stderr.rpartition("order: ")[2].split()
    assert order[0] == "guard"
    assert "anyio" in order
    assert [word for word in order if word.startswith("early:")] == []


def test_the_end_takes_nothing_apart(user: User) -> None:
    program = "import atexit\nfrom sidecar.cli import entry\natexit.register(print, 'taken apart')\nentry()"
    ran = python(user, program, "--version")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("cc-agents ")
    assert "taken apart" not in ran.stdout


@pytest.mark.parametrize("words", [["--help"], ["status"], ["run", "--help"], ["doctor"]], ids=" ".join)
def test_a_stdout_that_takes_nothing_is_one_clear_line(user: User, words: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        argv = [sys.executable, "-m", "sidecar", *words]
        ran = subprocess.run(argv, env=user.env, cwd=user.work, stdout=full, stderr=subprocess.PIPE, timeout=PATIENCE_S)
    assert (ran.returncode, ran.stderr) == (1, b"cc-agents: [Errno 28] No space left on device\n")


@pytest.mark.parametrize("word", ["--help", "--version"])
def test_help_and_version_load_not_even_what_options_need(user: User, word: str) -> None:
    named = ("argparse", "dataclasses", "inspect", "json")
    program = f"import sys\nfrom sidecar.cli import main\nmain([{word!r}])\n"
    program += f"sys.stderr.write(' '.join(name for name in {named!r} if name in sys.modules))"
    ran = python(user, program)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "cc-agents" in ran.stdout
