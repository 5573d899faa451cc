"""Which AGENTS.md reach the model: the same as in plain Codex, although the search for the root is spared it."""

from __future__ import annotations

import pytest

from tests_live.conftest import CcAgents, WriteConfig
from tests_live.homes import Home
from tests_live.responses_api import ScriptedModel, say

pytestmark = pytest.mark.rule("rule.projectInstructions")

PLACES = {"above": "", "root": "shop", "web": "shop/web", "deep": "shop/web/deep"}


def read_in(model: ScriptedModel) -> set[str]:
    body = str(model.requests[0].body)
    return {name for name in PLACES if f"instruction-{name}" in body}


@pytest.mark.parametrize(
    ("marker", "config", "where", "expected"),
    [
        ("shop/.git", "", "shop", {"root"}),
        ("shop/.git", "", "shop/web", {"root", "web"}),
        ("shop/.git", "", "shop/web/deep", {"root", "web", "deep"}),
        ("", "", "shop/web", {"web"}),
        ("shop/.hg", 'project_root_markers = [".hg"]\n', "shop/web", {"root", "web"}),
        ("shop/web/.git", 'project_root_markers = [".hg"]\n', "shop/web", {"web"}),
        ("shop/.git", "project_root_markers = []\n", "shop/web", {"web"}),
    ],
)
@pytest.mark.parametrize(
    "mode", ["read-only", "yolo"]
)  # yolo: nothing is said to Codex, so it is what plain Codex does
def test_the_instructions_are_those_of_the_project(
    home: Home,
    model: ScriptedModel,
    write_config: WriteConfig,
    cc_agents: CcAgents,
    marker: str,
    config: str,
    where: str,
    expected: set[str],
    mode: str,
) -> None:
    for name, place in PLACES.items():
        (home.work / place).mkdir(parents=True, exist_ok=True)
        (home.work / place / "AGENTS.md").write_text(f"instruction-{name}\n")
    if marker:
        (home.work / marker).mkdir()
    model.extend(say("done"))
    write_config(home, model, config)
    ended = cc_agents("run", "--mode", mode, "--cwd", str(home.work / where), "go")
    assert ended.returncode == 0, ended.stderr
    assert read_in(model) == expected
