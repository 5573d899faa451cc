"""Which adapters there are, by name. Owns the one place where a harness' module is named; loads it when asked."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from adapters.contract import Adapter

DEFAULT = "codex"

# name -> "module:class"
ADAPTERS: dict[str, str] = {"codex": "adapters.codex.adapter:CodexAdapter"}


def load(name: str = DEFAULT) -> Adapter:
    """Raises KeyError for a name that nobody registered."""
    module, _, attribute = ADAPTERS[name].partition(":")
    return cast(Adapter, getattr(import_module(module), attribute)())
