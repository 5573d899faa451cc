"""What goes wrong on Codex's side: one kind, one reason, Codex's own words, and nothing is tried again.

Serves rule.errorKinds, rule.exitCodes. The recorded failures: test_error_recordings.py; the table: test_error_kinds.py.
"""

from __future__ import annotations

from typing import Any

import pytest
from peer import Codex, converse, done, started
from turns import ANSWER, START, User

from sidecar.outcome import Timing, of_ending

pytestmark = pytest.mark.rule("rule.errorKinds")

CASES: dict[str, tuple[Any, str, tuple[str, str, int]]] = {
    "quota by its kind": ("usageLimitExceeded", "rate limit reached", ("quota", "usage_limit_exceeded", 4)),
    "rate limit by its status": (
        {"httpConnectionFailed": {"httpStatusCode": 429}}, "x", ("rate-limit", "http_connection_failed", 5)
    ),
    "auth by its kind": ("unauthorized", "x", ("auth", "unauthorized", 3)),
    "a full window is no error of capacity": (
        "contextWindowExceeded", "at capacity, unauthorized", ("other", "context_window", 1)
    ),
    "capacity by its kind": ("serverOverloaded", "x", ("capacity", "server_overloaded", 6)),
    "capacity by its text": ("other", "Selected model is at capacity. Try another.", ("capacity", "codex_error", 6)),
    "capacity by its code as text": (None, "server_is_overloaded", ("capacity", "codex_error", 6)),
    "a used refresh token": ("other", "Your refresh token was already used", ("auth", "codex_error", 3)),
    "a model that the account lacks": (
        "other", "The 'gpt-x' model is not supported when using Codex with a ChatGPT account.",
        ("other", "codex_error", 1),
    ),
    "a kind of tomorrow": ("brandNewThing", "something new", ("other", "brand_new_thing", 1)),
    "an object of tomorrow": ({"newThing": {"httpStatusCode": 503}}, "x", ("capacity", "new_thing", 6)),
}  # fmt: skip


@pytest.mark.rule("rule.exitCodes")
@pytest.mark.parametrize(("info", "text", "expected"), CASES.values(), ids=CASES)
async def test_a_failed_turn_has_one_kind_and_one_exit_code(
    info: Any, text: str, expected: tuple[str, str, int]
) -> None:
    kind, reason, code = expected
    ending = await converse(Codex([started(), done("failed", error={"message": text, "codexErrorInfo": info})]))
    assert ending.error is not None
    assert (ending.status, ending.error.kind, ending.error.reason) == ("failed", kind, reason)
    assert (ending.error.message, ending.error.codex_error_info) == (text, info)
    outcome = of_ending(ending, job="j", timing=Timing(), processes_ended=0, signal=None, warnings=())
    assert outcome.exit_code == code


@pytest.mark.rule("rule.exitCodes")
@pytest.mark.parametrize("case", ["quota by its kind", "auth by its kind"])
def test_run_ends_with_the_exit_code_of_the_kind_and_tries_nothing_again(user: User, case: str) -> None:
    info, text, (kind, reason, code) = CASES[case]
    ran = user.turn([*START, {"done": "failed", "error": {"message": text, "codexErrorInfo": info}}])
    ran.ended_as("failed", reason, code)
    assert (ran.error["kind"], ran.error["message"], ran.error["codex_error_info"]) == (kind, text, info)
    assert len(user.asked("turn/start")) == 1


def test_retries_of_codex_are_told_and_are_no_failure(user: User) -> None:
    retry = {"err": [{"responseStreamDisconnected": {"httpStatusCode": None}}, True], "details": "cut"}
    ran = user.turn([*START, retry, retry, retry, *ANSWER[1:]]).completed()
    assert ran.err.count("Reconnecting... 1/5 (cut)") == 3


def test_a_message_that_is_only_in_the_details_is_shown(user: User) -> None:
    error = {"message": "", "codexErrorInfo": "other", "additionalDetails": "the real reason"}
    assert user.turn([*START, {"done": "failed", "error": error}]).error["message"] == "the real reason"


def test_the_end_of_a_quota_is_kept(user: User) -> None:
    windows = {"primary": {"usedPercent": 40, "resetsAt": 111}, "secondary": {"usedPercent": 100, "resetsAt": 222}}
    steps = [*START, {"rate_limits": windows}, {"err": ["usageLimitExceeded", False]}, {"done": "failed"}]
    ran = user.turn(steps).ended_as("failed", "usage_limit_exceeded", 4)
    assert ran.error["retry_at"] == 222


def test_a_failure_without_an_error_is_still_a_failure(user: User) -> None:
    turn = {"id": "$turn", "status": "failed", "items": [], "error": None}
    news = {"method": "turn/completed", "params": {"threadId": "$thread", "turn": turn}}
    user.turn([*START, {"notify": news}, {"stall": True}]).ended_as("failed", "codex_error", 1)


def test_a_status_of_tomorrow_is_no_success(user: User) -> None:
    turn = {"id": "$turn", "status": "sublimated", "items": [], "error": None}
    news = {"method": "turn/completed", "params": {"threadId": "$thread", "turn": turn}}
    ran = user.turn([*START, {"msg": ["A", "final_answer"]}, {"notify": news}, {"stall": True}])
    ran.ended_as("failed", "protocol", 9)


