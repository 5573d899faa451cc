"""Which folders a turn may write, which stay read-only below them, and which it can't even read. By real paths.

Owns: that arithmetic, and the requests that are refused because it doesn't come out. Does not own the profile that is
made of it (modes.py), nor which folders of ours decide about later turns (the request says them).
Serves rule.futureTurnsProtected, rule.profileTellsAll, rule.directories; the sandbox mounts each entry by itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

from adapters.codex import placeholders
from adapters.contract import AgentRequest, Problem
from adapters.values import Value

SLASH_TMP = "/tmp"
# Codex keeps these read-only in each writable folder, and can't where one is a symbolic link.
KEPT_BY_CODEX = (".git", ".codex", ".agents")
# What Claude Code loads from a project. Unlike the user's own it may be stated as an added folder.
OF_THE_PROJECT = (".claude", ".mcp.json")
# Folders of a configuration that are often links into another one, of dotfiles say.
LINKED_FROM = ("", "rules", "agents", "hooks", "skills", "commands")
MAX_LINKS = 40  # as the kernel


class Folders(Value):
    """`roots` are what was asked for beside the directory; `pinned` lie on the way from one to what is kept read-only:
    writable all the same, but mounts of their own, so that none can be renamed from above what it holds."""

    roots: tuple[str, ...] = ()
    pinned: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    placeholders: tuple[str, ...] = ()  # what isn't there and may be, empty, when the turn is over
    tmpdir: str | None = None  # what TMPDIR has to be instead
    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def added(self) -> tuple[str, ...]:
        """What holds beyond what was asked, for the outcome."""
        kept = (f"read-only {path}" for path in self.read_only if path not in self.denied)
        unreadable = (f"unreadable {path}" for path in self.denied)
        return (*kept, *unreadable, *((f"TMPDIR={self.tmpdir}",) if self.tmpdir else ()))


def lay_out(
    request: AgentRequest, environ: Mapping[str, str], *, codex_home: str, codex: tuple[str, ...] = ()
) -> Folders:
    """`codex` are the files and folders of its installation: they decide about later turns as ours do."""
    if request.mode == "yolo":
        return Folders()
    guards = [codex_home, *_state_of_codex(environ), *codex, *request.protected]
    tmpdir, warnings = _tmpdir(environ, guards, writes=request.mode == "write")
    denied = tuple(dict.fromkeys(map(os.path.realpath, (os.path.join(codex_home, "auth.json"), *request.private))))
    if request.mode == "read-only":
        return Folders(denied=denied, tmpdir=tmpdir, warnings=warnings)
    cwd = os.path.realpath(request.cwd)
    roots = list(dict.fromkeys(map(os.path.realpath, (cwd, *request.add_dirs, *request.writable_dirs))))
    temporary = [os.path.realpath(SLASH_TMP)]
    if here := (tmpdir or environ.get("TMPDIR")):
        temporary.append(os.path.realpath(here))
    writable = [*roots, *temporary]
    problems = [*_too_wide(roots), *_inside(roots, guards), *_replaceable(guards, writable), *_odd_links(roots)]
    guards += [*_folders_of_links(guards, writable), *_linked_into(guards, writable)]
    kept, unkept = _of_the_project(roots)
    pinned, read_only = _keep([*map(os.path.realpath, guards), *kept], writable)
    return Folders(
        roots=tuple(r for r in roots if r != cwd),
        pinned=tuple(p for p in pinned if p not in roots),
        read_only=read_only,
        denied=_deniable(denied, read_only),
        placeholders=placeholders.missing((*writable, *pinned), read_only),
        tmpdir=tmpdir,
        problems=tuple(problems),
        warnings=(*warnings, *unkept),
    )


def _deniable(denied: tuple[str, ...], read_only: tuple[str, ...]) -> tuple[str, ...]:
    """What isn't there can't be mounted over inside a read-only mount; nor does it have to be. One is needed."""
    found = tuple(d for d in denied if os.path.exists(d) or not _any_within(os.path.dirname(d), read_only))
    return found or denied


def within(path: str, folder: str) -> bool:
    """Is it the folder, or below it?"""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _any_within(path: str, folders: Iterable[str]) -> bool:
    return any(within(path, f) for f in folders)


def _state_of_codex(environ: Mapping[str, str]) -> list[str]:
    """Where else Codex keeps what decides about a thread's next turn: goals and queued messages."""
    named = environ.get("CODEX_SQLITE_HOME", "")
    return [named] if os.path.isabs(named) else []


# --- temporary folders ------------------------------------------------------------------------------------------


def _tmpdir(environ: Mapping[str, str], guards: Iterable[str], *, writes: bool) -> tuple[str | None, tuple[str, ...]]:
    """Another TMPDIR, where the user's is none or would make more writable than a temporary folder."""
    named = environ.get("TMPDIR")
    if not named:
        return None, ()
    real = os.path.realpath(named)
    if not os.path.isabs(named) or not os.path.isdir(real):
        why = "which is no folder"
    elif writes and real != os.path.realpath(SLASH_TMP) and (held := _held(real, environ, guards)):
        why = f"which would make {held} writable"
    else:
        return None, ()
    return SLASH_TMP, (f"TMPDIR is {named}, {why}: Codex gets {SLASH_TMP}",)


