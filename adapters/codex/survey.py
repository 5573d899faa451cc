"""What a configuration needs beyond the switches that are always thrown: known only when Codex has read it.

Owns: MCP servers of every layer, secrets that the configuration sets, roles of the user's own, and what outranks us.
Does not own how each is said to Codex (switches.py) or where it is written (layers.py).
Serves rule.mcpOff, rule.secretsKept, rule.saysWhatWasDone.
"""

from __future__ import annotations

from typing import Any

from adapters.codex import layers, project_root, switches
from adapters.codex.plan import CodexPlan
from adapters.codex.session import Session
from adapters.codex.switches import NO_AGENTS, Switch
from adapters.contract import Problem
from adapters.values import Value

MODE_NOT_ENFORCED = "mode_not_enforced"


class Survey(Value):
    switches: tuple[Switch, ...]
    servers: tuple[str, ...]
    secrets: tuple[str, ...]
    roles: tuple[str, ...]
    outranking: tuple[str, ...]
    root_is_cwd: bool  # of the project; False too where Codex shall look itself

    @property
    def problems(self) -> list[Problem]:
        return [Problem(reason=MODE_NOT_ENFORCED, message=text) for text in self.outranking]

    @property
    def warnings(self) -> list[str]:
        if NO_AGENTS not in self.switches:
            return []
        named = ", ".join(self.roles)
        return [f"sub-agents are off: a role of your own ({named}) could undo what is switched off here"]

    @property
    def switched_off(self) -> tuple[str, ...]:
        return (
            *(f"mcp_servers.{name}" for name in self.servers),
            *(s.key for s in self.switches),
            *(f"shell_environment_policy.set.{name}" for name in self.secrets),
        )

    def thread_config(self) -> dict[str, Any]:
        config = switches.without(switches.thread_config(self.switches, self.servers), self.secrets)
        return {**config, project_root.MARKERS: []} if self.root_is_cwd else config


def survey(plan: CodexPlan, session: Session) -> Survey:
    sandboxed, keeps_secrets = plan.access.mode != "yolo", not plan.access.network
    roles = switches.roles(session.config, layers.folders_of(session.layers, plan.codex_home)) if sandboxed else ()
    thrown = (*plan.switches, *((NO_AGENTS,) if roles else ()))
    servers = switches.configured_servers(session.config)
    return Survey(
        root_is_cwd=sandboxed and project_root.is_cwd(plan.access.cwd, session.layers),
        switches=thrown,
        servers=servers,
        secrets=switches.secret_settings(session.config) if keeps_secrets else (),
        roles=roles,
        outranking=tuple(
            layers.outranking(session.layers, session.requirements or {}, thrown, servers, secrets=keeps_secrets)
        ),
    )
