"""Which codex is started: the one that was named, and behind npm's script the native one. Serves design.binary."""

from __future__ import annotations

import json
import platform
import sys
from pathlib import Path

import pytest

from adapters.codex import binary
from adapters.contract import Refused

pytestmark = pytest.mark.rule("rule.guardedAppServer")

ARCH = {
    "x86_64": ("x64", "x86_64"),
    "amd64": ("x64", "x86_64"),
    "arm64": ("arm64", "aarch64"),
    "aarch64": ("arm64", "aarch64"),
}
NPM, MACHINE = ARCH[platform.machine().lower()]
OS, END = ("darwin", "apple-darwin") if sys.platform == "darwin" else ("linux", "unknown-linux-musl")
PACKAGE, TRIPLE = f"codex-{OS}-{NPM}", f"{MACHINE}-{END}"


def program(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def npm(root: Path) -> Path:
    """npm's layout with its command on a PATH folder; answers the package."""
    package = root / "lib" / "node_modules" / "@openai" / "codex"
    script = program(package / "bin" / "codex.js", "#!/usr/bin/env node\n")
    (root / "bin").mkdir()
    (root / "bin" / "codex").symlink_to(script)
    return package


def found(root: Path, named: str | None = None) -> binary.Binary:
    return binary.find(named, {"PATH": str(root / "bin"), "HOME": str(root)})


def test_the_codex_on_the_path_is_found(tmp_path: Path) -> None:
    path = program(tmp_path / "bin" / "codex")
    assert found(tmp_path) == binary.Binary(path=str(path), command=str(path))


def test_a_named_one_outweighs_the_path(tmp_path: Path) -> None:
    program(tmp_path / "bin" / "codex")
    other = program(tmp_path / "else" / "mine")
    assert found(tmp_path, str(other)).path == str(other)


@pytest.mark.parametrize("named", [None, "/no/such/codex", "", "nope"])
def test_none_is_refused_with_the_way_to_get_one(tmp_path: Path, named: str | None) -> None:
    with pytest.raises(Refused) as caught:
        found(tmp_path, named)
    (problem,) = caught.value.problems
    assert problem.reason == "codex_not_found"
    assert "npm install -g @openai/codex" in problem.message


PLACES = {
    "nested": f"node_modules/@openai/{PACKAGE}",
    "beside": f"../{PACKAGE}",
    "own": ".",
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("inside", ["bin/codex", "codex/codex"])
def test_behind_npms_script_the_native_one_is_found(tmp_path: Path, place: str, inside: str) -> None:
    package = npm(tmp_path)
    native = program((package / place).resolve() / "vendor" / TRIPLE / inside)
    answer = found(tmp_path)
    assert Path(answer.path).resolve() == native
    assert answer.command == str(tmp_path / "bin" / "codex")
    assert answer.shim == str((package / "bin" / "codex.js").resolve())


def test_the_packages_own_word_on_its_entry_counts_first(tmp_path: Path) -> None:
    vendor = npm(tmp_path) / "vendor" / TRIPLE
    program(vendor / "bin" / "codex")
    entry = program(vendor / "other" / "codex")
    (vendor / "codex-package.json").write_text(json.dumps({"entrypoint": "other/codex"}))
    assert Path(found(tmp_path).path).resolve() == entry


@pytest.mark.parametrize("manifest", ["{", "[]", "{}", '{"entrypoint": 5}', '{"entrypoint": "gone"}'])
def test_a_broken_word_on_the_entry_is_passed_by(tmp_path: Path, manifest: str) -> None:
    vendor = npm(tmp_path) / "vendor" / TRIPLE
    native = program(vendor / "bin" / "codex")
    (vendor / "codex-package.json").write_text(manifest)
    assert Path(found(tmp_path).path).resolve() == native


def test_npms_script_without_the_native_one_is_refused_and_never_started(tmp_path: Path) -> None:
    npm(tmp_path)
    with pytest.raises(Refused) as caught:
        found(tmp_path)
    assert "--omit=optional" in caught.value.problems[0].message
