"""`cc-agents demo`: the main job on a machine that has nothing but Python. Serves rule.demo."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fake_app_server.shim import demo_scenario

pytestmark = pytest.mark.rule("rule.demo")

DEMO_S = 60.0  # it takes half a second on two cores


def demo(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """In an empty HOME, with no codex on PATH and nowhere to keep anything but `home` and its `tmp`."""
    (home / "tmp").mkdir(parents=True)
    environ = {"PATH": "/nonexistent", "HOME": str(home), "TMPDIR": str(home / "tmp")}
    environ["PYTHONPATH"] = str(Path(__file__).parent.parent)
    command = [sys.executable, "-m", "sidecar", "demo", *words]
    return subprocess.run(command, env=environ, cwd=home, capture_output=True, text=True, timeout=DEMO_S, check=False)


def scripted_answer() -> str:
    finals = [step["msg"][0] for step in demo_scenario()["turn"] if step.get("msg", [None, None])[1] == "final_answer"]
    assert len(finals) == 1
    return str(finals[0])


def test_it_prints_the_scripted_answer_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    ran = demo(tmp_path / "home")
    assert (ran.returncode, ran.stdout) == (0, scripted_answer())
    assert "scripted" in ran.stdout
    assert "no model is asked" in ran.stderr
    assert sorted(os.listdir(tmp_path / "home")) == ["tmp"]
    assert os.listdir(tmp_path / "home" / "tmp") == []


def test_its_outcome_has_every_field_of_a_real_one(tmp_path: Path) -> None:
    ran = demo(tmp_path / "home", "--json", "--quiet")
    outcome = json.loads(ran.stdout)
    assert (outcome["status"], outcome["final_text"]) == ("completed", scripted_answer())
    assert outcome["usage"]["total_tokens"] > 0
    assert outcome["effective"]["mode"] == "read-only"
    assert outcome["effective"]["sandbox"]["type"] == "readOnly"
    assert outcome["confirmed"] is True