def test_a_turn_start_that_codex_refuses_is_a_refusal_in_its_words(user: User) -> None:
    ran = user.turn({"replies": {"turn/start": {"error": {"code": -32600, "message": "no turn today"}}}})
    ran.ended_as("refused", "codex_refused", 2)
    assert ran.error["message"] == "no turn today"


def test_a_thread_start_that_codex_refuses_is_a_refusal_in_its_words(user: User) -> None:
    ran = user.turn({"replies": {"thread/start": {"error": {"code": -32603, "message": "no thread today"}}}})
    ran.ended_as("refused", "codex_refused", 2)
    assert "no thread today" in ran.error["message"]


@pytest.mark.rule("rule.exitCodes")
def test_without_a_sign_in_there_is_no_turn(user: User) -> None:
    ran = user.turn({"account": {"account": None, "requiresOpenaiAuth": True}, "turn": ANSWER})
    ran.ended_as("refused", "not_signed_in", 3)
    assert ran.error["kind"] == "auth"
    assert "codex login" in ran.error["message"]
    assert "thread/start" not in user.methods()


def test_a_provider_that_needs_no_sign_in_goes_on(user: User) -> None:
    user.turn({"account": {"account": None, "requiresOpenaiAuth": False}, "turn": ANSWER}).completed()


# --- before Codex answers anything ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        "Error: config.toml:150:77: missing escaped value",
        "Error loading configuration: unknown variant `xhigh`, expected one of `minimal`, `low`",
    ],
)
def test_what_codex_says_when_it_cannot_start_is_shown_verbatim(user: User, words: str) -> None:
    user.codex_is(f"cat >&2 <<'EOF'\n{words}\nEOF\nexit 1")
    ran = user.run("run", "--json", "go").ended_as("failed", "app_server_exited", 9)
    assert words in ran.error["message"]
    assert words in ran.err


def test_a_codex_home_that_is_not_there_is_refused_before_anything_is_made(user: User) -> None:
    user.env["CODEX_HOME"] = str(user.root / "gone")
    ran = user.turn(ANSWER).ended_as("refused", "bad_request", 2)
    assert str(user.root / "gone") in ran.error["message"]
    assert user.nothing_was_made()


def test_no_codex_is_refused_with_the_way_to_get_one(user: User) -> None:
    del user.env["CC_AGENTS_CODEX_BIN"]
    user.env["PATH"] = str(user.root)
    ran = user.run("run", "--json", "go").ended_as("refused", "codex_not_found", 2)
    assert "npm install -g @openai/codex" in ran.error["message"]
    assert not user.jobs()


def test_the_named_codex_is_the_one_that_runs(user: User) -> None:
    other = user.root / "other"
    other.mkdir()
    (other / "codex").write_text("#!/bin/sh\nexit 7\n")
    (other / "codex").chmod(0o755)
    user.env["PATH"] = f"{other}:/usr/bin:/bin"
    ran = user.turn(ANSWER).completed()
    assert ran.outcome["effective"]["codex"]["path"] == str(user.root / "bin" / "codex")


def test_a_codex_that_is_a_folder_or_not_executable_is_refused(user: User) -> None:
    plain = user.root / "plain"
    plain.write_text("x")
    for path in (plain, user.work):
        user.env["CC_AGENTS_CODEX_BIN"] = str(path)
        user.run("run", "--json", "go").ended_as("refused", "codex_not_found", 2)


def test_a_codex_that_cannot_be_executed_is_told(user: User) -> None:
    path = user.codex_is("")
    path.write_bytes(b"\x7fELF\x02 not a program")
    ran = user.run("run", "--json", "go").ended_as("failed", "app_server_exited", 9)
    assert "could not be started" in ran.error["message"]


def test_a_codex_that_writes_something_else_than_the_protocol_is_bounded(user: User) -> None:
    user.codex_is("echo 'Usage: something else'; exec sleep 600")
    ran = user.run("run", "--json", "--start-timeout", "0.5", "go").ended_as("failed", "protocol", 9)
    assert "did not answer initialize" in ran.error["message"]
    assert ran.outcome["warnings"] == ["1 lines of Codex were no JSON objects and were passed by"]


MISSING: dict[str, tuple[dict[str, Any], str]] = {
    "initialize without an agent": ({"initialize": {}}, "initialize: the answer of Codex has no userAgent"),
    "a thread without an id": ({"thread/start": {"thread": {}}}, "thread/start: the answer of Codex has no thread.id"),
    "a thread that is null": ({"thread/start": {"thread": None}}, "thread/start: the answer of Codex has no thread.id"),
}


@pytest.mark.rule("rule.boundedAlways")
@pytest.mark.parametrize(("replies", "said"), MISSING.values(), ids=MISSING)
def test_a_missing_field_that_all_rests_on_is_named_with_its_method(
    user: User, replies: dict[str, Any], said: str
) -> None:
    ran = user.turn({"replies": replies, "turn": ANSWER}).ended_as("failed", "protocol", 9)
    assert said in ran.error["message"]
