"""Options and folders: their order, their sources, and everything that is wrong with them in one answer.

Serves spec:cc-agents.codex-adapter. Files and folders are real, the environment is a plain dictionary.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from sidecar import config, paths
from sidecar.errors import UserError

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    run = tmp_path / "run"
    run.mkdir(mode=0o700)
    return {"HOME": str(tmp_path / "home"), "XDG_RUNTIME_DIR": str(run)}


def write_config(env: dict[str, str], text: str | bytes) -> Path:
    path = Path(config.config_file(env))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def problems_of(env: dict[str, str], **flags: object) -> list[str]:
    with pytest.raises(config.ConfigProblems) as caught:
        config.load_settings(env, flags)
    assert {reason for reason, _ in caught.value.problems} == {"bad_option"}
    return [message for _, message in caught.value.problems]


# --- values and their sources ---------------------------------------------------------------------------------


def test_with_nothing_said_every_option_has_its_default_and_says_so(env: dict[str, str]) -> None:
    settings = config.load_settings(env, {})
    assert {s.source for _, s in settings.items()} == {"default"}
    assert settings.model.value is None
    assert settings.caps.value == {}
    assert (settings.timeout.value, settings.idle_timeout.value) == (1800.0, 900.0)


@pytest.mark.rule("rule.catalogCheck")
def test_a_later_place_wins_and_is_named_as_the_source(env: dict[str, str]) -> None:
    def model(**flags: object) -> tuple[object, str]:
        setting = config.load_settings(env, flags).model
        return setting.value, setting.source

    write_config(env, 'model = "from-file"\n')
    assert model() == ("from-file", "config.toml")
    env["CC_AGENTS_MODEL"] = "from-env"
    assert model() == ("from-env", "CC_AGENTS_MODEL")
    env["CLAUDE_PLUGIN_OPTION_MODEL"] = "from-plugin"
    assert model() == ("from-plugin", "CLAUDE_PLUGIN_OPTION_MODEL")
    assert model(model="from-flag") == ("from-flag", "--model")
    assert model(model=None) == ("from-plugin", "CLAUDE_PLUGIN_OPTION_MODEL")


def test_an_empty_variable_is_an_unset_one(env: dict[str, str]) -> None:
    write_config(env, 'effort = "high"\n')
    env |= {"CC_AGENTS_EFFORT": "", "CLAUDE_PLUGIN_OPTION_EFFORT": "", "CC_AGENTS_CAPS": ""}
    settings = config.load_settings(env, {})
    assert settings.effort == config.Setting(value="high", source="config.toml")
    assert settings.caps.source == "default"


@pytest.mark.rule("rule.defaultCap")
@pytest.mark.parametrize("text", ["codex=4, other=1", '{"codex": 4, "other": 1}', "codex=4 other=1"])
def test_caps_come_from_a_variable_as_pairs_or_json(env: dict[str, str], text: str) -> None:
    env["CC_AGENTS_CAPS"] = text
    assert config.load_settings(env, {}).caps == config.Setting(value={"codex": 4, "other": 1}, source="CC_AGENTS_CAPS")


@pytest.mark.rule("rule.defaultCap")
def test_caps_come_from_a_table_in_the_file(env: dict[str, str]) -> None:
    write_config(env, "[caps]\ncodex = 2\n")
    assert config.load_settings(env, {}).caps == config.Setting(value={"codex": 2}, source="config.toml")


@pytest.mark.rule("rule.defaultCap")
@pytest.mark.parametrize(
    "text",
    ["codex=0", "codex=-1", "codex=1.5", "codex", "codex=true", '{"codex": true}', "{", "[3]", "CoDex=1"],
)
def test_a_cap_that_is_no_whole_number_of_at_least_one_is_refused(env: dict[str, str], text: str) -> None:
    env["CC_AGENTS_CAPS"] = text
    (line,) = problems_of(env)
    assert line.startswith("CC_AGENTS_CAPS ")


@pytest.mark.rule("rule.extraWritableFolders")
@pytest.mark.parametrize("form", [":", "json"])
def test_writable_folders_have_their_tilde_expanded(env: dict[str, str], form: str) -> None:
    env["CC_AGENTS_WRITABLE_DIRS"] = "~/cache:/srv/x:~" if form == ":" else '["~/cache", "/srv/x", "~"]'
    dirs = config.load_settings(env, {}).writable_dirs.value
    assert dirs == (env["HOME"] + "/cache", "/srv/x", env["HOME"])


@pytest.mark.rule("rule.extraWritableFolders")
@pytest.mark.parametrize("folder", ["build", "./build", "../x", "~nobody-of-that-name/x", ""])
def test_a_relative_writable_folder_is_refused_by_name(env: dict[str, str], folder: str) -> None:
    write_config(env, f'writable_dirs = ["/srv/ok", "{folder}"]\n')
    (line,) = problems_of(env)
    assert line.startswith("writable_dirs in config.toml ")
    assert repr(folder) in line


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("30m", 1800), ("1h30m", 5400), ("2h", 7200), ("45", 45), ("0.5", 0.5), ("1d", 86400),
     (" 2H ", 7200), ("1h0m5.5s", 3605.5)],
)  # fmt: skip
def test_a_duration_is_read_as_people_write_it(text: str, seconds: float) -> None:
    assert config.parse_duration(text) == seconds


@pytest.mark.rule("rule.refusedEarly")
@pytest.mark.parametrize(
    "text",
    ["", " ", "0", "0s", "0h0m", "-5", "5 m", "m", "1h30", "1m1h", "inf", "nan", "1e3", "٣m", "9" * 400],
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"duration|zero"):
        config.parse_duration(text)


@pytest.mark.parametrize(
    ("toml", "value"), [("90", 90.0), ("1.5", 1.5), ('"none"', None), ('"None"', None), ('"1h"', 3600.0)]
)
def test_a_time_limit_is_a_number_of_seconds_a_duration_or_none(
    env: dict[str, str], toml: str, value: float | None
) -> None:
    write_config(env, f"timeout = {toml}\n")
    assert config.load_settings(env, {}).timeout == config.Setting(value=value, source="config.toml")


# --- what is refused ------------------------------------------------------------------------------------------


@pytest.mark.rule("rule.refusedEarly")
def test_everything_wrong_is_said_at_once_with_key_and_place(env: dict[str, str]) -> None:
    write_config(env, 'timeout = 0\nidle_timeout = inf\nmodel = 5\ncaps = "codex"\nkeep_days = true\n')
    env |= {"CC_AGENTS_WRITABLE_DIRS": "rel", "CLAUDE_PLUGIN_OPTION_CODEX_BIN": "a\nb"}
    lines = problems_of(env, timeout="soon", effort="")
    starts = [
        "timeout in config.toml ", "idle_timeout in config.toml ", "model in config.toml ", "caps in config.toml ",
        "keep_days in config.toml ", "CC_AGENTS_WRITABLE_DIRS ", "CLAUDE_PLUGIN_OPTION_CODEX_BIN ", "--timeout ",
        "--effort ",
    ]  # fmt: skip
    assert len(lines) == len(starts)
    for start in starts:
        assert sum(line.startswith(start) for line in lines) == 1, (start, lines)


@pytest.mark.rule("rule.refusedEarly")
def test_an_unknown_key_is_named_and_the_known_ones_listed(env: dict[str, str]) -> None:
    write_config(env, 'modle = "x"\n')
    (line,) = problems_of(env)
    assert line.startswith("modle in config.toml is not an option")
    assert "codex_bin, model, effort, caps, writable_dirs, timeout, idle_timeout" in line


@pytest.mark.rule("rule.modes")
@pytest.mark.parametrize("where", ["file", "variable"])
def test_the_mode_cannot_come_from_an_option(env: dict[str, str], where: str) -> None:
    if where == "file":
        write_config(env, 'mode = "yolo"\n')
    else:
        env["CC_AGENTS_MODE"] = "yolo"
    (line,) = problems_of(env)
    assert "is not an option" in line
    assert "--mode" in line


@pytest.mark.rule("rule.refusedEarly")
@pytest.mark.parametrize(("text", "part"), [(b'model = "x"\nbad = = 3\n', "line 2"), (b'model = "\xff"\n', "utf-8")])
def test_a_broken_file_is_named_with_the_line_where_there_is_one(env: dict[str, str], text: bytes, part: str) -> None:
    path = write_config(env, text)
    (line,) = problems_of(env)
    assert str(path) in line
    assert part in line


@pytest.mark.rule("rule.refusedEarly")
def test_a_file_that_cannot_be_read_is_a_problem_and_not_a_missing_one(env: dict[str, str]) -> None:
    Path(config.config_file(env)).mkdir(parents=True)
    (line,) = problems_of(env)
    assert line.startswith("cannot read ")


# --- folders --------------------------------------------------------------------------------------------------


def test_folders_are_where_platformdirs_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import platformdirs

    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for setting in (
        {},
        {"XDG_CONFIG_HOME": "/x/c", "XDG_STATE_HOME": "/x/s"},
        {"XDG_STATE_HOME": "relative"},
    ):
        for name, value in setting.items():
            monkeypatch.setenv(name, value)
        assert paths.config_dir(os.environ) == platformdirs.user_config_dir("cc-agents")
        assert paths.state_dir(os.environ) == platformdirs.user_state_dir("cc-agents")
        for name in setting:
            monkeypatch.delenv(name)


def test_state_is_the_same_with_and_without_the_plugins_variables(env: dict[str, str], tmp_path: Path) -> None:
    plugin = env | {"CLAUDE_PLUGIN_DATA": str(tmp_path), "CLAUDE_PLUGIN_ROOT": str(tmp_path)}
    assert paths.state_dir(plugin) == paths.state_dir(env)


def test_the_runtime_folder_is_made_private_below_the_sessions(env: dict[str, str]) -> None:
    path = paths.runtime_dir(env)
    assert path == env["XDG_RUNTIME_DIR"] + "/cc-agents"
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o700
    assert paths.runtime_dir(env) == path


@pytest.mark.parametrize("base", [None, "relative", "/nonexistent/run", "open"])
def test_without_a_usable_session_folder_the_temporary_one_is_used(
    env: dict[str, str], tmp_path: Path, base: str | None
) -> None:
    os.chmod(env["XDG_RUNTIME_DIR"], 0o755)
    if base is None:
        del env["XDG_RUNTIME_DIR"]
    elif base != "open":
        env["XDG_RUNTIME_DIR"] = base
    env["TMPDIR"] = str(tmp_path / "elsewhere")  # /tmp wins: all sessions of a user share the slots
    path = paths.runtime_dir(env, run_root=str(tmp_path / "none"), temp_root=str(tmp_path))
    assert path == str(tmp_path / f"cc-agents-{os.geteuid()}")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o700


def test_logins_folder_is_used_when_its_variable_is_missing(env: dict[str, str], tmp_path: Path) -> None:
    del env["XDG_RUNTIME_DIR"]
    mine = tmp_path / "user" / str(os.geteuid())
    mine.mkdir(parents=True)
    mine.chmod(0o700)
    assert paths.runtime_dir(env, run_root=str(tmp_path / "user")) == str(mine / "cc-agents")


@pytest.mark.parametrize("kind", ["link", "file", "open", "foreign"])
def test_a_temporary_folder_that_others_may_have_made_is_refused(
    env: dict[str, str], tmp_path: Path, kind: str
) -> None:
    del env["XDG_RUNTIME_DIR"]
    path = tmp_path / f"cc-agents-{os.geteuid()}"
    if kind == "link":
        (tmp_path / "target").mkdir(mode=0o700)
        path.symlink_to(tmp_path / "target")
    elif kind == "file":
        path.touch()
    else:
        path.mkdir()
        path.chmod(0o777 if kind == "open" else 0o700)
    if kind == "foreign":
        if os.geteuid() != 0:
            pytest.skip("only root can give a folder away")
        os.chown(path, 12345, 12345)
    with pytest.raises(UserError, match=r"link|not a folder|written by others|another user") as caught:
        paths.runtime_dir(env, run_root=str(tmp_path / "none"), temp_root=str(tmp_path))
    assert caught.value.reason == "runtime_dir"
    assert str(path) in caught.value.message


def test_a_private_folder_is_made_with_its_parents_and_closed_to_others(tmp_path: Path) -> None:
    path = paths.make_private(str(tmp_path / "a" / "b" / "c"))
    assert [stat.S_IMODE(p.stat().st_mode) for p in (Path(path), Path(path).parent)] == [0o700, 0o700]
    os.chmod(path, 0o755)
    paths.make_private(path)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o700


def test_a_private_folder_that_cannot_be_made_is_the_users_to_mend(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot make the folder"):
        paths.make_private(str(tmp_path / "file" / "sub"))


def test_what_decides_over_later_turns_is_protected(env: dict[str, str], tmp_path: Path) -> None:
    home = Path(env["HOME"])
    (tmp_path / "dotfiles").mkdir()
    home.mkdir()
    (home / ".claude").symlink_to(tmp_path / "dotfiles")
    env["CLAUDE_CONFIG_DIR"] = "/srv/claude"
    found = paths.protected_dirs(env)
    expected = {
        paths.config_dir(env), paths.state_dir(env), paths.runtime_dir(env), str(ROOT), str(home / ".claude"),
        str(tmp_path / "dotfiles"), str(home / ".claude.json"), "/srv/claude", "/srv/claude/.claude.json",
    }  # fmt: skip
    assert expected <= set(found)
    assert all(map(os.path.isabs, found))
    assert len(found) == len(set(found))


def test_the_state_modules_load_nothing_heavy() -> None:
    code = (
        "import sys; import sidecar.paths, sidecar.slots, sidecar.store, sidecar.journal\n"
        "print(*sorted({m.partition('.')[0] for m in sys.modules}))"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    heavy = {"anyio", "asyncio", "jsonschema", "psutil", "platformdirs", "dataclasses", "tomllib", "tempfile"}
    heavy |= {"secrets", "random", "hashlib", "shutil", "pathlib", "subprocess"}
    site = subprocess.run([sys.executable, "-c", "import sys; print(*sys.modules)"], capture_output=True, text=True)
    assert not (heavy - set(site.stdout.split())) & set(run.stdout.split())
