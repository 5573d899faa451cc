"""Which model and effort a turn gets, decided before a thread is started.

Owns: the order of the places that name them, and the refusal that lists what works. Codex itself accepts any name
and then says nothing for ever (codex-facts section 5). Serves rule.catalogCheck.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adapters.contract import ModelInfo, Problem, Sourced
from adapters.values import Value

CODEX_CONFIG = "codex config"
CATALOG_DEFAULT = "catalog default"
MODEL_DEFAULT = "model default"
BUILT_IN_PROVIDER = "openai"


class Choice(Value):
    model: Sourced | None
    effort: Sourced | None
    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()


def models_from_wire(result: Mapping[str, Any]) -> tuple[ModelInfo, ...]:
    """The entries of a model/list result; an entry without an id is passed by."""
    data = result.get("data")
    entries = [e for e in data if isinstance(e, Mapping)] if isinstance(data, list) else []
    return tuple(_model(e) for e in entries if isinstance(e.get("model") or e.get("id"), str))


def _model(entry: Mapping[str, Any]) -> ModelInfo:
    efforts = entry.get("supportedReasoningEfforts")
    default = entry.get("defaultReasoningEffort")
    return ModelInfo(
        id=entry.get("model") or entry["id"],
        hidden=bool(entry.get("hidden")),
        default=bool(entry.get("isDefault")),
        efforts=tuple(
            e["reasoningEffort"]
            for e in (efforts if isinstance(efforts, list) else ())
            if isinstance(e, Mapping) and isinstance(e.get("reasoningEffort"), str)
        ),
        default_effort=default if isinstance(default, str) else None,
        description=str(entry.get("description") or ""),
    )


def choose(
    asked_model: Sourced | None,
    asked_effort: Sourced | None,
    config: Mapping[str, Any],
    models: Sequence[ModelInfo],
) -> Choice:
    """Model: asked, Codex's configuration for the directory, the catalog's default. Effort: asked, Codex's
    configuration, the model's default. Every problem is found at once."""
    model = asked_model or _configured(config, "model") or _default(models)
    effort = asked_effort or _configured(config, "model_reasoning_effort")
    if model is None:
        return Choice(
            model=None,
            effort=effort,
            problems=(
                Problem(reason="unknown_model", message="Codex names no default model: ask for one with --model"),
            ),
        )
    known = next((m for m in models if m.id == model.value), None)
    if known is None:
        return _unknown(model, effort, config, models)
    if effort is None and known.default_effort is not None:
        effort = Sourced(value=known.default_effort, source=MODEL_DEFAULT)
    if effort is not None and known.efforts and effort.value not in known.efforts:
        problem = Problem(
            reason="unknown_effort",
            message=f"unknown effort {effort.value!r} ({effort.source}) for {known.id}: "
            f"one of {', '.join(known.efforts)}",
        )
        return Choice(model=model, effort=effort, problems=(problem,))
    return Choice(model=model, effort=effort)


def _unknown(model: Sourced, effort: Sourced | None, config: Mapping[str, Any], models: Sequence[ModelInfo]) -> Choice:
    own_provider = config.get("model_provider") not in (None, BUILT_IN_PROVIDER)
    if own_provider and model.value == config.get("model"):
        # the user's provider has models that Codex's own catalog can't know
        warning = f"model {model.value!r} is not in Codex's catalog; sent as the user's own provider is configured"
        return Choice(model=model, effort=effort, warnings=(warning,))
    listed = ", ".join(m.id for m in models if not m.hidden) or "none (the catalog is empty)"
    problem = Problem(
        reason="unknown_model", message=f"unknown model {model.value!r} ({model.source}): one of {listed}"
    )
    problems = [problem]
    efforts = sorted({e for m in models for e in m.efforts})
    if effort is not None and efforts and effort.value not in efforts:
        problems.append(
            Problem(
                reason="unknown_effort",
                message=f"unknown effort {effort.value!r} ({effort.source}): one of {', '.join(efforts)}",
            )
        )
    return Choice(model=model, effort=effort, problems=tuple(problems))


def _configured(config: Mapping[str, Any], key: str) -> Sourced | None:
    value = config.get(key)
    return Sourced(value=value, source=CODEX_CONFIG) if isinstance(value, str) and value else None


def _default(models: Sequence[ModelInfo]) -> Sourced | None:
    for model in models:
        if model.default:
            return Sourced(value=model.id, source=CATALOG_DEFAULT)
    return None
