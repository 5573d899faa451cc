"""Which AGENTS.md reach the model: the same as in plain Codex, although the search for the root is spared it."""

from __future__ import annotations

import json

import pytest

from tests_live.conftest import CcAgents, WriteConfig
from tests_live.homes import Home
from tests_live.responses_api import ScriptedModel, say
from tests_live.tee import read_logs, write_tee

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
    codex: str,
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
    tee = write_tee(home.root / "tee", home.root / "log", [codex])
    named = {"CC_AGENTS_CODEX_BIN": str(tee)}
    ended = cc_agents("run", "--mode", mode, "--cwd", str(home.work / where), "go", env=named)
    assert ended.returncode == 0, ended.stderr
    assert read_in(model) == expected
    ((sent, _),) = read_logs(home.root / "log")
    (start,) = (m["params"] for m in map(json.loads, sent) if m.get("method") == "thread/start")
    ends_here = not config and (not marker or marker == f"{where}/.git")
    assert start["config"].get("project_root_markers") == ([] if ends_here and mode != "yolo" else None)
