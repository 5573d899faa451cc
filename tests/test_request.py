"""A request put together from prompt, header, flags and options.

Serves rule.refusedEarly, rule.yoloStated, rule.directories. Nothing is started.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from schemas import valid

from adapters.contract import Refused
from sidecar.config import load_settings
from sidecar.request import Flags, TurnRequest, build

pytestmark = pytest.mark.rule("rule.refusedEarly")


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "run").mkdir(mode=0o700)
    return {"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path / "run")}


def built(env: dict[str, str], prompt: str = "go", options: dict[str, Any] | None = None, **flags: Any) -> TurnRequest:
    flags.setdefault("cwd", env["HOME"])
    return build(Flags(prompt=prompt, **flags), load_settings(env, options or {}), env)


def problems(env: dict[str, str], prompt: str = "go", **flags: Any) -> list[str]:
    with pytest.raises(Refused) as caught:
        built(env, prompt, **flags)
    return [p.message for p in caught.value.problems]


def test_a_plain_request_has_the_defaults_and_is_as_its_schema_says(env: dict[str, str]) -> None:
    request = built(env)
    assert (request.agent.mode, request.agent.network, request.agent.model) == ("read-only", False, None)
    assert (request.timeout_s, request.idle_timeout_s, request.start_timeout_s, request.grace_s) == (1800, 900, 60, 5)
    assert valid("request", request.to_json())


def test_the_limits_of_a_turn_are_those_of_the_options(env: dict[str, str]) -> None:
    options = {"timeout": "none", "idle_timeout": "2m", "start_timeout": "3s", "grace": "0.5"}
    limits = built(env, options=options, max_tokens=7).limits
    assert (limits.start_s, limits.grace_s, limits.idle_s, limits.tokens) == (3.0, 0.5, 120.0, 7)


@pytest.mark.rule("rule.yoloStated")
def test_yolo_is_stated_by_flag_or_header_and_the_header_wins(env: dict[str, str]) -> None:
    assert built(env, mode="yolo").agent.mode == "yolo"
    assert built(env, "---\nmode: yolo\n---\ngo").agent.mode == "yolo"
    assert built(env, "---\nmode: read-only\n---\ngo", mode="yolo").agent.mode == "read-only"
    assert problems(env, mode="YOLO") == ["unknown mode 'YOLO': one of read-only, write, yolo"]


def test_a_turn_inside_a_turn_is_refused(env: dict[str, str]) -> None:
    env["CC_AGENTS_TURN"] = "j-outer"
    assert "a turn starts no further turn" in problems(env)[0]


@pytest.mark.parametrize("max_tokens", [0, -5])
def test_a_limit_of_no_tokens_is_refused(env: dict[str, str], max_tokens: int) -> None:
    assert problems(env, max_tokens=max_tokens) == ["--max-tokens must be more than 0"]


@pytest.mark.rule("rule.directories")
@pytest.mark.parametrize("flag", ["cwd", "add_dirs", "images"])
@pytest.mark.parametrize("odd", ["a\nb", "a\rb", "a\0b", os.fsdecode(b"caf\xe9")])
def test_a_path_that_cannot_be_said_to_codex_is_refused(env: dict[str, str], flag: str, odd: str) -> None:
    (said,) = problems(env, **{flag: odd if flag == "cwd" else (odd,)})
    assert "character that Codex can't take" in said


@pytest.mark.rule("rule.directories")
def test_folders_are_absolute_and_real_and_files_are_of_the_turns_directory(
    env: dict[str, str], tmp_path: Path
) -> None:
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    (work / "a.png").touch()
    (tmp_path / "link").symlink_to(work)
    request = built(env, cwd=str(tmp_path / "link"), add_dirs=("sub", "~/work/sub", "sub/../sub"), images=("a.png",))
    assert request.agent.cwd == str(work)
    assert request.agent.add_dirs == (str(work / "sub"),)
    assert os.path.samefile(request.agent.images[0], work / "a.png")


@pytest.mark.rule("rule.extraWritableFolders")
def test_the_users_extra_folders_come_in_write_mode_alone_and_are_looked_at_there(
    env: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "cache").mkdir()
    env["CC_AGENTS_WRITABLE_DIRS"] = f"~/cache:{tmp_path}/gone"
    assert built(env).agent.writable_dirs == ()
    assert problems(env, mode="write") == [f"writable_dirs {tmp_path}/gone does not exist"]
    (tmp_path / "gone").mkdir()
    assert built(env, mode="write").agent.writable_dirs == (str(tmp_path / "cache"), str(tmp_path / "gone"))


@pytest.mark.parametrize(("prompt", "thread"), [("half a pair \ud83d", None), ("go", "a\nb"), ("go", "\udc00")])
def test_what_cannot_be_said_in_json_is_refused(env: dict[str, str], prompt: str, thread: str | None) -> None:
    assert len(problems(env, prompt, thread=thread)) == 1


def test_everything_wrong_is_said_at_once(env: dict[str, str]) -> None:
    said = problems(
        env, "---\nefort: x\n---\n ", cwd="gone", mode="wild", max_tokens=0, add_dirs=("no",), images=("no",)
    )
    assert len(said) == 7
