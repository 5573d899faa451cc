"""Who may import whom, read from the source with `ast`.

Owns: the table of allowed imports, on this checkout and on small made-up trees. Does not own: what is loaded when
the command starts (the tests of rule.lightStart). Serves spec:cc-agents.adapter-contract.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

pytestmark = pytest.mark.rule("rule.importsHold")

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("sidecar", "adapters", "guard", "fake_app_server")
PROJECT = {*PACKAGES, "specs", "tests", "tests_live", "benchmarks"}
STANDARD = {
    *sys.stdlib_module_names,
    "tomllib",
}  # tomllib is missing from 3.10, where it is imported with a fallback
RUNTIME = {"anyio", "jsonschema", "psutil", "platformdirs", "tomli"}
# all that the sidecar may know
FROM_ADAPTERS = ("adapters.contract", "adapters.registry", "adapters.values", "adapters.version")
LAYERS = (  # from the outermost to the leaves; an import goes down or stays, never up
    ("sidecar.cli",),
    ("sidecar.commands",),
    ("sidecar.turn",),
    ("sidecar.slots", "sidecar.launch", "sidecar.store", "sidecar.journal", "sidecar.control"),
    tuple(f"sidecar.{name}" for name in ("request", "outcome", "config", "paths", "deadlines", "errors")),
)


class Import(NamedTuple):
    place: str  # file:line
    importer: str
    target: str


# --- reading --------------------------------------------------------------------------------------------------


def modules(root: Path) -> dict[str, Path]:
    """Every module of the four packages, by its dotted name."""
    found = {}
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(root: Path) -> list[Import]:
    known = modules(root)
    found = []
    for importer, path in known.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            place = f"{path.relative_to(root).as_posix()}:{getattr(node, 'lineno', 0)}"
            package = importer if path.name == "__init__.py" else importer.rpartition(".")[0]
            found += [Import(place, importer, target) for target in targets(node, package, known)]
    return found


def targets(node: ast.AST, package: str, known: dict[str, Path]) -> Iterator[str]:
    """The modules that one statement or call imports."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = ".".join(package.split(".")[: len(package.split(".")) - node.level + 1]) if node.level else ""
        module = ".".join(part for part in (base, node.module) if part)
        for alias in node.names:
            inner = f"{module}.{alias.name}"
            yield inner if inner in known else module
    elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in (
        "import_module",
        "__import__",
    ):
        for argument in node.args[:1]:
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                yield argument.value


def named_harnesses(root: Path) -> Iterator[str]:
    """Texts in the sidecar's code, docstrings apart, that name a harness' module."""
    for importer, path in modules(root).items():
        if not below(importer, "sidecar"):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
                if re.search(r"\badapters[./]codex\b", node.value):
                    yield f"{path.relative_to(root).as_posix()}:{node.lineno}: names {node.value}"


# --- judging --------------------------------------------------------------------------------------------------


def below(module: str, *tops: str) -> bool:
    return any(module == top or module.startswith(f"{top}.") for top in tops)


def allowed(importer: str, target: str) -> bool:
    own, top = importer.split(".")[0], target.split(".")[0]
    if importer == "adapters.values":
        return top in STANDARD or top == "typing_extensions"  # for a type checker alone
    if importer == "adapters.contract":
        return top in STANDARD or target == "adapters.values"
    if own in ("guard", "fake_app_server"):
        return top in STANDARD or top == own
    if top not in PROJECT:
        return top in STANDARD or top in (RUNTIME if importer != "adapters.jsonrpc" else {"anyio"})
    if importer == "sidecar.commands.demo" and target == "fake_app_server.shim":
        return True  # the demo's codex is the fake
    if below(importer, "sidecar"):
        return below(target, "sidecar", *FROM_ADAPTERS)
    if importer == "adapters.jsonrpc":
        return target in ("adapters.contract", "adapters.values")
    if below(importer, "adapters.codex"):
        return below(target, "adapters") and target != "adapters.registry"
    return below(target, "adapters") and (importer == "adapters.registry" or not below(target, "adapters.codex"))


def layer(module: str) -> int | None:
    return next((level for level, tops in enumerate(LAYERS) if below(module, *tops)), None)


def upward(found: list[Import]) -> Iterator[str]:
    """Imports from a lower layer to a higher one, also by way of modules that stand in no layer."""
    inside = [i for i in found if below(i.importer, "sidecar") and below(i.target, "sidecar")]
    for first in inside:
        level = layer(first.importer)
        if level is None:
            continue
        seen, left = set(), [first.target]
        while left:
            module = left.pop()
            reached = layer(module)
            if reached is not None and reached < level:
                yield f"{first.place}: {first.importer} reaches up to {module}"
            elif reached is None and module not in seen:
                seen.add(module)
                left += [i.target for i in inside if i.importer == module]


def faults(root: Path) -> list[str]:
    found = imports(root)
    wrong = [f"{i.place}: {i.importer} imports {i.target}" for i in found if not allowed(i.importer, i.target)]
    return [*wrong, *upward(found), *named_harnesses(root)]


# --- this checkout --------------------------------------------------------------------------------------------


def test_imports_of_this_checkout_go_only_where_they_may() -> None:
    found = imports(ROOT)
    assert {i.importer.split(".")[0] for i in found} == set(PACKAGES)
    assert ("adapters.contract", "collections.abc") in {(i.importer, i.target) for i in found}
    assert faults(ROOT) == []


# --- the checker can fail -------------------------------------------------------------------------------------

