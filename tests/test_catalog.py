"""Model and effort by their places, in memory. Serves rule.catalogCheck. Through the command: test_turn_models.py."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.codex.catalog import choose, models_from_wire
from adapters.contract import ModelInfo, Sourced

pytestmark = pytest.mark.rule("rule.catalogCheck")


def model(name: str, *efforts: str, **more: Any) -> ModelInfo:
    given: dict[str, Any] = {"hidden": False, "default": False, "default_effort": efforts[0] if efforts else None}
    return ModelInfo(id=name, efforts=efforts, **{**given, **more})


MODELS = [model("sol", "low", "max", "ultra", default=True), model("mini", "low", "high"), model("old", hidden=True)]


def asked(value: str, source: str = "--model") -> Sourced:
    return Sourced(value=value, source=source)


@pytest.mark.parametrize(
    ("model_asked", "config", "expected"),
    [
        (asked("mini"), {"model": "sol"}, ("mini", "--model")),
        (None, {"model": "mini"}, ("mini", "codex config")),
        (None, {"model": ""}, ("sol", "catalog default")),
        (None, {"model": 5}, ("sol", "catalog default")),
        (None, {}, ("sol", "catalog default")),
        (asked("old"), {}, ("old", "--model")),
    ],
)
def test_the_model_comes_from_the_first_place_that_names_one(
    model_asked: Sourced | None, config: dict[str, Any], expected: tuple[str, str]
) -> None:
    choice = choose(model_asked, None, config, MODELS)
    assert choice.model is not None
    assert (choice.model.value, choice.model.source, choice.problems) == (*expected, ())


def test_the_effort_comes_from_the_first_place_that_names_one() -> None:
    def effort(given: Sourced | None, config: dict[str, Any]) -> tuple[str, str] | None:
        found = choose(None, given, config, MODELS).effort
        return (found.value, found.source) if found else None

    config = {"model_reasoning_effort": "max"}
    assert effort(asked("ultra", "--effort"), config) == ("ultra", "--effort")
    assert effort(None, config) == ("max", "codex config")
    assert effort(None, {}) == ("low", "model default")
    assert choose(asked("old"), None, {}, MODELS).effort is None


def test_a_configured_effort_that_the_model_lacks_is_refused_with_its_source() -> None:
    (problem,) = choose(asked("mini"), None, {"model_reasoning_effort": "ultra"}, MODELS).problems
    assert problem.reason == "unknown_effort"
    assert "'ultra' (codex config) for mini: one of low, high" in problem.message


def test_a_model_without_known_efforts_takes_any() -> None:
    assert choose(asked("old"), asked("zany", "--effort"), {}, MODELS).problems == ()


def test_an_unknown_model_is_refused_with_those_that_are_listed() -> None:
    (problem,) = choose(asked("gpt-9"), None, {}, MODELS).problems
    assert problem.message == "unknown model 'gpt-9' (--model): one of sol, mini"


def test_the_users_own_provider_may_have_a_model_that_the_catalog_lacks() -> None:
    config = {"model": "llama", "model_provider": "mine"}
    choice = choose(None, None, config, MODELS)
    assert choice.problems == ()
    assert "'llama'" in choice.warnings[0]
    assert choose(asked("other"), None, config, MODELS).problems, "only the model that is configured for it"
    assert choose(None, None, {"model": "llama", "model_provider": "openai"}, MODELS).problems


def test_without_any_model_there_is_no_guess() -> None:
    (problem,) = choose(None, None, {}, [model("x")]).problems
    assert problem.reason == "unknown_model"


@pytest.mark.parametrize("result", [{}, {"data": None}, {"data": "x"}, {"data": [5, None, {}, {"id": 5}]}])
def test_a_catalog_of_another_shape_is_empty(result: dict[str, Any]) -> None:
    assert models_from_wire(result) == ()


def test_odd_entries_are_read_as_far_as_they_go() -> None:
    entry = {"id": "a", "supportedReasoningEfforts": ["x", {"reasoningEffort": "low"}, {"reasoningEffort": 5}, None]}
    (found,) = models_from_wire({"data": [{**entry, "defaultReasoningEffort": 7, "description": None}]})
    assert (found.id, found.efforts, found.default_effort, found.description) == ("a", ("low",), None, "")
