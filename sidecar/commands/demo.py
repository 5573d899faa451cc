"""`cc-agents demo`: the whole main job against the scripted app-server, for a machine without Codex.

Everything it needs lies in a temporary folder that is removed: no state, no sign-in, no model. Serves rule.demo.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile

from fake_app_server.shim import demo_scenario, write_shim
from sidecar.commands.run import view_for
from sidecar.config import load_settings
from sidecar.hosts import foreground
from sidecar.intake.turn_options import add_output_arguments
from sidecar.request import Flags, build

NOTICE = "demo: the answers are scripted; no model is asked and no Codex is needed"
PROMPT = "What does this project do?"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("prompt", nargs="?", default=PROMPT, help="any text: the scripted answer is the same")
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="cc-agents-demo-") as root:
        environ = demo_environment(root)
        sys.stderr.write(f"cc-agents: {NOTICE}\n")
        settings = load_settings(environ, {})
        request = build(Flags(prompt=args.prompt, cwd=environ["HOME"]), settings, environ)
        return foreground.run(request, settings, environ, view_for(args))


def demo_environment(root: str) -> dict[str, str]:
    """The user's environment with every folder of ours and of Codex below `root`, and the fake as the codex."""
    from pathlib import Path

    folders = {
        "HOME": "home",
        "CODEX_HOME": "home/.codex",
        "XDG_CONFIG_HOME": "home/.config",
        "XDG_STATE_HOME": "home/.local/state",
        "XDG_RUNTIME_DIR": "run",
    }
    for folder in folders.values():
        os.makedirs(os.path.join(root, folder), mode=0o700, exist_ok=True)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("CC_AGENTS_", "CLAUDE_PLUGIN_OPTION_"))}
    shim = write_shim(Path(root), scenario=demo_scenario())
    return {**kept, **{k: os.path.join(root, v) for k, v in folders.items()}, "CC_AGENTS_CODEX_BIN": str(shim)}
