"""The user's options: what they are, where each value came from, and everything that is wrong with them at once.

Owns: config.toml, CC_AGENTS_*, CLAUDE_PLUGIN_OPTION_*, option flags, and their order. Does not own: the request (mode,
network and the rest of one turn), or whether a harness knows a model. Serves spec:cc-agents.codex-adapter.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from adapters.values import Value
from sidecar import deadlines, paths
from sidecar.errors import UserError

DEFAULT_TIMEOUT_S = 30 * 60.0  # a turn that spins must not eat a week's quota overnight
DEFAULT_IDLE_TIMEOUT_S = 15 * 60.0  # the longest silent build or test run that is still work
DEFAULT_KEEP_DAYS = 30
DEFAULT_KEEP_COUNT = 1000
FILE = "config.toml"
REASON = "bad_option"

T = TypeVar("T")
Problem = tuple[str, str]  # (reason, message), the reason always REASON


class Setting(Value, Generic[T]):
    """A value and the place it came from, as the user names it: `config.toml`, `CC_AGENTS_MODEL`, `--model`."""

    value: T
    source: str = "default"


class Settings(Value):
    """Every option. Durations are seconds and None is no limit; paths in `writable_dirs` are absolute, not real."""

    codex_bin: Setting[str | None] = Setting(value=None)
    model: Setting[str | None] = Setting(value=None)
    effort: Setting[str | None] = Setting(value=None)
    caps: Setting[Mapping[str, int]] = Setting(value={})
    writable_dirs: Setting[tuple[str, ...]] = Setting(value=())
    timeout: Setting[float | None] = Setting(value=DEFAULT_TIMEOUT_S)
    idle_timeout: Setting[float | None] = Setting(value=DEFAULT_IDLE_TIMEOUT_S)
    start_timeout: Setting[float] = Setting(value=deadlines.START_S)
    grace: Setting[float] = Setting(value=deadlines.GRACE_S)
    keep_days: Setting[int] = Setting(value=DEFAULT_KEEP_DAYS)
    keep_count: Setting[int] = Setting(value=DEFAULT_KEEP_COUNT)
    prices: Setting[Mapping[str, Mapping[str, float]]] = Setting(value={})  # by model, for a million tokens each

    def items(self) -> Iterator[tuple[str, Setting[Any]]]:
        """Each option's name and setting, in the order of this class."""
        return ((name, getattr(self, name)) for name in Settings.fields)


