"""Finds the cc-agents command that belongs to this plugin and becomes it: same process, same streams.

Owns: where it is looked for, the check of its version, `plugin-setup install`. Does not own: any turn.
Order: the option `cli`, the environment that setup made in the plugin's data folder, PATH. One that does not fit is
refused by name; nothing is searched for behind it. Standard library only, Python 3.8. Serves rule.cliFound.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
OPTION = "CLAUDE_PLUGIN_OPTION_CLI"
CODEX_OPTION = "CLAUDE_PLUGIN_OPTION_CODEX_BIN"
VERSION_S = 30.0  # `--version` takes 0.1 s; on a cold and loaded machine a start took 4 s
NOT_FOUND = 2  # the exit code of every refusal before a turn


class Unfit(Exception):
    """There is no command that could be used. The message says what to do."""


def version() -> str:
    with open(os.path.join(ROOT, ".claude-plugin", "plugin.json"), encoding="utf-8") as file:
        return str(json.load(file)["version"])


def series(text: str) -> list[str]:
    """The part of a version that must agree: events and options change only with it."""
    return text.split(".")[:2]


def data_folders(environ: Mapping[str, str]) -> list[str]:
    """The plugin's own data folder; in a shell, which is not told of it, each one that an install of it could have."""
    if environ.get("CLAUDE_PLUGIN_DATA"):
        return [environ["CLAUDE_PLUGIN_DATA"]]
    config = environ.get("CLAUDE_CONFIG_DIR") or os.path.join(os.path.expanduser("~"), ".claude")
    data = os.path.join(config, "plugins", "data")
    names = sorted(os.listdir(data)) if os.path.isdir(data) else []
    return [os.path.join(data, name) for name in names if name.startswith("cc-agents-")]


def made_by_setup(folder: str) -> str:
    return os.path.join(folder, "cli-" + version(), "bin", "cc-agents")


def on_path(environ: Mapping[str, str]) -> str | None:
    """The first cc-agents on PATH that isn't the plugin's own, which leads here."""
    own = os.path.join(ROOT, "bin", "cc-agents")
    for folder in environ.get("PATH", "").split(os.pathsep):
        found = shutil.which("cc-agents", path=folder) if os.path.isabs(folder) else None
        if found and os.path.realpath(found) != own:
            return found
    return None


def find(environ: Mapping[str, str]) -> str:
    """The path of the command. Raises Unfit."""
    named = environ.get(OPTION)
    if named:
        path = os.path.expanduser(named)
        if shutil.which(path) is None:
            raise Unfit(f"the plugin's option cli names {named}, which can't be run")
        return path
    made = [path for path in map(made_by_setup, data_folders(environ)) if os.access(path, os.X_OK)]
    found = made[0] if made else on_path(environ)
    if found is None:
        raise Unfit("the cc-agents command is not installed. Run /cc-agents:setup install, once")
    return found


def check(path: str) -> str:
    """What its version is. Raises Unfit when it isn't this plugin's."""
    try:
        said = subprocess.run(
            [path, "--version"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=VERSION_S, check=False
        ).stdout.decode(errors="replace")
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unfit(f"{path} does not start: {error}") from None
    found = re.fullmatch(r"cc-agents (\S+)", said.strip())
    if not found:
        raise Unfit(f"{path} is another program: it has no version of cc-agents")
    if series(found.group(1)) != series(version()):
        raise Unfit(
            f"the plugin is version {version()} and {path} is {found.group(1)}: "
            "run /cc-agents:setup install for one that fits, or update the plugin"
        )
    return found.group(1)


# --- setup --------------------------------------------------------------------------------------------------


def checkouts(environ: Mapping[str, str]) -> list[str]:
    """Where the source may lie: around the plugin, or in the copies that Claude Code keeps of marketplaces."""
    config = environ.get("CLAUDE_CONFIG_DIR") or os.path.join(os.path.expanduser("~"), ".claude")
    copies = os.path.join(config, "plugins", "marketplaces")
    names = sorted(os.listdir(copies)) if os.path.isdir(copies) else []
    return [os.path.dirname(ROOT), *(os.path.join(copies, name) for name in names)]


def is_checkout(folder: str) -> bool:
    """Only our own source is ever installed, never a name from an index."""
    try:
        with open(os.path.join(folder, "pyproject.toml"), encoding="utf-8") as file:
            return re.search(r'^name = "cc-agents"$', file.read(), re.MULTILINE) is not None
    except OSError:
        return False


def pythons() -> list[str]:
    return [p for n in ("3.13", "3.12", "3.11", "3.10", "3") for p in [shutil.which("python" + n)] if p]


def fits(python: str) -> bool:
    question = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))"
    null = subprocess.DEVNULL
    asked = subprocess.run([python, "-I", "-c", question], stdin=null, stderr=null, check=False)
    return asked.returncode == 0


def install(environ: Mapping[str, str], source: str | None = None) -> str:
    """An environment with the command in the plugin's data folder; answers the path of the command. Raises Unfit."""
    folders = [source] if source else checkouts(environ)
    found = [folder for folder in folders if is_checkout(folder)]
    if not found:
        looked = ", ".join(folders)
        raise Unfit(f"there is no source of cc-agents in {looked}. Clone it: /cc-agents:setup install FOLDER")
    fitting = [python for python in pythons() if fits(python)]
    if not fitting:
        raise Unfit("cc-agents needs Python 3.10 or newer with venv; install one")
    data = data_folders(environ)
    if not data:
        raise Unfit("the plugin's data folder is not known: run this as /cc-agents:setup install")
    command = made_by_setup(data[0])
    target = os.path.dirname(os.path.dirname(command))
    shutil.rmtree(target, ignore_errors=True)
    pip = [os.path.join(target, "bin", "python"), "-I", "-m", "pip", "install", "--quiet", "--no-input", found[0]]
    for words in ([fitting[0], "-I", "-m", "venv", target], pip):
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False)
        if done.returncode:
            shutil.rmtree(target, ignore_errors=True)
            raise Unfit(f"installing failed with {done.returncode}: {' '.join(words)}")
    return command


def setup(words: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """`plugin-setup [install [FOLDER]]`: makes the command if asked to; says where it is, then what doctor says."""
    if words[:1] == ["install"]:
        install(environ, *words[1:2])
    try:
        path = find(environ)
        sys.stdout.write(f"cc-agents {check(path)}: {path}\n\n")
    except Unfit:
        codex = environ.get(CODEX_OPTION) or environ.get("CC_AGENTS_CODEX_BIN") or shutil.which("codex")
        sys.stdout.write(f"Codex: {codex or 'not on PATH. npm install -g @openai/codex, then codex login'}\n")
        raise
    finally:
        sys.stdout.flush()
    return ["doctor"]


# --- becoming it --------------------------------------------------------------------------------------------


def main(words: Sequence[str]) -> int:
    environ = dict(os.environ)
    try:
        if words[:1] == ["plugin-setup"]:
            words = setup(words[1:], environ)
        path = find(environ)
        check(path)
    except Unfit as unfit:
        sys.stderr.write(f"cc-agents: {unfit}\n")
        return NOT_FOUND
    os.execv(path, [path, *words])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
