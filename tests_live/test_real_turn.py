"""One turn on the real codex with the scripted model: the answer, the usage, the mode, the errors, the end.

The `home` fixture adds to every test here that no process of the turn is alive when it has ended.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests_live.conftest import CHECKOUT, TURN_S, CcAgents, WriteConfig, version
from tests_live.homes import Home
from tests_live.responses_api import (
    ScriptedModel,
    http_error,
    run_command,
    say,
    silence,
    sse_failed,
    step,
    tokens,
    tool_outputs,
    user_texts,
)

ANSWER = "  héllo 漢字 🎉\n\n\ttrailing space \n"
BIG = "é漢🎉x\n" * (4_800_000 // 11)  # eleven bytes a piece, and no piece divides a read of 64 KiB


@pytest.mark.rule("rule.exactFinal")
def test_stdout_is_the_answer_and_not_one_byte_more(
    home: Home, model: ScriptedModel, write_config: WriteConfig, cc_agents: CcAgents
) -> None:
    model.extend(
        step(say("looking", phase="commentary"), run_command("echo between")),
        say(ANSWER, deltas=[ANSWER[:7], ANSWER[7:]]),
    )
    write_config(home, model)
    ended = cc_agents("run", "go")
    assert (ended.returncode, ended.stdout) == (0, ANSWER.encode()), ended.stderr


@pytest.mark.rule("rule.exactFinal")
def test_an_answer_of_five_megabytes_with_multi_byte_characters_is_exact(
    home: Home, model: ScriptedModel, write_config: WriteConfig, cc_agents: CcAgents
) -> None:
    model.extend(say(BIG, deltas=[BIG[at : at + 4000] for at in range(0, len(BIG), 4000)]))
    write_config(home, model)
    ended = cc_agents("run", "go")
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert ended.stdout == BIG.encode()


# --- the modes ----------------------------------------------------------------------------------------------


@pytest.mark.rule("rule.modes")
@pytest.mark.parametrize(
    ("mode", "sandbox", "inside", "outside"),
    [
        ("read-only", "readOnly", False, False),
        ("write", "workspaceWrite", True, False),
        ("yolo", "dangerFullAccess", True, True),
    ],
)
def test_each_mode_lets_a_command_write_where_it_says(
    home: Home,
    model: ScriptedModel,
    write_config: WriteConfig,
    cc_agents: CcAgents,
    mode: str,
    sandbox: str,
    inside: bool,
    outside: bool,
) -> None:
    other = home.root / "other"
    other.mkdir()
    model.extend(run_command(f"touch in.txt; touch {other}/out.txt"), say("done"))
    write_config(home, model)
    ended = cc_agents("run", "--mode", mode, "--json", "go")
    assert ended.returncode == 0, ended.stderr
    effective = json.loads(ended.stdout)["effective"]
    assert (effective["mode"], effective["sandbox"]["type"]) == (mode, sandbox)
    assert ((home.work / "in.txt").exists(), (other / "out.txt").exists()) == (inside, outside)
    assert len(tool_outputs(model.requests[1])) == 1


@pytest.mark.rule("rule.extraWritableFolders")
@pytest.mark.parametrize(("more", "commits"), [([], 0), (["--add-dir", ".git"], 1)], ids=["as it is", "named"])
def test_a_commit_needs_the_git_folder_to_be_named(
    home: Home, model: ScriptedModel, write_config: WriteConfig, cc_agents: CcAgents, more: list[str], commits: int
) -> None:
    subprocess.run(["git", "init", "-q", str(home.work)], check=True)
    model.extend(run_command("git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x"), say("done"))
    write_config(home, model)
    ended = cc_agents("run", "--mode", "write", *more, "go")
    assert ended.returncode == 0, ended.stderr
    count = subprocess.run(["git", "-C", str(home.work), "rev-list", "--count", "--all"], capture_output=True)
    assert int(count.stdout) == commits


# --- the outcome --------------------------------------------------------------------------------------------


@pytest.mark.rule("rule.exactFinal")
def test_the_outcome_says_what_was_in_force_and_what_was_used(
    codex: str, home: Home, model: ScriptedModel, write_config: WriteConfig, cc_agents: CcAgents
) -> None:
    model.extend(
        step(run_command("true"), usage=tokens(1000, cached=400, output=50, reasoning=7)),
        step(say("done"), usage=tokens(2000, cached=900, output=70, reasoning=5)),
    )
    write_config(home, model, model_name="gpt-5.5")
    ended = cc_agents("run", "--effort", "high", "--json", "go")
    assert ended.returncode == 0, ended.stderr
    outcome = json.loads(ended.stdout)
    assert (outcome["status"], outcome["final_text"], outcome["error"]) == ("completed", "done", None)
    assert outcome["confirmed"] is True
    assert outcome["thread"]
    assert outcome["turn"]
    used = outcome["usage"]
    assert (used["input_tokens"], used["cached_input_tokens"]) == (3000, 1300)
    assert (used["output_tokens"], used["reasoning_output_tokens"]) == (120, 12)
    assert used["total_tokens"] == 3120
    effective = outcome["effective"]
    assert (effective["model"]["value"], effective["effort"]["value"]) == ("gpt-5.5", "high")
    assert effective["effort"]["source"] == "--effort"
    assert effective["approval_policy"] == "never"
    assert effective["cwd"] == str(home.work)
    assert effective["codex"]["version"] == version(codex)
    assert os.access(effective["codex"]["path"], os.X_OK)
    assert model.requests[0].body["reasoning"]["effort"] == "high"


@pytest.mark.rule("rule.threadResumes")
def test_a_resumed_turn_counts_only_its_own_usage_and_knows_what_was_said(
    home: Home, model: ScriptedModel, write_config: WriteConfig, cc_agents: CcAgents
) -> None:
    model.extend(step(say("one"), usage=tokens(5000)), step(say("two"), usage=tokens(700, output=30)))
    write_config(home, model)
    first = json.loads(cc_agents("run", "--json", "the first").stdout)
    second = cc_agents("run", "--json", "--resume", first["thread"], "the second")
    assert second.returncode == 0, second.stderr
    outcome = json.loads(second.stdout)
    assert (outcome["final_text"], outcome["usage"]["total_tokens"]) == ("two", 730)
    assert {"the first", "the second"} <= set(user_texts(model.requests[1]))


# --- the prompt ---------------------------------------------------------------------------------------------

INPUT_CHARS = 1 << 20  # turn/start answers input_too_large for one character more (0.145 and 0.171)
PROMPT = "  leading, 漢字 🎉, trailing \n\n"


@pytest.mark.rule("rule.exactFinal")
@pytest.mark.parametrize("way", ["argument", "dash", "pipe", "file"])
def test_a_prompt_reaches_the_model_byte_for_byte(
    home: Home, model: ScriptedModel, write_config: WriteConfig, cc_agents: CcAgents, way: str
) -> None:
    model.extend(say("ok"))
    write_config(home, model)
    (home.root / "prompt.txt").write_bytes(PROMPT.encode())
    args: dict[str, list[str]] = {
        "argument": [PROMPT],
        "dash": ["-"],
        "pipe": [],
        "file": ["--prompt-file", str(home.root / "prompt.txt")],
    }
    given = PROMPT.encode() if way in ("dash", "pipe") else None
    ended = cc_agents("run", *args[way], input=given)
    assert (ended.returncode, ended.stdout) == (0, b"ok"), ended.stderr
    assert user_texts(model.requests[0])[-1] == PROMPT


@pytest.mark.rule("rule.exactFinal")
def test_the_longest_prompt_that_codex_takes_reaches_the_model_exactly(
    home: Home, model: ScriptedModel, write_config: WriteConfig, cc_agents: CcAgents
) -> None:
    model.extend(say("ok"))
    write_config(home, model)
    prompt = "🎉漢\n" * (INPUT_CHARS // 3) + "ä"
    assert len(prompt) == INPUT_CHARS
    ended = cc_agents("run", input=prompt.encode())
    assert (ended.returncode, ended.stdout) == (0, b"ok"), ended.stderr[-2000:]
    assert user_texts(model.requests[0])[-1] == prompt


@pytest.mark.rule("rule.exactFinal")
def test_a_prompt_that_codex_would_not_take_is_refused_with_the_limit(
    home: Home, model: ScriptedModel, write_config: WriteConfig, cc_agents: CcAgents
) -> None:
    write_config(home, model)
    ended = cc_agents("run", input=b"x" * (INPUT_CHARS + 1))
    assert (ended.returncode, ended.stdout) == (2, b"")
    assert str(INPUT_CHARS).encode() in ended.stderr.replace(b",", b"")
    assert model.requests == []


# --- errors -------------------------------------------------------------------------------------------------

USAGE_LIMIT = {"error": {"type": "usage_limit_reached", "message": "limit", "plan_type": "pro"}}
RATE_LIMIT = {"error": {"code": "rate_limit_exceeded", "message": "slow down"}}
OVERLOADED = {"error": {"code": "server_is_overloaded", "message": "busy"}}
BAD = {"error": {"message": "no such thing", "type": "invalid_request_error"}}
FAILURES = [
    pytest.param(http_error(429, RATE_LIMIT), 5, "rate-limit", id="429"),
    pytest.param(http_error(401, {"error": {"message": "no"}}), 3, "auth", id="401"),
    pytest.param(http_error(429, USAGE_LIMIT), 4, "quota", id="usage limit"),
    pytest.param(sse_failed("insufficient_quota", "no quota"), 4, "quota", id="no quota"),
    pytest.param(http_error(503, OVERLOADED), 6, "capacity", id="overloaded"),
    pytest.param(http_error(400, BAD), 1, "other", id="400"),
]


@pytest.mark.rule("rule.errorKinds")
@pytest.mark.parametrize(("failure", "code", "kind"), FAILURES)
def test_each_kind_of_error_has_its_exit_code_and_no_answer(
    home: Home,
    model: ScriptedModel,
    write_config: WriteConfig,
    cc_agents: CcAgents,
    failure: Any,
    code: int,
    kind: str,
) -> None:
    model.extend(failure)
    write_config(home, model)
    ended = cc_agents("run", "--json", "go")
    outcome = json.loads(ended.stdout)
    assert (ended.returncode, outcome["status"], outcome["error"]["kind"]) == (code, "failed", kind), outcome
    assert outcome["final_text"] == ""
    assert len(model.requests) == 1


@pytest.mark.rule("rule.errorKinds")
def test_a_failed_turn_writes_nothing_to_stdout(
    home: Home, model: ScriptedModel, write_config: WriteConfig, cc_agents: CcAgents
) -> None:
    model.extend(http_error(503, OVERLOADED))
    write_config(home, model)
    ended = cc_agents("run", "go")
    assert (ended.returncode, ended.stdout) == (6, b"")
    assert b"capacity" in ended.stderr


# --- the end ------------------------------------------------------------------------------------------------


@pytest.mark.rule("rule.guardedAppServer")
def test_a_process_that_left_its_session_in_yolo_is_gone_with_the_turn(
    home: Home, model: ScriptedModel, write_config: WriteConfig, cc_agents: CcAgents
) -> None:
    escape = "(setsid sh -c 'trap \"\" TERM; echo $$ > pid; exec sleep 600' >/dev/null 2>&1 &)"
    wait = "until [ -s pid ]; do sleep 0.05; done"
    model.extend(run_command(f"{escape}; {wait}"), say("done"))
    write_config(home, model)
    ended = cc_agents("run", "--mode", "yolo", "go")
    assert (ended.returncode, ended.stdout) == (0, b"done"), ended.stderr
    assert not Path("/proc", (home.work / "pid").read_text().strip()).exists()


@pytest.mark.rule("rule.guardedAppServer")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda how: how.name)
def test_a_turn_whose_sidecar_is_ended_leaves_nothing(
    codex: str, home: Home, model: ScriptedModel, write_config: WriteConfig, how: signal.Signals
) -> None:
    model.extend(step(say("half", phase="commentary"), silence()))
    write_config(home, model)
    environ = home.environ(CC_AGENTS_CODEX_BIN=codex, PYTHONPATH=str(CHECKOUT))
    argv = [sys.executable, "-m", "sidecar", "run", "--mode", "yolo", "go"]
    with subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environ,
        cwd=home.work,
    ) as running:
        model.wait_for_requests(1)
        running.send_signal(how)
        out, _ = running.communicate(timeout=TURN_S)
    assert out == b""
    assert running.returncode == (-9 if how is signal.SIGKILL else 128 + how)
