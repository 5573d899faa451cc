"""Every field of every recorded message replaced by every odd value: nothing raises, nothing hangs, no false success.

Serves rule.bytesThenLinesThenText, rule.neverEmptySuccess. In memory.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from peer import ANSWERS, THREAD, TURN, Codex, Message, converse, done, line, message, opened, started
from recordings import names, recording

from adapters.codex.tracker import Tracker
from adapters.contract import Limits
from sidecar.records import dump, event_record

pytestmark = pytest.mark.rule("rule.bytesThenLinesThenText")

ODD: list[Any] = [None, True, 0, -1, 1.5, 10**30, "", "x", "\ud83d\0", [], [None], [[]], {}, {"type": 5}, {"id": {}}]


def places(value: Any) -> Iterator[tuple[Any, ...]]:
    """The path of every field below a value, lists by their first entry."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (key,)
            yield from ((key, *path) for path in places(inner))
    elif isinstance(value, list) and value:
        yield (0,)
        yield from ((0, *path) for path in places(value[0]))


def changed(value: Message, path: tuple[Any, ...], odd: Any) -> Message:
    whole = copy.deepcopy(value)
    node: Any = whole
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = odd
    return whole


def samples() -> dict[str, Message]:
    """One recorded message of each method and, for items, of each type; the ids as ours."""
    found: dict[str, Message] = {}
    for name in (*names(), "errors/http429_usage_limit", "errors/default_500"):
        for entry in recording(name):
            sent = entry["msg"]
            if entry["dir"] == "in" and "method" in sent and isinstance(sent.get("params"), dict):
                kind = sent["params"].get("item", {}).get("type", "")
                params = copy.deepcopy(sent["params"])
                params.update({k: v for k, v in (("threadId", THREAD), ("turnId", TURN)) if k in params})
                if "turn" in params:
                    params["turn"]["id"] = TURN
                found.setdefault(f"{sent['method']} {kind}".strip(), {"method": sent["method"], "params": params})
    return found


SAMPLES = samples()


@pytest.mark.parametrize("name", SAMPLES)
def test_no_odd_field_of_a_recorded_message_raises_or_makes_output_that_is_no_json(name: str) -> None:
    method, params = SAMPLES[name]["method"], SAMPLES[name]["params"]
    for path in places(params):
        for odd in ODD:
            events: list[Any] = []
            tracker = Tracker(events.append, lambda: 0.0, lambda: None)
            tracker.thread_opened(THREAD, fresh=False)
            tracker.turn_was_asked()
            tracker.turn_answered(TURN)
            for given in (changed(params, path, odd), params, changed(params, path, odd)):
                tracker.on_notification(method, given)
                tracker.on_request(method, given)
            told = [event_record(event) for event in events]
            rest = [tracker.answer.final, tracker.answer.partial, tracker.warnings, tracker.declined]
            assert dump([told, rest]).decode("utf-8"), (path, odd)


NO_WAIT = Limits(start_s=0.5, grace_s=0.05, idle_s=0.05)
RESULTS: dict[str, Message] = {
    "initialize": ANSWERS["initialize"],
    "config/read": {
        "config": {"model": None, "mcp_servers": {"a": {"enabled": True}}},
        "layers": [{"name": {"type": "user"}, "config": {}}],
    },
    "model/list": ANSWERS["model/list"],
    "account/read": ANSWERS["account/read"],
    "turn/start": ANSWERS["turn/start"],
}


@pytest.mark.parametrize("method", [*RESULTS, "thread/start"])
async def test_no_odd_field_of_an_answer_raises_or_makes_an_end_without_a_reason(method: str) -> None:
    def thread(path: tuple[Any, ...], odd: Any) -> Any:
        return lambda params: changed(opened(params), path, odd)

    profile = {"permissions": {"p": {"filesystem": {}}}, "default_permissions": "p"}
    asked = {"model": "m", "cwd": "/", "approvalPolicy": "never", "config": profile}
    sample = RESULTS.get(method) or opened(asked)
    for path in places(sample):
        for odd in ODD:
            answer = thread(path, odd) if method == "thread/start" else changed(sample, path, odd)
            codex = Codex([started(), message("A"), done()], answers={method: answer})
            ending = await converse(codex, limits=NO_WAIT)
            assert ending.status in ("completed", "failed", "refused", "interrupted"), (path, odd)
            assert (ending.error is None) is (ending.status == "completed")
            assert ending.status != "completed" or ending.final_text == "A"


@pytest.mark.rule("rule.neverEmptySuccess")
async def test_no_odd_field_of_the_end_of_a_turn_makes_a_success_without_an_answer() -> None:
    end = SAMPLES["turn/completed"]["params"]
    end = {**end, "turn": {**end["turn"], "items": []}}
    for path in places(end):
        for odd in ODD:
            last = line({"method": "turn/completed", "params": changed(end, path, odd)})
            ending = await converse(Codex([started(), last], ends=True), limits=NO_WAIT)
            assert ending.status != "completed", (path, odd)
