"""Makes or mends the virtual environment of a checkout: `.venv.py VENV [EXTRA]`.

Owns: the lock, what is installed, and the record (VENV/made) by which a start script sees that nothing is to
be done. The record is written last: an environment without one was left half made, and is made anew.
Run with -I by any Python from 3.10; standard library only. `.venv.py --requirements EXTRA` prints a list.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROJECT = ROOT / "pyproject.toml"
FAILURE_LINES = 5  # pip's last lines say why

# Read by the Python of the environment: before 3.11 the only TOML reader at hand is the one inside pip.
READ_PROJECT = """
import json, sys
try:
    import tomllib
except ImportError:
    from pip._vendor import tomli as tomllib
json.dump(tomllib.load(sys.stdin.buffer)["project"], sys.stdout)
"""


def main(argv: list[str]) -> int:
    if argv[0] == "--requirements":
        sys.stdout.write("\n".join(requirements(sys.executable, argv[1])) + "\n")
        return 0
    target, extra = Path(os.path.abspath(argv[0])), argv[1] if argv[1:] else None
    try:
        prepare(target, extra)
    except OSError as error:
        return fail(target, error.strerror or str(error))
    except subprocess.CalledProcessError as error:
        said = [line.strip() for line in (error.stderr or "").splitlines() if line.strip()]
        return fail(target, " | ".join(said[-FAILURE_LINES:]) or f"exit code {error.returncode}")
    return 0


def fail(target: Path, why: str) -> int:
    tell(f"cannot make its Python environment in {target}: {why}")
    return 1


def tell(text: str) -> None:
    sys.stderr.write(f"cc-agents: {text}\n")
    sys.stderr.flush()


def prepare(target: Path, extra: str | None) -> None:
    made = target / "made"
    if target.is_dir() and any(target.iterdir()) and not made.is_dir():
        raise OSError(0, "there is something else in that folder")
    made.mkdir(parents=True, exist_ok=True)
    with (made / "lock").open("w") as lock:
        take(lock.fileno(), target)
        if not is_ready(target):
            make(target, extra)


def take(lock: int, target: Path) -> None:
    """The kernel frees this lock with its holder: one that was killed leaves nothing to mend."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        tell(f"another start is making {target}; waiting for it")
        fcntl.flock(lock, fcntl.LOCK_EX)


def is_ready(target: Path) -> bool:
    copy = target / "made" / "pyproject.toml"
    return is_usable(target) and copy.is_file() and copy.read_bytes() == PROJECT.read_bytes()


def is_usable(target: Path) -> bool:
    """It was once made to its end for this checkout and this Python, and it still starts."""
    record, python = target / "made" / "for", target / "bin" / "python"
    if not record.is_file() or not python.exists():
        return False
    root, asked = record.read_text(encoding="utf-8").splitlines()
    if root != str(ROOT) or os.environ.get("CC_AGENTS_PYTHON", asked) not in ("", asked):
        return False
    return subprocess.run([python, "-I", "-m", "pip", "-V"], capture_output=True, check=False).returncode == 0


def make(target: Path, extra: str | None) -> None:
    tell(f"preparing its Python environment in {target} (once)")
    project, python = PROJECT.read_bytes(), str(target / "bin" / "python")
    if not is_usable(target):
        clear(target)
        # By its real name: when `python3` becomes another version the link breaks, and is seen, not the imports.
        base = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
        run(base, "-I", "-m", "venv", str(target))
    if wanted := requirements(python, extra):
        run(python, "-I", "-m", "pip", "install", "--quiet", "--no-input", *wanted)
    packages = run(python, "-I", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    Path(packages, "cc_agents_checkout.pth").write_text(f"{ROOT}\n", encoding="utf-8")
    made = target / "made"
    (made / "pyproject.toml").write_bytes(project)
    (made / "new").write_text(f"{ROOT}\n{os.environ.get('CC_AGENTS_PYTHON', '')}\n", encoding="utf-8")
    (made / "new").replace(made / "for")


def clear(target: Path) -> None:
    """Everything but the folder `made`, which holds the lock and says that this environment is ours."""
    (target / "made" / "for").unlink(missing_ok=True)
    for child in target.iterdir():
        if child.is_dir() and not child.is_symlink():
            if child.name != "made":
                shutil.rmtree(child)
        else:
            child.unlink()


def requirements(python: str, extra: str | None) -> list[str]:
    """What pyproject.toml asks for; an extra that names another extra of ours includes it."""
    project = json.loads(run(python, "-I", "-c", READ_PROJECT, stdin=PROJECT.read_text(encoding="utf-8")))
    extras: dict[str, list[str]] = project.get("optional-dependencies", {})
    found: list[str] = list(project["dependencies"])
    asked = list(extras[extra]) if extra else []
    while asked:
        requirement = asked.pop(0)
        ours = re.fullmatch(rf"{re.escape(project['name'])}\[([\w,-]+)\]", requirement)
        if ours:
            asked += [inner for name in ours.group(1).split(",") for inner in extras[name]]
        else:
            found.append(requirement)
    return found


def run(*argv: str, stdin: str = "") -> str:
    return subprocess.run(argv, input=stdin, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