class ConfigProblems(UserError):
    """The options cannot be used. Raised by `load_settings`, with every problem that was found."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__(REASON, "\n".join(message for _, message in problems))
        self.problems = problems


# --- one value ------------------------------------------------------------------------------------------------
# A parser gets what a file, a variable or a flag held, and raises ValueError with the end of a sentence.

# Patterns stay texts: `re` compiles them when they are first used, which most starts never do.
_NUMBER = r"[0-9]{1,9}(?:\.[0-9]{1,6})?"
_DURATION = rf"(?:([0-9]{{1,9}})d)?(?:([0-9]{{1,9}})h)?(?:([0-9]{{1,9}})m)?(?:({_NUMBER})s)?"
_UNITS_S = (86400, 3600, 60, 1)
_KEY = r"[a-z0-9][a-z0-9_-]*"


def parse_duration(text: str) -> float:
    """Seconds of "90s", "30m", "1h30m", "2h", "1d" or a plain number of seconds. Raises ValueError; 0 is refused."""
    text = text.strip().lower()
    found = re.fullmatch(_DURATION, text + "s" if re.fullmatch(_NUMBER, text) else text)
    if not text or not found:
        raise ValueError(f"is not a duration like 90s, 30m or 1h30m: {text!r}")
    seconds = sum(float(n) * unit for n, unit in zip(found.groups(), _UNITS_S, strict=True) if n)
    if seconds <= 0:
        raise ValueError('must be more than zero; "none" is no limit')
    return seconds


def parse_limit(raw: object, environ: Mapping[str, str] | None = None) -> float | None:
    """A duration, or None for "none": no limit. Numbers are seconds. Raises ValueError."""
    if isinstance(raw, bool) or not isinstance(raw, str | int | float):
        raise ValueError(f"is not a duration like 90s, 30m or 1h30m: {raw!r}")
    if isinstance(raw, str):
        return None if raw.strip().lower() == "none" else parse_duration(raw)
    if not 0 < raw < float("inf"):  # TOML has inf and nan
        raise ValueError('must be more than zero; "none" is no limit')
    return float(raw)


def _bound(raw: object, environ: Mapping[str, str]) -> float:
    limit = parse_limit(raw, environ)
    if limit is None:
        raise ValueError("can't be none: what waits for Codex has an end")
    return limit


def _word(raw: object, _environ: Mapping[str, str]) -> str:
    if not isinstance(raw, str) or not raw.strip() or not raw.isprintable():
        raise ValueError(f"must be a text on one line, not {raw!r}")
    return raw.strip()


def _executable(raw: object, environ: Mapping[str, str]) -> str:
    return paths.expand(_word(raw, environ), environ)


def _count(raw: object, _environ: Mapping[str, str]) -> int:
    if isinstance(raw, str) and re.fullmatch(r"\d{1,9}", raw.strip(), re.ASCII):
        raw = int(raw)
    if isinstance(raw, bool) or not isinstance(raw, int) or raw < 1:
        raise ValueError(f"must be a whole number of at least 1, not {raw!r}")
    return raw


def _caps(raw: object, environ: Mapping[str, str]) -> Mapping[str, int]:
    if isinstance(raw, str):
        raw = _json(raw) if raw.lstrip().startswith("{") else _pairs(raw)
    if not isinstance(raw, Mapping):
        raise ValueError(f"must name slots and numbers, like codex=4, not {raw!r}")
    found = {}
    for name, n in raw.items():
        if not re.fullmatch(_KEY, name):
            raise ValueError(f"has no slot that can be called {name!r}")
        try:
            found[name] = _count(n, environ)
        except ValueError as e:
            raise ValueError(f"for {name} {e}") from e
    return found


def _pairs(text: str) -> dict[str, str]:
    pairs = [p.partition("=") for p in re.split(r"[,\s]+", text.strip()) if p]
    if any(not eq for _, eq, _ in pairs):
        raise ValueError(f"must name slots and numbers, like codex=4, not {text!r}")
    return {name: n for name, _, n in pairs}


def _folders(raw: object, environ: Mapping[str, str]) -> tuple[str, ...]:
    if isinstance(raw, str):
        raw = _json(raw) if raw.lstrip().startswith("[") else [p for p in raw.split(os.pathsep) if p]
    if not isinstance(raw, list | tuple):
        raise ValueError(f"must be a list of folders, not {raw!r}")
    return tuple(dict.fromkeys(_folder(p, environ) for p in raw))


def _folder(raw: object, environ: Mapping[str, str]) -> str:
    if not isinstance(raw, str) or not raw or "\0" in raw:
        raise ValueError(f"must be a list of folders, and {raw!r} is none")
    path = paths.expand(raw, environ)
    if not os.path.isabs(path):
        raise ValueError(f"holds {raw!r}, which is relative; write it in full or with ~")
    return path


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as e:
        raise ValueError(f"is not valid JSON: {e}") from e


PRICED = ("input", "cached_input", "output")


def _prices(raw: object, _environ: Mapping[str, str]) -> Mapping[str, Mapping[str, float]]:
    """All three of a model or none: a price that isn't there would have to be guessed."""
    if isinstance(raw, str):
        raw = _json(raw)
    if not isinstance(raw, Mapping):
        raise ValueError(f"must name models and their {', '.join(PRICED)} for a million tokens, not {raw!r}")
    found = {}
    for model, given in raw.items():
        if not isinstance(given, Mapping) or set(given) != set(PRICED):
            raise ValueError(f"for {model} must have exactly {', '.join(PRICED)}")
        for name, price in given.items():
            if isinstance(price, bool) or not isinstance(price, int | float) or not 0 <= price < float("inf"):
                raise ValueError(f"for {model} has no number of at least 0 as {name}")
        found[str(model)] = {name: float(price) for name, price in given.items()}
    return found


