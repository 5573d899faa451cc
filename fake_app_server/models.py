"""The catalog of the fake: a part of the one in Codex 0.171, in its words.

Owns: the default data of model/list. Does not own: paging and hiding (answers). Serves spec:cc-agents.fakes.
"""

from __future__ import annotations

from typing import Any

EFFORTS = {
    "low": "Fast responses with lighter reasoning",
    "medium": "Balances speed and reasoning depth for everyday tasks",
    "high": "Greater reasoning depth for complex problems",
    "xhigh": "Extra high reasoning depth for complex problems",
    "max": "Maximum reasoning depth for the hardest problems",
    "ultra": "Maximum reasoning with automatic task delegation",
}
ALL = tuple(EFFORTS)


def model(
    name: str,
    *,
    efforts: tuple[str, ...] = ALL,
    default_effort: str = "low",
    hidden: bool = False,
    default: bool = False,
    description: str = "A model of the fake catalog.",
) -> dict[str, Any]:
    """One entry of model/list, with every field that 0.171 sends."""
    return {
        "id": name,
        "model": name,
        "upgrade": None,
        "upgradeInfo": None,
        "availabilityNux": None,
        "displayName": name.upper(),
        "description": description,
        "modelSpecialty": None,
        "hidden": hidden,
        "supportedReasoningEfforts": [
            {"reasoningEffort": e, "description": EFFORTS.get(e, "An effort of this scenario")} for e in efforts
        ],
        "defaultReasoningEffort": default_effort,
        "inputModalities": ["text", "image"],
        "supportsPersonality": False,
        "multiAgentVersion": "v2",
        "additionalSpeedTiers": [],
        "serviceTiers": [],
        "defaultServiceTier": None,
        "availableAccessPrograms": None,
        "isDefault": default,
    }


def complete(entry: str | dict[str, Any], *, default: bool = False) -> dict[str, Any]:
    """An entry of a scenario: a bare name, or any of the wire's fields over the defaults.

    `supportedReasoningEfforts` may be a list of words.
    """
    if isinstance(entry, str):
        return model(entry, default=default)
    given = dict(entry)
    words = [e for e in given.get("supportedReasoningEfforts", ()) if isinstance(e, str)]
    if words:
        del given["supportedReasoningEfforts"]
    name = str(given.get("id") or given.get("model"))
    efforts = tuple(words) or ALL
    base = model(name, efforts=efforts, default_effort=efforts[0], default=default)
    return {**base, **given}


DEFAULT_MODELS = [
    model("gpt-6.2-sol", default=True, description="Fast, go-to model for coding and everyday work."),
    model("gpt-6.2-astra", description="Our most capable model for complex coding and professional work."),
    model("gpt-6-luna", efforts=ALL[:5], default_effort="medium"),
    model("gpt-5.6-sol"),
    model("codex-auto-review", efforts=ALL[:5], default_effort="medium", hidden=True),
    model("gpt-5.5", efforts=ALL[:4], default_effort="medium"),
]
