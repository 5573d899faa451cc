"""The tests and the rules they name, read from source with `ast`.

Owns: finding `@pytest.mark.rule("…")` on functions, classes, parameters and in `pytestmark`. No test is imported.
Does not own: whether the named rules exist (specs/table.py).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

TEST_FOLDERS = ("tests", "tests_live")


class MarkError(Exception):
    """A rule mark whose key can't be read from the source. Its text is one line: file, line number, fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTest:
    """One test function. `rules` holds each named key with the line of its mark."""

    path: str
    line: int
    name: str
    rules: tuple[tuple[str, int], ...]

    @property
    def live(self) -> bool:
        return self.path.startswith("tests_live/")


def load_tests(root: Path) -> tuple[FoundTest, ...]:
    """Every test below `root`/tests and `root`/tests_live. Raises MarkError."""
    tests: list[FoundTest] = []
    for folder in TEST_FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            if path.name.startswith("test_") or path.name.endswith("_test.py"):
                tests += read_tests(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))
    return tuple(tests)


def read_tests(path: str, source: str) -> list[FoundTest]:
    """The tests of one file. Raises MarkError, also where the file is not Python."""
    try:
        tree = ast.parse(source, path)
    except SyntaxError as error:
        raise MarkError(f"{path}:{error.lineno}: not Python: {error.msg}") from error
    return list(_Reader(path, tree).tests())


class _Reader:
    def __init__(self, path: str, tree: ast.Module) -> None:
        self.path = path
        self.tree = tree
        self.named = {
            target.id: statement.value
            for statement in tree.body
            if isinstance(statement, ast.Assign)
            for target in statement.targets
            if isinstance(target, ast.Name) and target.id != "pytestmark"
        }

    def tests(self) -> Iterator[FoundTest]:
        yield from self.inside(self.tree.body, (), "")

    def inside(self, body: Iterable[ast.stmt], outer: tuple[tuple[str, int], ...], prefix: str) -> Iterator[FoundTest]:
        body = list(body)
        outer += self.keys(
            s.value
            for s in body
            if isinstance(s, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "pytestmark" for t in s.targets)
        )
        for node in body:
            if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
                keys = outer + self.keys(node.decorator_list)
                yield from self.inside(node.body, keys, f"{prefix}{node.name}::")
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test"):
                keys = outer + self.keys(node.decorator_list)
                unique = tuple(dict(reversed(keys)).items())[::-1]
                yield FoundTest(path=self.path, line=node.lineno, name=prefix + node.name, rules=unique)

    def keys(self, expressions: Iterable[ast.expr]) -> tuple[tuple[str, int], ...]:
        return tuple(key for expression in expressions for key in self.keys_in(expression))

    def keys_in(self, expression: ast.expr) -> Iterator[tuple[str, int]]:
        for node in ast.walk(expression):
            if isinstance(node, ast.Call) and _is_rule_mark(node.func):
                yield from self.arguments(node)
            elif isinstance(node, ast.Name) and node.id in self.named:
                # a mark, or a list of parameters that carry marks, under a name of this module
                for inner in ast.walk(self.named[node.id]):
                    if isinstance(inner, ast.Call) and _is_rule_mark(inner.func):
                        yield from self.arguments(inner)

    def arguments(self, call: ast.Call) -> Iterator[tuple[str, int]]:
        if not call.args:
            raise MarkError(f"{self.path}:{call.lineno}: a rule mark without a key")
        for argument in call.args:
            if not (isinstance(argument, ast.Constant) and isinstance(argument.value, str)):
                raise MarkError(f"{self.path}:{argument.lineno}: a rule mark must hold its key as plain text")
            yield argument.value, argument.lineno


def _is_rule_mark(function: ast.expr) -> bool:
    """`pytest.mark.rule` or `mark.rule`."""
    if not (isinstance(function, ast.Attribute) and function.attr == "rule"):
        return False
    owner = function.value
    return (isinstance(owner, ast.Attribute) and owner.attr == "mark") or (
        isinstance(owner, ast.Name) and owner.id == "mark"
    )