def _held(tmpdir: str, environ: Mapping[str, str], guards: Iterable[str]) -> str | None:
    home = environ.get("HOME") or os.path.expanduser("~")
    if tmpdir == "/":
        return "the whole file system"
    for path in (home, *guards):
        real = os.path.realpath(path)
        if within(real, tmpdir) or (path != home and within(tmpdir, real)):
            return path
    return None


# --- what can't be had ------------------------------------------------------------------------------------------


def _too_wide(roots: list[str]) -> Iterator[Problem]:
    if "/" in roots:
        yield _refused("/ as a writable folder is the whole file system: name a folder below it, or say --mode yolo")


def _inside(roots: list[str], guards: Iterable[str]) -> Iterator[Problem]:
    seen = set()
    for root in roots:
        for guard in guards:
            real = os.path.realpath(guard)
            if within(root, real) and (root, real) not in seen:
                seen.add((root, real))
                yield _refused(
                    f"{root} is inside {guard}, which decides about later turns and stays read-only: "
                    "use another folder, or say --mode yolo"
                )


def _replaceable(guards: Iterable[str], writable: list[str]) -> Iterator[Problem]:
    """A link in a writable folder can be replaced, and then leads somewhere else: no mount can hold it."""
    for link, guard in _links_in(guards, writable):
        if os.path.dirname(link) in writable:
            yield _refused(
                f"{link} is a symbolic link in a writable folder and leads to {guard}, which decides about later "
                "turns: the turn could replace it. Use a folder that does not hold the link"
            )


def _folders_of_links(guards: Iterable[str], writable: list[str]) -> list[str]:
    """A link further down can be held, with the folder that it lies in."""
    return [os.path.dirname(link) for link, _ in _links_in(guards, writable)]


def _links_in(guards: Iterable[str], writable: list[str]) -> list[tuple[str, str]]:
    found = {link: guard for guard in reversed(list(guards)) for link in links_of(guard)}
    return [(link, guard) for link, guard in found.items() if _any_within(os.path.dirname(link), writable)]


def _odd_links(roots: list[str]) -> Iterator[Problem]:
    for root in roots:
        for name in KEPT_BY_CODEX:
            if os.path.islink(link := os.path.join(root, name)):
                yield _refused(
                    f"{link} is a symbolic link: Codex's sandbox can't keep it read-only and refuses every command. "
                    "Remove it, use another folder, or say --mode read-only"
                )


def links_of(path: str) -> list[str]:
    """Every symbolic link on the way to a path, each by the real path of its folder."""
    found: list[str] = []
    rest = [part for part in os.path.abspath(path).split("/") if part]
    here = "/"
    while rest and len(found) < MAX_LINKS:
        part = rest.pop(0)
        if part in (".", ".."):
            here = os.path.dirname(here) if part == ".." else here
            continue
        here = os.path.join(here, part)
        if os.path.islink(here):
            found.append(here)
            target = os.readlink(here)
            rest = [p for p in target.split("/") if p] + rest
            here = "/" if target.startswith("/") else os.path.dirname(here)
    return found


def _refused(message: str) -> Problem:
    return Problem(reason="bad_request", message=message)


# --- what is kept ------------------------------------------------------------------------------------------------


def _linked_into(guards: Iterable[str], writable: list[str]) -> list[str]:
    """Files of a configuration that are links into a writable folder: what they lead to is kept as well."""
    found = []
    for guard in guards:
        for name in LINKED_FROM:
            try:
                entries = list(os.scandir(os.path.join(guard, name)))
            except OSError:
                continue  # not there, or a file
            found += [os.path.realpath(e.path) for e in entries if e.is_symlink()]
    return [path for path in dict.fromkeys(found) if _any_within(path, writable)]


def _of_the_project(roots: list[str]) -> tuple[list[str], list[str]]:
    """What is there of Claude Code's in the writable folders, unless it was stated; and what can't be kept."""
    kept, unkept = [], []
    for root in roots:
        for name in OF_THE_PROJECT:
            path = os.path.join(root, name)
            if os.path.islink(path):
                unkept.append(f"{path} is a symbolic link and not kept read-only")
            elif os.path.exists(path) and path not in roots:
                kept.append(path)
    return kept, unkept


def _keep(guards: Iterable[str], writable: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The mounts that keep them: what lies on the way, and the guards, or of one that isn't there the first part that
    is missing: what is made in its place would be a guard's."""
    pinned: dict[str, None] = {}
    kept: dict[str, None] = {}
    for guard in guards:
        tops = [w for w in writable if within(guard, w) and guard != w]
        if not tops:
            continue  # nothing above it is writable
        here = min(tops, key=len)
        for part in os.path.relpath(guard, here).split("/"):
            here = os.path.join(here, part)
            if here == guard or not os.path.isdir(here):
                kept[here] = None
                break
            pinned[here] = None
    read_only = tuple(k for k in kept if not any(within(k, o) for o in kept if o != k))
    return tuple(p for p in pinned if not _any_within(p, read_only)), read_only
