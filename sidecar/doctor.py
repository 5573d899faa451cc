"""The whole chain that a turn needs, link by link: options, folders, Codex, its sandbox, slots, what was left over.

Owns the order and the sidecar's own findings. What it finds of the harness the adapter says. Mends nothing.
Serves rule.doctor.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
from collections.abc import Iterator, Mapping

from adapters import registry
from adapters.contract import Adapter, Examinable, Finding, Refused, Resolved, Trial
from sidecar import capacity, config, paths, slots
from sidecar.config import Setting, Settings
from sidecar.errors import UserError
from sidecar.leftovers import tidy
from sidecar.request import Flags, TurnRequest, build
from sidecar.store import Store
from sidecar.views import tables

TRIAL_S = 20.0  # the command takes half a second; a sandbox that hangs must not hold a doctor
BIG_STATE_BYTES = 1 << 30
OLD_SLOT_S = 12 * 3600.0  # a turn that long is possible, and worth a look
PROMPT = "doctor"


def examine(environ: Mapping[str, str], cwd: str | None = None) -> Iterator[Finding]:
    """One finding after the other, as soon as it is known."""
    try:
        settings = config.load_settings(environ, {})
    except UserError as error:
        yield from _failures("options", error, f"mend it in {paths.config_dir(environ)}/config.toml or the environment")
        most_needed = Setting(value=environ.get("CC_AGENTS_CODEX_BIN") or None)
        settings = Settings(codex_bin=most_needed)
    yield from options(settings)
    yield from folders(environ)
    yield from harness(settings, environ, cwd)
    yield from slots_taken(settings, environ)
    yield from left_over(environ)


def _failures(name: str, error: UserError, todo: str = "") -> Iterator[Finding]:
    for line in error.message.splitlines():
        yield Finding(level="failure", name=name, text=line, todo=todo)


# --- our own ----------------------------------------------------------------------------------------------------


def options(settings: Settings) -> Iterator[Finding]:
    for name, setting in settings.items():
        yield Finding(level="ok", name="option", text=f"{name} = {_value(setting.value)} ({setting.source})")


def _value(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, Mapping):
        return " ".join(f"{k}={v}" for k, v in value.items()) or "none"
    if isinstance(value, tuple):
        return os.pathsep.join(map(str, value)) or "none"
    return f"{value:g} s" if isinstance(value, float) else str(value)


def folders(environ: Mapping[str, str]) -> Iterator[Finding]:
    state = paths.state_dir(environ)
    try:
        paths.make_private(state)
        size, jobs = size_of(state), len(Store(state).list_jobs())
        big = size > BIG_STATE_BYTES
        text = f"{state}: {jobs} jobs, {size / (1 << 20):.1f} MiB"
        todo = "lower the options keep_days or keep_count" if big else ""
        yield Finding(level="warning" if big else "ok", name="state", text=text, todo=todo)
    except UserError as error:
        yield from _failures("state", error)
    try:
        yield Finding(level="ok", name="runtime", text=paths.runtime_dir(environ))
    except UserError as error:
        yield from _failures("runtime", error)


def size_of(folder: str) -> int:
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(path, name)).st_size
            except OSError:
                continue  # a turn removed it meanwhile
    return total


def slots_taken(settings: Settings, environ: Mapping[str, str]) -> Iterator[Finding]:
    try:
        runtime = paths.runtime_dir(environ)
        for key in slots.keys(runtime) or ["codex"]:
            holders = slots.holders(runtime, key)
            cap = settings.caps.value.get(key) or capacity.default_cap()
            yield Finding(level="ok", name="slots", text=f"{key}: {len(holders)} of {cap} taken")
            for holder in holders:
                yield _holder(holder)
    except UserError as error:
        yield from _failures("slots", error)


def _holder(holder: slots.Holder) -> Finding:
    since = tables.age(holder.started_at) if holder.started_at is not None else "an unknown time"
    text = f"slot {holder.slot}: job {holder.job or 'unknown'} for {since} in {holder.cwd or 'an unknown folder'}"
    old = holder.started_at is not None and tables.is_older(holder.started_at, OLD_SLOT_S)
    todo = f"`cc-agents interrupt {holder.job}` ends it" if old else ""
    return Finding(level="warning" if old else "ok", name="slots", text=text, todo=todo)


def left_over(environ: Mapping[str, str]) -> Iterator[Finding]:
    state = paths.state_dir(environ)
    if not os.path.isdir(state):
        return  # which is told already
    store = Store(state)
    turns = {view.job for view in tidy.left_behind(store)}
    for turn in tidy.marked_turns():
        try:
            turns |= {turn} if store.read(turn).over else set()
        except UserError:
            continue  # another store's, or an inquiry that runs now
    if not turns:
        yield Finding(level="ok", name="orphans", text="nothing is left of earlier turns")
    for turn in sorted(turns):
        yield Finding(
            level="warning",
            name="orphans",
            text=f"something may be left of job {turn}, whose sidecar is gone",
            todo="run `cc-agents reap`",
        )


# --- the harness ------------------------------------------------------------------------------------------------


def harness(settings: Settings, environ: Mapping[str, str], cwd: str | None) -> Iterator[Finding]:
    adapter: Adapter = registry.load("codex")
    request = _request(settings, environ, cwd)
    if isinstance(request, list):
        yield from request
        return
    if isinstance(adapter, Examinable):
        yield from adapter.examine(request.agent, environ)
    resolved = None
    try:
        resolved = adapter.check(request.agent, environ)
    except Refused as refused:
        yield from (Finding(level="failure", name="request", text=p.message) for p in refused.problems)
    yield from _write_mode(adapter, settings, environ, cwd)
    if resolved is None:
        return
    yield from _asked(adapter, resolved, request, environ)
    if isinstance(adapter, Examinable):
        yield attempt(adapter, resolved, environ)


def _request(
    settings: Settings, environ: Mapping[str, str], cwd: str | None, mode: str = "read-only"
) -> TurnRequest | list[Finding]:
    outside = {k: v for k, v in environ.items() if k != "CC_AGENTS_TURN"}  # a doctor may look from inside of a turn
    try:
        return build(Flags(prompt=PROMPT, cwd=cwd, mode=mode), settings, outside)
    except Refused as refused:
        return [Finding(level="failure", name="request", text=p.message) for p in refused.problems]


def _write_mode(adapter: Adapter, settings: Settings, environ: Mapping[str, str], cwd: str | None) -> Iterator[Finding]:
    request = _request(settings, environ, cwd, "write")
    if isinstance(request, list):
        return
    try:
        adapter.check(request.agent, environ)
        yield Finding(level="ok", name="write mode", text=f"can be had in {request.agent.cwd}")
    except Refused as refused:
        for problem in refused.problems:
            yield Finding(level="warning", name="write mode", text=problem.message)


def _asked(adapter: Adapter, resolved: Resolved, request: TurnRequest, environ: Mapping[str, str]) -> Iterator[Finding]:
    from sidecar import inquiry  # with an event loop in it

    try:
        preview = inquiry.ask(adapter, resolved, request.limits, environ)
    except UserError as error:
        yield from _failures("codex answers", error, "run `codex` once; what it says is more than this")
        return
    effective = preview.effective
    version = effective.codex.get("version") or "a version that it does not say"
    yield Finding(level="ok", name="codex answers", text=f"it is {version}, and its configuration loads")
    for problem in preview.problems:
        yield Finding(level="failure", name=problem.reason, text=problem.message)
    for warning in preview.warnings:
        yield Finding(level="warning", name="codex", text=warning)
    if not any(p.reason == "not_signed_in" for p in preview.problems):
        yield Finding(level="ok", name="signed in", text="as far as Codex knows without asking the provider")
    if effective.model is not None:
        yield Finding(level="ok", name="model", text=f"{effective.model.value} ({effective.model.source})")
    yield Finding(level="ok", name="switched off", text=", ".join(effective.switched_off) or "nothing")


def attempt(adapter: Examinable, resolved: Resolved, environ: Mapping[str, str]) -> Finding:
    """One harmless command through the real sandbox, with a bound."""
    forbidden = os.path.join(paths.state_dir(environ), f"doctor-{secrets.token_hex(6)}")
    trial = adapter.trial(resolved, forbidden)
    try:
        return trial.judge(*run_bounded(trial, TRIAL_S))
    except OSError as error:
        return Finding(level="failure", name="sandbox", text=f"{trial.argv[0]} can't be started: {error.strerror}")
    finally:
        if os.path.exists(forbidden):
            os.unlink(forbidden)


def run_bounded(trial: Trial, limit_s: float) -> tuple[int | None, str]:
    """Exit code and output; None when it was killed, with its whole group, after the limit. Raises OSError."""
    with subprocess.Popen(
        trial.argv,
        env=dict(trial.env),
        cwd=trial.cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        try:
            said, _ = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            said, _ = process.communicate()
            return None, said.decode(errors="replace")
    return process.returncode, said.decode(errors="replace")
