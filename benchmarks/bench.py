"""What all parts share: the options, how many runs, our command, and the worlds in which turns run.

Owns: the temporary folders and the model's process, made when a part first needs them, gone at the end.
Does not own: any measurement. A world is a home of its own; nothing of the user's gets in.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from benchmarks.codex_world import CodexWorld, open_codex_world
from benchmarks.fake_world import FakeWorld, open_fake_world

ROOT = Path(__file__).resolve().parent.parent


@dataclass(kw_only=True)
class Bench:
    """`codex` is the native binary, None without one; `node_plugin` a checkout of OpenAI's plugin for Claude Code."""

    codex: str | None
    node_plugin: Path | None = None
    quick: bool = False
    trials: int | None = None
    tell: Callable[[str], None] = lambda _: None
    _stack: ExitStack = field(default_factory=ExitStack)

    def times(self, usual: int, quick: int = 3) -> int:
        """How often something is run."""
        return quick if self.quick else usual

    @cached_property
    def codex_world(self) -> CodexWorld:
        assert self.codex is not None, "a part that needs codex was begun without one"
        return self._stack.enter_context(open_codex_world(ROOT, self.codex, ours(), self.node_plugin))

    @contextmanager
    def fake_world(self) -> Iterator[FakeWorld]:
        """A new one each time: the parts with the fake fill their folders."""
        with open_fake_world(ROOT, ours()) as world:
            yield world

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def ours() -> list[str]:
    """The command as a user starts it: from the checkout, with the environment that runs this benchmark."""
    return [str(ROOT / "bin" / "cc-agents")]


def python() -> list[str]:
    """The bare Python that the quick verbs are held against: started as bin/cc-agents starts its own."""
    return [os.path.join(sys.prefix, "bin", "python"), "-I", "-c", "pass"]
