"""A second adapter, small enough to read at a glance: its harness is a shell that says back what it was told.

Owns nothing of cc-agents: it is registered by a test. Serves rule.oneContract.
"""

from __future__ import annotations

from collections.abc import Mapping

from adapters.contract import (
    AgentRequest,
    BegunEvent,
    Channel,
    Control,
    Effective,
    Ending,
    Events,
    Limits,
    Mode,
    Preview,
    Problem,
    Refused,
    Resolved,
    TextDelta,
    TurnError,
)  # fmt: skip


class EchoAdapter:
    name = "echo"
    slot_key = "echo"
    modes: tuple[Mode, ...] = ("read-only",)

    def check(self, request: AgentRequest, environ: Mapping[str, str]) -> Resolved:
        if "silence" in request.prompt:
            raise Refused(Problem(reason="bad_request", message="there is nothing to say"))
        return Resolved(request=request, argv=("/bin/cat",), env={"PATH": environ["PATH"]}, cwd=request.cwd, plan="p")

    async def preview(self, channel: Channel, resolved: Resolved, limits: Limits) -> Preview:
        return Preview(effective=Effective(mode=resolved.request.mode))

    async def run(
        self, channel: Channel, resolved: Resolved, events: Events, control: Control, limits: Limits
    ) -> Ending:
        assert resolved.plan == "p"
        events(BegunEvent(thread="E", turn="1"))
        wanted, heard = resolved.request.prompt.encode() + b"\n", b""
        await channel.send(wanted)
        while not heard.endswith(b"\n"):
            data = await channel.receive()
            if not data:
                error = TurnError(kind="other", reason="app_server_exited", message="it hung up")
                return Ending(status="failed", error=error)
            heard += data
        text = heard[:-1].decode()
        events(TextDelta(item="1", text=text))
        effective = Effective(mode=resolved.request.mode, cwd=resolved.cwd)
        return Ending(status="completed", final_text=text, thread="E", turn="1", effective=effective, confirmed=True)
