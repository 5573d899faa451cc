"""`cc-agents serve` as another program uses it: with the messages of a JSON-RPC client that is not ours.

Serves rule.serve and rule.schemasHold. The client library (jsonrpcclient) makes the requests and reads the answers.
"""

from __future__ import annotations

import json
import signal

import pytest
from schemas import valid
from serve_client import serve
from test_jobs import FROM_CWD, background, status, until
from turns import ANSWER, PATIENCE_S, SILENCE, START, User, ended, wait_for

from fake_app_server.shim import write_shim

pytestmark = pytest.mark.rule("rule.serve")


def test_a_turn_is_run_its_events_are_told_and_its_outcome_comes_last(user: User) -> None:
    user.plays(ANSWER)
    with serve(user) as client:
        job = client.run(prompt=" go\n", label="mine", cwd=str(user.work))
        outcome = client.outcome(job)
        events = client.events(job)
        assert client.hang_up() == 0
    assert (outcome["job"], outcome["status"], outcome["final_text"]) == (job, "completed", "ANSWER")
    assert valid("outcome", outcome)
    assert events
    assert all(valid("event", e) for e in events)
    assert user.asked("turn/start")[0]["input"][0]["text"] == " go\n"
    assert user.run("result", job).out == b"ANSWER"


def test_the_answer_to_turn_run_comes_before_any_of_its_events(user: User) -> None:
    user.plays(ANSWER)
    with serve(user) as client:
        ident = client.ask("turn/run", prompt="x")
        client.until(lambda: client.notes)
        assert ident in client.answers
        client.outcome(client.answers[ident]["result"]["job"])
        client.hang_up()


def test_many_turns_at_once_have_each_their_own_answer(user: User) -> None:
    user.env["CC_AGENTS_CAPS"] = "codex=10"
    user.plays([*START, FROM_CWD, {"done": "completed"}])
    with serve(user) as client:
        asked = {}
        for n in range(10):
            folder = user.root / f"dir {n}"
            folder.mkdir()
            asked[client.ask("turn/run", prompt="x", cwd=str(folder), label=str(n))] = str(folder)
        jobs = {client.answer(i).result["job"]: folder for i, folder in asked.items()}  # type: ignore[union-attr]
        for job in jobs:
            assert client.outcome(job)["final_text"] == f"from {jobs[job]}"
        listed = client.call("jobs/list", limit=10)["jobs"]
        assert {j["job"] for j in listed} == set(jobs)
        assert client.hang_up() == 0


def test_the_end_of_stdin_ends_every_turn_and_leaves_no_process(user: User) -> None:
    user.plays(SILENCE)
    with serve(user) as client:
        jobs = [client.run(prompt="x") for _ in range(2)]
        client.until(lambda: all(any(e["event"] == "begun" for e in client.events(job)) for job in jobs))
        client.stdin.close()
        outcomes = [client.outcome(job) for job in jobs]
        assert client.process.wait(PATIENCE_S) == 0
    assert {o["status"] for o in outcomes} == {"interrupted"}
    assert all(o["confirmed"] for o in outcomes)
    assert {status(user, job)["status"] for job in jobs} == {"interrupted"}


def test_a_signal_ends_every_turn_too(user: User) -> None:
    user.plays(SILENCE)
    with serve(user) as client:
        job = client.run(prompt="x")
        wait_for(lambda: user.asked("turn/start"))
        client.process.send_signal(signal.SIGTERM)
        assert client.outcome(job)["exit_code"] == 143
        assert client.process.wait(PATIENCE_S) == 143


def test_a_client_that_reads_no_more_ends_every_turn(user: User) -> None:
    user.plays([*START, {"repeat": {"steps": [{"msg": ["x", "commentary"]}, {"wait": 0.01}]}}])
    with serve(user) as client:
        job = client.run(prompt="x")
        client.stdout.close()
        assert client.process.wait(PATIENCE_S) == 0
    assert status(user, job)["status"] == "interrupted"


def test_turns_are_steered_and_interrupted_by_their_job(user: User) -> None:
    go = user.root / "go"
    user.plays([*START, until(go), *ANSWER[1:]])
    with serve(user) as client:
        job = client.run(prompt="x")
        assert client.call("turn/steer", job=job, text="use tabs") == {}
        assert user.asked("turn/steer")[0]["input"][0]["text"] == "use tabs"
        client.until(lambda: any(e.get("state") == "steered" for e in client.events(job)))
        told = client.call("turn/interrupt", job=job)
        assert (told["status"], told["confirmed"]) == ("interrupted", True)
        assert client.outcome(job)["status"] == "interrupted"
        late = client.fault("turn/steer", job=job, text="late")
        assert (late.code, "no running turn" in late.message) == (-32002, True)
        other = background(user)  # of another process
        assert client.call("turn/steer", job=other, text="x") == {}
        assert client.call("turn/interrupt", job=other)["confirmed"] is True
        client.hang_up()


