"""The codex adapter's own plan of a turn: what `check` found out and `run` needs. Owns no behaviour."""

from __future__ import annotations

from adapters.codex.binary import Binary
from adapters.codex.modes import Access
from adapters.codex.switches import Switch
from adapters.values import Value


class CodexPlan(Value):
    binary: Binary
    codex_home: str
    access: Access
    switches: tuple[Switch, ...]
    client_version: str
    warnings: tuple[str, ...] = ()