_PARSERS: dict[str, Callable[[object, Mapping[str, str]], Any]] = {
    "codex_bin": _executable,
    "model": _word,
    "effort": _word,
    "caps": _caps,
    "writable_dirs": _folders,
    "timeout": parse_limit,
    "idle_timeout": parse_limit,
    "start_timeout": _bound,
    "grace": _bound,
    "keep_days": _count,
    "keep_count": _count,
    "prices": _prices,
}

# --- all of them ----------------------------------------------------------------------------------------------


def load_settings(environ: Mapping[str, str], flags: Mapping[str, object]) -> Settings:
    """The options in force: config.toml, then CC_AGENTS_*, then CLAUDE_PLUGIN_OPTION_*, then `flags` by option name.

    A later place wins over an earlier one, whole. An empty variable and a flag of None are unset; other names in
    `flags` are passed by. A value is checked even where a later one wins. Raises `ConfigProblems`.
    """
    problems: list[Problem] = []
    given = [*_from_file(environ, problems), *_from_environ(environ, problems)]
    given += [(name, flags[name], "--" + name.replace("_", "-")) for name in _PARSERS if flags.get(name) is not None]
    found = {name: _setting(name, raw, source, environ, problems) for name, raw, source in given}
    if problems:
        raise ConfigProblems(problems)
    return Settings(**found)


def _setting(name: str, raw: object, source: str, environ: Mapping[str, str], problems: list[Problem]) -> Setting[Any]:
    try:
        return Setting(value=_PARSERS[name](raw, environ), source=source)
    except ValueError as e:
        key = f"{name} in {source}" if source == FILE else source
        problems.append((REASON, f"{key} {e}"))
        return Setting(value=None, source=source)


_NO_MODE = "is not an option: the mode is read-only unless the request itself says otherwise (--mode, or the header)"


def _from_environ(environ: Mapping[str, str], problems: list[Problem]) -> list[tuple[str, object, str]]:
    # A stray CLAUDE_PLUGIN_OPTION_MODE may be another plugin's (they share the prefix) and counts for nothing.
    if environ.get("CC_AGENTS_MODE"):
        problems.append((REASON, f"CC_AGENTS_MODE {_NO_MODE}"))
    return [
        (name, environ[variable], variable)
        for prefix in ("CC_AGENTS_", "CLAUDE_PLUGIN_OPTION_")
        for name in _PARSERS
        if environ.get(variable := prefix + name.upper())
    ]


def _from_file(environ: Mapping[str, str], problems: list[Problem]) -> list[tuple[str, object, str]]:
    given: list[tuple[str, object, str]] = []
    for key, raw in _read(config_file(environ), problems).items():
        if key in _PARSERS:
            given.append((key, raw, FILE))
        elif key == "mode":
            problems.append((REASON, f"mode in {FILE} {_NO_MODE}"))
        else:
            known = ", ".join(_PARSERS)
            problems.append((REASON, f"{key} in {FILE} is not an option; there are: {known}"))
    return given


def config_file(environ: Mapping[str, str]) -> str:
    """Where config.toml is looked for."""
    return os.path.join(paths.config_dir(environ), FILE)


def _read(path: str, problems: list[Problem]) -> dict[str, Any]:
    try:
        with open(path, "rb") as f:
            data = f.read()
    except FileNotFoundError:
        return {}
    except OSError as e:
        problems.append((REASON, f"cannot read {path}: {e.strerror}"))
        return {}
    loads = _toml()
    try:
        return loads(data.decode("utf-8"))
    except ValueError as e:  # TOMLDecodeError and UnicodeDecodeError; the first names line and column
        problems.append((REASON, f"{path} is not valid TOML: {e}"))
        return {}


def _toml() -> Callable[[str], dict[str, Any]]:
    # Loaded only when there is a file: most users have none, and it costs as much as json and re together.
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    return tomllib.loads