BAD = [
    (b"{", -32700),
    (b"\xff\xfe", -32700),
    (b"[]", -32600),
    (b"3", -32600),
    (b'{"id":1,"method":"jobs/list"}', -32600),
    (b'{"jsonrpc":"2.0","id":1}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600),
    (b'{"jsonrpc":"2.0","id":{},"method":"jobs/list"}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":"jobs/list","params":[1]}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":"nope"}', -32601),
    (b'{"jsonrpc":"2.0","id":1,"method":"turn/steer","params":{"job":"j"}}', -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"turn/run","params":{"prompt":7}}', -32001),
]


def test_bad_input_gets_an_error_and_the_connection_lives(user: User) -> None:
    user.plays(ANSWER)
    with serve(user) as client:
        for line, code in BAD:
            client.answers.clear()
            client.say(line + b"\n")
            client.until(lambda: client.answers)
            ((ident, answer),) = client.answers.items()
            assert answer["error"]["code"] == code, line
            assert ident in (None, 1)
        client.say(b'{"jsonrpc":"2.0","method":"nope"}\n\n \n{"jsonrpc":"2.0","id":9,"result":{}}\n')
        assert client.outcome(client.run(prompt="x"))["final_text"] == "ANSWER"
        assert client.hang_up() == 0
    assert not any(answer.get("id") == 9 for answer in client.answers.values())


def test_everything_wrong_with_a_request_is_in_the_error_and_nothing_was_made(user: User) -> None:
    with serve(user) as client:
        fault = client.fault("turn/run", prompt=1, mode="all", efort="high")
        assert (fault.code, len(fault.data["problems"])) == (-32001, 3)
        assert "efort" in fault.message
        fault = client.fault("turn/run", prompt="", cwd="/no/such/folder")
        assert {p["reason"] for p in fault.data["problems"]} == {"bad_request"}
        assert len(fault.data["problems"]) == 2
        client.hang_up()
    assert user.nothing_was_made()


def test_yolo_counts_when_the_request_states_it_and_a_null_timeout_is_no_limit(user: User) -> None:
    user.plays(ANSWER)
    with serve(user) as client:
        yolo = client.outcome(client.run(prompt="x", mode="yolo", timeout_s=None, model="gpt-5.5"))
        plain = client.outcome(client.run(prompt="x"))
        client.hang_up()
    assert (yolo["effective"]["mode"], plain["effective"]["mode"]) == ("yolo", "read-only")
    assert yolo["effective"]["model"] == {"value": "gpt-5.5", "source": "request"}
    kept = status(user, yolo["job"])
    with open(f"{kept['directory']}/request.json", "rb") as file:
        made = json.load(file)
    assert made["timeout_s"] is None
    assert valid("request", made)


def test_check_and_models_answer_without_starting_a_turn(user: User) -> None:
    user.plays(ANSWER)
    with serve(user) as client:
        good = client.call("turn/check", prompt="x", mode="write", cwd=str(user.work))
        assert (good["ok"], good["effective"]["mode"]) == (True, "write")
        bad = client.call("turn/check", prompt="x", model="nope")
        assert (bad["ok"], bad["problems"][0]["reason"]) == (False, "unknown_model")
        models = client.call("models/list")["models"]
        assert any(m["default"] for m in models)
        client.hang_up()
    assert user.asked("turn/start") == []
    assert user.jobs() == []


def test_a_line_without_an_end_is_still_read_and_stdin_may_be_a_file(user: User) -> None:
    user.plays(ANSWER)
    script = user.root / "script"
    script.write_text(
        '{"jsonrpc":"2.0","id":"a","method":"models/list"}\n{"jsonrpc":"2.0","id":"b","method":"jobs/list"}'
    )
    with open(script, "rb") as file, ended(user.start("serve", stdin=file)) as process:
        out, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    assert {json.loads(line)["id"] for line in out.splitlines()} == {"a", "b"}


@pytest.mark.rule("rule.batch")
def test_two_hundred_turns_at_once_have_each_their_own_answer_and_one_failure_is_only_one(user: User) -> None:
    user.env["CC_AGENTS_CAPS"] = "codex=16"
    good = user.plays([*START, FROM_CWD, {"done": "completed"}])
    bad = write_shim(user.root / "bad", scenario=[*START, {"err": ["serverOverloaded", False]}, {"done": "failed"}])
    user.codex_is(f'case "$PWD" in */n77) exec {bad} "$@";; esac; exec {good} "$@"')
    with serve(user) as client:
        asked = {}
        for n in range(200):
            (user.root / f"n{n}").mkdir()
            asked[client.ask("turn/run", prompt="x", cwd=str(user.root / f"n{n}"), label=f"n{n}")] = f"n{n}"
        client.until(lambda: len(client.answers) == len(asked))
        jobs = {client.answers[ident]["result"]["job"]: name for ident, name in asked.items()}
        client.until(lambda: sum(n["method"] == "turn/ended" for n in client.notes) == len(asked))
        outcomes = {n["params"]["job"]: n["params"]["outcome"] for n in client.notes if n["method"] == "turn/ended"}
        assert client.hang_up() == 0
    answers = {jobs[job]: outcome["final_text"] for job, outcome in outcomes.items()}
    assert answers == {f"n{n}": "" if n == 77 else f"from {user.root}/n{n}" for n in range(200)}
    assert [jobs[job] for job, outcome in outcomes.items() if outcome["status"] != "completed"] == ["n77"]
