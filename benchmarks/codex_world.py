"""A user with the real codex and a scripted model: our command, and the peers and floors beside it.

Owns: that world, and the command line of each contender. Does not own what is measured.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from benchmarks import plans
from benchmarks.measure import BadRun, Run, Watch, measure
from benchmarks.model import ANSWER, SAY, Model, open_model
from benchmarks.world import World
from tests_live.homes import live_tmp, write_config

OURS, EXEC, BARE, PROFILE, NODE = "cc-agents", "codex exec", "bare driver", "bare driver, our profile", "Node plugin"


class CodexWorld(World):
    def __init__(self, root: Path, ours: Sequence[str], codex: str, model: Model, node_plugin: Path | None) -> None:
        super().__init__(root, ours)
        self.codex, self.model, self.node_plugin = Path(codex), model, node_plugin
        # the Node plugin starts whatever `codex` is on PATH: the same binary
        (root / "bin").mkdir()
        (root / "data").mkdir()
        (root / "bin" / "codex").symlink_to(codex)
        self.env |= {
            "PATH": f"{root / 'bin'}:{self.env['PATH']}",
            "CC_AGENTS_CODEX_BIN": codex,
            "CLAUDE_PLUGIN_DATA": str(root / "data"),
        }
        if shutil.which("git"):  # the root of a repository, as where most turns run
            subprocess.run(["git", "init", "--quiet", str(self.work)], env=self.env, check=True)
        self.configure()

    def configure(self, extra: str = "") -> None:
        """Codex's config.toml; `extra` is TOML, its top-level keys first."""
        write_config(self.home, self.model.base_url, extra)

    @cached_property
    def recorded(self) -> plans.Plan:
        return plans.record(str(self.codex), self.root / "tee", self.ours("run", SAY), self.env, self.work)

    def contenders(self, prompt: str = SAY) -> Mapping[str, list[str]]:
        """Read-only turns with that prompt, by who drives them."""
        profile = plans.with_prompt(self.recorded, prompt)
        bare = {BARE: plans.with_sandbox(profile), PROFILE: profile}
        found = {OURS: self.ours("run", prompt), EXEC: self.codex_exec(prompt)}
        for name, plan in bare.items():
            path = self.root / f"{name.replace(' ', '-').replace(',', '')}.json"
            found[name] = plans.bare_argv(plans.write_plan(path, plan))
        if self.node_plugin:
            found[NODE] = self.node(prompt)
        return found

    def codex_exec(self, prompt: str, sandbox: str = "read-only") -> list[str]:
        return [str(self.codex), "exec", "--json", "--skip-git-repo-check", "-s", sandbox, prompt]

    def node(self, prompt: str) -> list[str]:
        assert self.node_plugin is not None
        return ["node", str(companion(self.node_plugin)), "task", prompt]

    def run(self, argv: Sequence[str], *, watch: Watch | None = None) -> Run:
        """A turn that says what the model said. Raises BadRun if it doesn't."""
        run = measure(argv, self.env, self.work, watch=watch)
        if ANSWER.encode() not in run.stdout:
            raise BadRun(f"{argv} said {run.stdout[-500:]!r}")
        return run


def companion(checkout: Path) -> Path:
    return checkout / "plugins" / "codex" / "scripts" / "codex-companion.mjs"


@contextmanager
def open_codex_world(checkout: Path, codex: str, ours: Sequence[str], node_plugin: Path | None) -> Iterator[CodexWorld]:
    root = Path(tempfile.mkdtemp(prefix="b", dir=live_tmp()))  # not below /tmp: Codex dislikes that
    try:
        with open_model(checkout) as model:
            world = CodexWorld(root, ours, codex, model, node_plugin)
            try:
                yield world
            finally:
                world.end_all()
    finally:
        shutil.rmtree(root, ignore_errors=True)
