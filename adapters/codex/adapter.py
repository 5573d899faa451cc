"""The codex adapter: GPT through the user's own Codex, one app-server per turn.

Owns `check`: what can be known before anything is started. Imports nothing heavy: the conversation is loaded while
Codex boots. Serves rule.modes, rule.mcpOff, design.binary, design.capKey.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from adapters.codex import binary, folders, home_files, modes, switches, worktrees
from adapters.codex.plan import CodexPlan
from adapters.contract import (
    MODES,
    AgentRequest,
    Channel,
    Control,
    Ending,
    Events,
    Finding,
    Limits,
    Mode,
    Preview,
    Problem,
    Refused,
    Resolved,
    Trial,
)
from adapters.version import VERSION


class CodexAdapter:
    name = "codex"
    slot_key = "codex"
    modes: tuple[Mode, ...] = MODES

    def check(self, request: AgentRequest, environ: Mapping[str, str]) -> Resolved:
        """Raises Refused with every problem that can be seen without starting Codex."""
        problems: list[Problem] = []
        found = None
        try:
            found = binary.find(request.harness_bin, environ)
        except Refused as refused:
            problems += refused.problems
        home = codex_home(environ)
        if environ.get("CODEX_HOME") and not os.path.isdir(home):
            problems.append(Problem(reason="bad_request", message=f"CODEX_HOME is {home}, which is not a folder"))
        if request.mode != "yolo" and (file := home_files.other_executors(home)):
            message = f"{file} sends commands to another executor, where the mode can't be shown to hold: move it away"
            problems.append(Problem(reason="mode_not_enforced", message=message))
        if found is None:
            raise Refused(*problems)
        laid_out = folders.lay_out(request, environ, codex_home=home, codex=binary.parts(found))
        if problems := [*problems, *laid_out.problems]:
            raise Refused(*problems)
        access = modes.access_of(request, laid_out, profile=f"cc-agents-{os.urandom(8).hex()}")
        off = switches.switches_for(request.mode, network=access.network)
        argv = [found.path, "app-server", *switches.flags(off, home_files.user_servers(home))]
        plan = CodexPlan(
            binary=found,
            codex_home=home,
            access=access,
            switches=off,
            client_version=VERSION,
            warnings=worktrees.outside(request, laid_out),
        )
        env = switches.environment(environ) | ({"TMPDIR": laid_out.tmpdir} if laid_out.tmpdir else {})
        return Resolved(request=request, argv=tuple(argv), env=env, cwd=request.cwd, plan=plan)

    async def preview(self, channel: Channel, resolved: Resolved, limits: Limits) -> Preview:
        from adapters.codex import preview

        return await preview.ask(channel, resolved, limits)

    async def run(
        self, channel: Channel, resolved: Resolved, events: Events, control: Control, limits: Limits
    ) -> Ending:
        from adapters.codex.conversation import Conversation

        return await Conversation(channel, resolved, events, control, limits).run()

    async def recall(
        self, channel: Channel, resolved: Resolved, thread: str, turn: str | None, limits: Limits
    ) -> Ending:
        from adapters.codex import recall

        return await recall.recall(channel, resolved, thread, turn, limits)

    def tidy(self, resolved: Resolved) -> None:
        from adapters.codex import placeholders

        plan: CodexPlan = resolved.plan
        placeholders.remove(plan.access.folders.placeholders, resolved.env)

    def examine(self, request: AgentRequest, environ: Mapping[str, str]) -> tuple[Finding, ...]:
        from adapters.codex import examine

        return examine.examine(request, environ, codex_home(environ))

    def trial(self, resolved: Resolved, forbidden: str) -> Trial:
        from adapters.codex import examine

        return examine.trial(resolved, forbidden)

    def start_again(self, message: str) -> bool:
        from adapters.codex.errors import is_busy_start

        return is_busy_start(message)


def codex_home(environ: Mapping[str, str]) -> str:
    """$CODEX_HOME, else ~/.codex; absolute."""
    named = environ.get("CODEX_HOME")
    if named:
        return os.path.abspath(named)
    return os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".codex")