SOUND = {
    "sidecar/__init__.py": "",
    "sidecar/cli.py": "from sidecar.commands import run\nimport argparse\n",
    "sidecar/commands/__init__.py": "",
    "sidecar/commands/run.py": "from sidecar import turn, server\nfrom ..errors import UserError\n",
    "sidecar/server.py": "from sidecar import turn\n",
    "sidecar/turn.py": "import anyio\nfrom adapters import contract, registry\nfrom sidecar.slots import Slot\n",
    "sidecar/slots.py": "from . import paths\n",
    "sidecar/paths.py": '"""Never adapters.codex."""\nimport platformdirs\nfrom sidecar.errors import UserError\n',
    "sidecar/errors.py": "",
    "sidecar/render.py": "from sidecar import errors\n",
    "adapters/__init__.py": "",
    "adapters/contract.py": "from typing import Protocol\n",
    "adapters/registry.py": "from importlib import import_module\nimport_module('adapters.codex.adapter')\n",
    "adapters/jsonrpc.py": "import anyio\nfrom adapters.contract import PeerError\n",
    "adapters/codex/__init__.py": "",
    "adapters/codex/adapter.py": "from adapters import jsonrpc\nfrom adapters.codex.usage import Usage\n",
    "adapters/codex/usage.py": "from ..contract import Usage\nimport tomli as tomllib\n",
    "guard/guard.py": "import os, select\nfrom guard.record import Record\n",
    "guard/record.py": "import json\n",
    "fake_app_server/__main__.py": "from fake_app_server import scenario\n",
    "fake_app_server/scenario.py": "import json\n",
}


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def test_a_tree_that_keeps_to_the_table_has_no_fault(tmp_path: Path) -> None:
    assert faults(write(tmp_path, SOUND)) == []


@pytest.mark.parametrize(
    ("path", "line", "fault"),
    [
        (
            "sidecar/turn.py",
            "from adapters.codex import adapter",
            "sidecar.turn imports adapters.codex.adapter",
        ),
        ("sidecar/turn.py", "from adapters import codex", "sidecar.turn imports adapters.codex"),
        ("sidecar/turn.py", "import adapters.jsonrpc", "sidecar.turn imports adapters.jsonrpc"),
        ("sidecar/turn.py", "NAME = 'adapters.codex.adapter'", "names adapters.codex.adapter"),
        ("sidecar/turn.py", "def f(): import requests", "sidecar.turn imports requests"),
        ("sidecar/turn.py", "import guard.guard", "sidecar.turn imports guard.guard"),
        ("sidecar/turn.py", "import fake_app_server", "sidecar.turn imports fake_app_server"),
        ("sidecar/turn.py", "from .commands import run", "sidecar.turn reaches up to sidecar.commands.run"),
        ("sidecar/slots.py", "def f(): from sidecar import turn", "sidecar.slots reaches up to sidecar.turn"),
        ("sidecar/slots.py", "from sidecar import server", "sidecar.slots reaches up to sidecar.turn"),
        ("sidecar/paths.py", "from .slots import Slot", "sidecar.paths reaches up to sidecar.slots"),
        (
            "sidecar/commands/run.py",
            "from sidecar import cli",
            "sidecar.commands.run reaches up to sidecar.cli",
        ),
        (
            "adapters/codex/usage.py",
            "from sidecar import paths",
            "adapters.codex.usage imports sidecar.paths",
        ),
        (
            "adapters/codex/usage.py",
            "from .. import registry",
            "adapters.codex.usage imports adapters.registry",
        ),
        ("adapters/codex/usage.py", "import guard", "adapters.codex.usage imports guard"),
        (
            "adapters/jsonrpc.py",
            "from adapters.codex import usage",
            "adapters.jsonrpc imports adapters.codex.usage",
        ),
        ("adapters/jsonrpc.py", "import psutil", "adapters.jsonrpc imports psutil"),
        ("adapters/registry.py", "import sidecar", "adapters.registry imports sidecar"),
        ("adapters/contract.py", "import anyio", "adapters.contract imports anyio"),
        (
            "adapters/contract.py",
            "from adapters import jsonrpc",
            "adapters.contract imports adapters.jsonrpc",
        ),
        ("guard/guard.py", "import psutil", "guard.guard imports psutil"),
        ("guard/record.py", "from sidecar import paths", "guard.record imports sidecar.paths"),
        ("guard/record.py", "import fake_app_server", "guard.record imports fake_app_server"),
        ("fake_app_server/scenario.py", "import anyio", "fake_app_server.scenario imports anyio"),
        (
            "fake_app_server/scenario.py",
            "import adapters.jsonrpc",
            "fake_app_server.scenario imports adapters.jsonrpc",
        ),
        (
            "fake_app_server/scenario.py",
            "__import__('specs')",
            "fake_app_server.scenario imports specs",
        ),
    ],
)
def test_one_wrong_import_is_found_with_its_file_and_line(tmp_path: Path, path: str, line: str, fault: str) -> None:
    lines = SOUND[path].count("\n")
    root = write(tmp_path, SOUND | {path: f"{SOUND[path]}{line}\n"})
    assert faults(root) == [f"{path}:{lines + 1}: {fault}"]


def test_an_import_under_type_checking_counts_too(tmp_path: Path) -> None:
    source = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from sidecar.turn import Turn\n"
    root = write(tmp_path, SOUND | {"sidecar/errors.py": source})
    assert faults(root) == ["sidecar/errors.py:3: sidecar.errors reaches up to sidecar.turn"]
