"""The scripted model is what the real codex takes for the Responses API, in both of its tool styles.

Driven through `codex exec`, so that a fault of the harness shows apart from a fault of ours.
"""

from __future__ import annotations

import json
import subprocess
import time
from typing import Any

import pytest

from tests_live.homes import Home, write_config
from tests_live.responses_api import (
    ScriptedModel,
    http_error,
    offered_tools,
    patch,
    run_command,
    say,
    silence,
    sse_failed,
    step,
    tokens,
    tool_outputs,
    user_texts,
)

pytestmark = pytest.mark.rule("rule.fakeIsTrue")

EXEC_S = 60.0
STYLES = [None, "gpt-5.5"]  # the default model uses code mode, gpt-5.5 plain functions

PATCH = "*** Begin Patch\n*** Add File: added.txt\n+one line\n*** End Patch"


def codex_exec(codex: str, home: Home, prompt: str, *args: str) -> tuple[int, list[dict[str, Any]]]:
    argv = [codex, "exec", "--json", "--skip-git-repo-check", *args, "-"]
    ended = subprocess.run(
        argv,
        input=prompt.encode(),
        capture_output=True,
        env=home.environ(),
        cwd=home.work,
        timeout=EXEC_S,
        check=False,
    )
    return ended.returncode, [json.loads(line) for line in ended.stdout.splitlines()]


def messages(events: list[dict[str, Any]]) -> list[str]:
    items = [event["item"] for event in events if event["type"] == "item.completed"]
    return [item["text"] for item in items if item["type"] == "agent_message"]


@pytest.mark.parametrize("name", STYLES, ids=["code mode", "functions"])
def test_codex_runs_commands_and_patches_from_the_script(
    codex: str, home: Home, model: ScriptedModel, name: str | None
) -> None:
    model.extend(run_command("echo from-the-script; exit 3"), patch(PATCH), say("done ✓"))
    write_config(home, model.base_url, model=name)
    code, events = codex_exec(codex, home, "go", "-s", "workspace-write")
    assert code == 0, events
    assert messages(events) == ["done ✓"]
    assert "from-the-script" in tool_outputs(model.requests[1])[0]
    assert (home.work / "added.txt").read_text() == "one line\n"
    assert "exec_command" in offered_tools(model.requests[0])
    assert user_texts(model.requests[0])[-1] == "go"


def test_codex_counts_the_tokens_that_the_script_gives(codex: str, home: Home, model: ScriptedModel) -> None:
    model.extend(step(say("x"), usage=tokens(1000, cached=400, cache_write=30, output=70, reasoning=7)))
    write_config(home, model.base_url)
    _, events = codex_exec(codex, home, "go")
    usage = events[-1]["usage"]
    assert (usage["input_tokens"], usage["cached_input_tokens"], usage["output_tokens"]) == (1000, 400, 70)


@pytest.mark.parametrize(
    "failure",
    [
        http_error(400, {"error": {"message": "the scripted failure"}}),
        sse_failed("server_error", "the scripted failure"),
    ],
    ids=["http", "stream"],
)
def test_a_scripted_failure_ends_the_turn_of_codex(codex: str, home: Home, model: ScriptedModel, failure: Any) -> None:
    model.extend(failure)
    write_config(home, model.base_url)
    code, events = codex_exec(codex, home, "go")
    assert code != 0
    assert "the scripted failure" in json.dumps(events)


def test_the_model_notices_that_a_silent_client_was_killed(codex: str, home: Home, model: ScriptedModel) -> None:
    model.extend(silence())
    write_config(home, model.base_url)
    argv = [codex, "exec", "--json", "--skip-git-repo-check", "go"]
    with subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=home.environ(),
    ) as running:
        assert user_texts(model.wait_for_requests(1))[-1] == "go"
        running.terminate()
        running.wait(EXEC_S)  # its code is not said here: 0.145 ends with 0
    model.wait_for_hang_up()
    assert model.hang_ups == 1


def test_an_answer_of_five_megabytes_is_sent_in_a_moment(codex: str, home: Home, model: ScriptedModel) -> None:
    text = "漢字 é 🎉 " * 220_000
    model.extend(say(text, deltas=[text[i : i + 1000] for i in range(0, len(text), 1000)]))
    write_config(home, model.base_url)
    begun = time.monotonic()
    code, events = codex_exec(codex, home, "go")
    assert code == 0
    assert messages(events) == [text]
    assert time.monotonic() - begun < EXEC_S / 2
