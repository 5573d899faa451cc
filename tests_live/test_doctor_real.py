"""`cc-agents doctor` against the real codex: its sandbox is really tried, and what is in the way is told by name."""

from __future__ import annotations

import json

import pytest

from tests_live import hostile
from tests_live.conftest import version
from tests_live.homes import Home, write_config
from tests_live.responses_api import ScriptedModel

pytestmark = pytest.mark.rule("rule.doctor")


def test_a_machine_on_which_all_is_well(codex: str, home: Home, model: ScriptedModel) -> None:
    write_config(home, model.base_url, '[mcp_servers."dot.srv"]\ncommand = "true"\n')
    (home.codex_home / "auth.json").write_text(json.dumps({"OPENAI_API_KEY": hostile.SIGN_IN}))
    (home.work / ".codex").symlink_to(home.root)
    ran = hostile.cc_agents(home, codex, "doctor", "--json", cwd=home.work)
    findings = json.loads(ran.stdout)["findings"]
    told = {finding["name"]: finding["text"] for finding in findings}
    assert ran.returncode == 0, ran.stdout
    assert version(codex) in told["codex answers"]
    assert "could neither write nor read" in told["sandbox"]
    assert "mcp_servers.dot.srv" in told["switched off"]
    assert str(home.work / ".codex") in told["project"]
    assert hostile.SIGN_IN not in ran.stdout.decode()


def test_a_sandbox_that_does_not_work_is_a_failure(codex: str, home: Home, model: ScriptedModel) -> None:
    """Without /proc/sys/user's namespaces bubblewrap has nothing to work with: a nested sandbox is as good."""
    write_config(home, model.base_url)
    around = (
        "unshare",
        "--user",
        "--map-root-user",
        "sh",
        "-c",
        'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"',
    )
    ran = hostile.cc_agents(home, codex, "doctor", "--json", cwd=home.work, around=(*around, "sh"))
    findings = json.loads(ran.stdout)["findings"]
    (sandbox,) = [finding for finding in findings if finding["name"] == "sandbox"]
    assert (ran.returncode, sandbox["level"]) == (1, "failure"), sandbox
    assert sandbox["todo"]
