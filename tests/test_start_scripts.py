"""The start scripts on a small checkout of their own, with no packages to install: no network is needed.

What they install is left to pip; here is what is theirs: made once, mended, started as the user stands.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.rule("rule.twoCommands")

CHECKOUT = Path(__file__).resolve().parent.parent
PROJECT = '[project]\nname = "cc-agents"\ndependencies = []\n[project.optional-dependencies]\ntest = []\n'
SIDECAR = """
import json, os, sys
json.dump({"args": sys.argv[1:], "cwd": os.getcwd(), "path": sys.path, "env": dict(os.environ)}, sys.stdout)
"""
MAKE_S = 120.0  # a virtual environment with pip takes 5 s on a free core


class Checkout:
    """A checkout with our scripts, and a sidecar that tells how it was started."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.first_ends: list[tuple[str, str, int]] = []
        self.user_dir = root.parent / "somewhere else"
        self.user_dir.mkdir()
        shutil.copytree(CHECKOUT / "bin", root / "bin")
        (root / "sidecar").mkdir()
        (root / "sidecar" / "__init__.py").touch()
        (root / "sidecar" / "__main__.py").write_text(SIDECAR)
        (root / "pyproject.toml").write_text(PROJECT)

    @property
    def venv(self) -> Path:
        return self.root / ".venv"

    def begin(self, *args: str, script: Path | None = None, **env: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(script or self.root / "bin" / "cc-agents"), *args],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.user_dir,
            env={"PATH": os.environ["PATH"], "CC_AGENTS_PYTHON": sys.executable, **env},
        )

    def start(self, *args: str, script: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
        with self.begin(*args, script=script, **env) as running:
            out, err = running.communicate(timeout=MAKE_S)
        return subprocess.CompletedProcess(args, running.returncode, out, err)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """One checkout for the file, its environment made by three first starts at once."""
    made = Checkout(tmp_path_factory.mktemp("start") / "check out")
    starts = [made.begin(str(number)) for number in range(3)]
    for running in starts:
        out, err = running.communicate(timeout=MAKE_S)
        made.first_ends.append((out, err, running.returncode))
    return made


def test_first_starts_at_once_make_one_environment_and_all_run(checkout: Checkout) -> None:
    ends = checkout.first_ends
    assert [code for _, _, code in ends] == [0, 0, 0], ends
    assert [json.loads(out)["args"] for out, _, _ in ends] == [["0"], ["1"], ["2"]]
    assert sum("preparing" in err for _, err, _ in ends) == 1


def test_a_later_start_says_nothing_and_makes_nothing(checkout: Checkout) -> None:
    maker = checkout.root / "bin" / ".venv.py"
    source = maker.read_text()
    maker.write_text("raise SystemExit('the maker was started')")
    try:
        ended = checkout.start("a", "b c", "")
    finally:
        maker.write_text(source)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert json.loads(ended.stdout)["args"] == ["a", "b c", ""]


def test_it_runs_where_the_user_stands_and_hands_on_no_python_variable(checkout: Checkout) -> None:
    told = json.loads(checkout.start().stdout)
    assert told["cwd"] == str(checkout.user_dir)
    assert str(checkout.root) in told["path"]
    assert [name for name in told["env"] if name.startswith("PYTHON")] == []


def test_it_imports_nothing_from_the_working_directory_or_pythonpath(checkout: Checkout) -> None:
    for folder in (checkout.user_dir, checkout.user_dir / "path"):
        (folder / "sidecar").mkdir(parents=True)
        (folder / "sidecar" / "__init__.py").write_text("raise SystemExit('the wrong sidecar')")
    (checkout.user_dir / "json.py").write_text("raise SystemExit('the wrong json')")
    ended = checkout.start("x", PYTHONPATH=str(checkout.user_dir / "path"))
    assert (ended.returncode, ended.stderr) == (0, "")
    assert json.loads(ended.stdout)["args"] == ["x"]


def test_it_finds_its_checkout_through_symbolic_links(checkout: Checkout) -> None:
    folder = checkout.root.parent / "links"
    folder.mkdir()
    (folder / "relative").symlink_to(Path("..", checkout.root.name, "bin", "cc-agents"))
    (folder / "cc-agents").symlink_to(folder / "relative")
    ended = checkout.start("through", script=folder / "cc-agents")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert json.loads(ended.stdout)["args"] == ["through"]


def test_a_changed_list_of_packages_is_installed_at_the_next_start(checkout: Checkout) -> None:
    with (checkout.root / "pyproject.toml").open("a") as project:
        project.write("# another version\n")
    first, second = checkout.start(), checkout.start()
    assert (first.returncode, "preparing" in first.stderr) == (0, True)
    assert (second.returncode, second.stderr) == (0, "")


def test_a_half_made_environment_is_made_anew(checkout: Checkout) -> None:
    (checkout.venv / "made" / "for").unlink()
    (checkout.venv / "pyvenv.cfg").unlink()
    (checkout.venv / "bin" / "python").unlink()
    ended = checkout.start("again")
    assert (ended.returncode, "preparing" in ended.stderr) == (0, True)
    assert json.loads(ended.stdout)["args"] == ["again"]


def test_without_a_python_it_says_so_in_one_line(checkout: Checkout, tmp_path: Path) -> None:
    named = str(tmp_path / "python9")
    ended = checkout.start(CC_AGENTS_PYTHON=named, CC_AGENTS_VENV=str(tmp_path / "venv"))
    assert (ended.returncode, ended.stdout) == (2, "")
    assert len(ended.stderr.splitlines()) == 1
    assert "Python 3.10 or newer" in ended.stderr
    assert named in ended.stderr


def test_a_folder_of_something_else_is_left_alone(checkout: Checkout, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("keep me")
    ended = checkout.start(CC_AGENTS_VENV=str(tmp_path))
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "something else" in ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]
