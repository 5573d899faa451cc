"""Where cc-agents keeps things, and which folders a turn must never be able to write.

Owns: the configuration, state and runtime folders, their privacy, the protected list.
Does not own: what lies in them (config, store, slots), or any folder of a harness.
Serves spec:cc-agents.codex-adapter, design sections 3, 5, 7 and 8.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping

from sidecar.errors import UserError

APP = "cc-agents"
_LINUX = sys.platform.startswith("linux")


def home(environ: Mapping[str, str]) -> str:
    """The user's home directory: an absolute $HOME, else by the password database. Raises `UserError`."""
    if os.path.isabs(path := environ.get("HOME", "")):
        return path
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError as e:
        raise UserError("no_home", "there is no home directory; set HOME") from e


def expand(path: str, environ: Mapping[str, str]) -> str:
    """`~` and `~/x` by `environ`, `~name` by the password database; anything else unchanged."""
    if path == "~" or path.startswith("~/"):
        return home(environ) + path[1:]
    return os.path.expanduser(path)


def config_dir(environ: Mapping[str, str]) -> str:
    """The folder of config.toml. Not created. The same with and without Claude Code's plugin variables."""
    return _base(environ, "XDG_CONFIG_HOME", ".config", "user_config_dir")


def state_dir(environ: Mapping[str, str]) -> str:
    """The folder of the jobs. Not created here: see `make_private`."""
    return _base(environ, "XDG_STATE_HOME", ".local/state", "user_state_dir")


def _base(environ: Mapping[str, str], variable: str, default: str, name: str) -> str:
    # platformdirs costs as much as all else on the way to `status`, and on Linux it says just this.
    if os.path.isabs(base := environ.get(variable, "")):
        return os.path.join(base, APP)
    if _LINUX:
        return os.path.join(home(environ), default, APP)
    import platformdirs

    return str(getattr(platformdirs, name)(APP))


def runtime_dir(environ: Mapping[str, str], *, run_root: str = "/run/user", temp_root: str = "/tmp") -> str:
    """The private folder of slots and sockets, which exists when this returns.

    $XDG_RUNTIME_DIR if it is ours and private, else where logind puts that folder, else `<temp>/cc-agents-<uid>`.
    $TMPDIR counts only where there is no usable /tmp: programs that set it differently must still share the slots.
    Raises `UserError` ("runtime_dir") when the last resort belongs to somebody else, is a link, or cannot be made.
    """
    path, shared = _runtime_place(environ, run_root, temp_root)
    return make_private(path, reason="runtime_dir", follow=not shared)


def _runtime_place(
    environ: Mapping[str, str], run_root: str = "/run/user", temp_root: str = "/tmp"
) -> tuple[str, bool]:
    """The path of the runtime folder, and whether others may create names beside it. Creates nothing."""
    uid = os.geteuid()
    for base in (environ.get("XDG_RUNTIME_DIR", ""), os.path.join(run_root, str(uid))):
        if os.path.isabs(base) and _usable(base, uid):
            return os.path.join(base, APP), False
    temp = temp_root
    if not os.access(temp, os.W_OK | os.X_OK) and os.path.isabs(other := environ.get("TMPDIR", "")):
        temp = other
    return os.path.join(temp, f"{APP}-{uid}"), True


def _usable(base: str, uid: int) -> bool:
    try:
        st = os.stat(base)
    except OSError:
        return False
    private = stat.S_ISDIR(st.st_mode) and st.st_uid == uid and not st.st_mode & 0o077
    return private and os.access(base, os.W_OK | os.X_OK)


def make_private(path: str, *, reason: str = "state_dir", follow: bool = True) -> str:
    """Make `path` a folder of mode 0700 that is ours, parents included; returns `path`.

    `follow=False` refuses a link, for places where others may create names too. Raises `UserError` with `reason`.
    """
    try:
        _mkdir(path)
        st = os.stat(path) if follow else os.lstat(path)
        problem = _not_ours(st)
        if problem is None and stat.S_IMODE(st.st_mode) != 0o700:
            os.chmod(path, 0o700)
    except OSError as e:
        raise UserError(reason, f"cannot make the folder {path}: {e.strerror}") from e
    if problem:
        raise UserError(reason, f"{path} {problem}; remove it, or set XDG_RUNTIME_DIR or XDG_STATE_HOME")
    return path


def _mkdir(path: str) -> None:
    try:
        os.mkdir(path, 0o700)
    except FileNotFoundError:
        _mkdir(os.path.dirname(path))
        _mkdir(path)
    except FileExistsError:
        pass  # what it is gets checked by the caller


def _not_ours(st: os.stat_result) -> str | None:
    if stat.S_ISLNK(st.st_mode):
        return "is a symbolic link"
    if not stat.S_ISDIR(st.st_mode):
        return "is not a folder"
    if st.st_uid != os.geteuid():
        return f"belongs to another user (uid {st.st_uid})"
    if st.st_mode & 0o022:
        return f"can be written by others (mode {stat.S_IMODE(st.st_mode):04o})"
    return None


def installation_dir() -> str:
    """The folder that holds this package."""
    return os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def protected_dirs(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Absolute paths that no turn may write, even below a writable folder: what decides over later turns.

    Ours, the Python that runs us, and Claude Code's configuration (one of them, ~/.claude.json, is a file). A path
    whose real place differs is listed with both, since either could be replaced. They need not exist.
    """
    user = home(environ)
    claude = environ.get("CLAUDE_CONFIG_DIR", "")
    wanted = [
        config_dir(environ),
        state_dir(environ),
        _runtime_place(environ)[0],
        installation_dir(),
        *_python(),
        os.path.join(user, ".claude"),
        os.path.join(user, ".claude.json"),
    ]
    if os.path.isabs(claude):
        wanted += [claude, os.path.join(claude, ".claude.json")]
    paths = [os.path.normpath(p) for p in wanted]
    return tuple(dict.fromkeys([*paths, *map(os.path.realpath, paths)]))


def private_dirs(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Real paths that a turn must not even read: a socket there reaches other turns. They need not exist."""
    return (os.path.realpath(_runtime_place(environ)[0]),)


def _python() -> list[str]:
    """The interpreter, its library, and the virtual environment around them, if there is one."""
    around = [sys.prefix] if sys.prefix != sys.base_prefix else []
    return [*around, os.path.dirname(os.path.realpath(sys.executable)), os.path.dirname(os.path.abspath(os.__file__))]
