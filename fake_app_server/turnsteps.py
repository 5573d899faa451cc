"""The short steps: what a turn says, in the notation of the cases that tests are written for.

Owns: start, msg, command, usage, err, done and their kin. Does not own: shapes (items), bookkeeping (turns).
Serves spec:cc-agents.fakes.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fake_app_server import items
from fake_app_server.scenario import Step
from fake_app_server.state import Table, Turn
from fake_app_server.wire import encode, now_ms

if TYPE_CHECKING:
    from fake_app_server.steps import Player

CONTEXT_WINDOW = 475000


def place(player: Player, step: Step) -> tuple[str, Turn]:
    """The thread id and turn that a step speaks of: the script's own, or strangers named in the step."""
    thread_id = player.fill(step.get("thread", player.thread.id if player.thread else "thread"))
    turn_id = player.fill(step.get("turn", player.turn.id if player.turn else "turn"))
    own = player.thread is not None and player.thread.id == thread_id
    if own and player.turn is not None and player.turn.id == turn_id:
        return thread_id, player.turn
    strangers = player.turns.strangers
    if (thread_id, turn_id) not in strangers:
        turn = strangers[(thread_id, turn_id)] = Turn(turn_id)
        turn.started = True
        turn.settled = own  # an old turn of our thread says nothing about the thread's status
    return thread_id, strangers[(thread_id, turn_id)]


def start(player: Player, step: Step) -> None:
    """true: the response, the status, turn/started. "reply" or "started": only that half."""
    thread, turn = player.thread, player.turn
    if thread is None or turn is None:
        raise RuntimeError("start: no turn/start was received")
    with player.speaking():
        if step["start"] in (True, "reply"):
            player.turns.accept(turn)
        if step["start"] in (True, "started"):
            player.turns.announce(thread, turn)
            if not any("user_message" in later for later in player.steps):
                show_steers(player, thread.id, turn)


def show_steers(player: Player, thread_id: str, turn: Turn) -> None:
    while turn.steers:
        player.turns.show_input(thread_id, turn, turn.steers.pop(0))


def user_message(player: Player, step: Step) -> None:
    thread_id, turn = place(player, step)
    given = step["user_message"]
    content = [{"type": "text", "text": given}] if isinstance(given, str) else turn.content
    with player.speaking():
        player.turns.show_input(thread_id, turn, content)
        show_steers(player, thread_id, turn)


def text_of(given: Any) -> str:
    """A text, or {"repeat": text, "times": n} for a long one."""
    return given["repeat"] * given["times"] if isinstance(given, dict) else str(given)


def pieces(text: str, deltas: Any) -> list[str]:
    """The deltas of a message: a list of them, or a length to cut at, or else all in one."""
    if isinstance(deltas, list):
        return deltas
    size = deltas if isinstance(deltas, int) and deltas > 0 else max(len(text), 1)
    return [text[at : at + size] for at in range(0, len(text), size)]


def msg(player: Player, step: Step) -> None:
    thread_id, turn = place(player, step)
    text, phase = text_of(step["msg"][0]), step["msg"][1]
    given = {key: step[key] for key in ("id", "delivery", "questions") if key in step}
    drip = step.get("drip", 0)
    begun = items.agent_message("", phase, **given)
    with player.speaking():
        player.turns.item(thread_id, turn, begun, "started", drip)
    for piece in pieces(text, step.get("deltas")):
        delta(player, thread_id, turn, begun["id"], piece, drip)
        if "pause_s" in step:
            player.pause(float(step["pause_s"]))
    if not step.get("open"):
        with player.speaking():
            player.turns.item(thread_id, turn, items.ended({**begun, "text": text}), "completed", drip)


def delta(player: Player, thread_id: str, turn: Turn, item_id: str, text: str, drip: int = 0) -> None:
    with player.speaking():
        params = {"threadId": thread_id, "turnId": turn.id, "itemId": item_id, "delta": text}
        player.output.notify("item/agentMessage/delta", params, drip)


def flood_deltas(player: Player, piece: str, lines: int) -> None:
    """One final answer that comes in very many deltas."""
    thread_id, turn = place(player, {})
    begun = items.agent_message("", "final_answer")
    with player.speaking():
        player.turns.item(thread_id, turn, begun, "started")
    method = "item/agentMessage/delta"
    if method not in player.output.opted_out:
        params = {"threadId": thread_id, "turnId": turn.id, "itemId": begun["id"], "delta": piece}
        player.many(encode({"method": method, "params": params, "emittedAtMs": now_ms()}) + b"\n", lines)
    with player.speaking():
        player.turns.item(thread_id, turn, items.ended({**begun, "text": piece * lines}), "completed")


def item(player: Player, step: Step) -> None:
    """Any item at all. `state` is started, completed or, by default, both."""
    thread_id, turn = place(player, step)
    whole = {"id": f"item-{random.getrandbits(48):x}", **player.fill(step["item"])}
    state, drip = step.get("state", "both"), step.get("drip", 0)
    with player.speaking():
        if state != "completed":
            player.turns.item(thread_id, turn, items.timed(whole), "started", drip)
        if state != "started":
            player.turns.item(thread_id, turn, items.ended(items.timed(whole)), "completed", drip)


def command(player: Player, step: Step) -> None:
    """A commandExecution item; nothing is executed. `open`: it never completes."""
    thread_id, turn = place(player, step)
    value = step["command"]
    given: Table = {"run": value} if isinstance(value, str) else value
    cwd = given.get("cwd") or (player.thread.cwd if player.thread else "/")
    begun = items.command(given["run"], cwd, random.randrange(10_000, 100_000))
    with player.speaking():
        player.turns.item(thread_id, turn, begun, "started")
    for text in given.get("deltas", ()):
        with player.speaking():
            params = {"threadId": thread_id, "turnId": turn.id, "itemId": begun["id"], "delta": text}
            player.output.notify("item/commandExecution/outputDelta", params)
    seconds, code = given.get("seconds", 0), given.get("exit", 0)
    if seconds:
        player.pause(seconds)
    if given.get("open"):
        return
    end = {
        "status": given.get("status", "failed" if code else "completed"),
        "aggregatedOutput": given.get("output", "".join(given.get("deltas", ()))),
        "exitCode": code,
        "durationMs": int(seconds * 1000),
    }
    with player.speaking():
        player.turns.item(thread_id, turn, items.ended({**begun, **end}), "completed")


def usage(player: Player, step: Step) -> None:
    """[total of the thread, last request]; without the second it is the difference to the total before."""
    thread_id, turn = place(player, step)
    total = items.usage(step["usage"][0])
    thread = player.server.answers.threads.get(thread_id)
    if step["usage"][1] is None:
        before = thread.usage["tokenUsage"]["total"] if thread and thread.usage else {}
        last = {field: count - before.get(field, 0) for field, count in total.items()}
    else:
        last = items.usage(step["usage"][1])
    counts = {"total": total, "last": last, "modelContextWindow": CONTEXT_WINDOW}
    with player.speaking():
        if thread is not None:
            thread.usage = {"turnId": turn.id, "tokenUsage": counts}
            player.turns.save(thread_id)
        params = {"threadId": thread_id, "turnId": turn.id, "tokenUsage": counts}
        player.output.notify("thread/tokenUsage/updated", params)


def rate_limits(player: Player, step: Step) -> None:
    given = step["rate_limits"] if isinstance(step["rate_limits"], dict) else {}
    with player.speaking():
        player.output.notify("account/rateLimits/updated", {"rateLimits": {**items.RATE_LIMITS, **given}})


def err(player: Player, step: Step) -> None:
    """[codexErrorInfo, willRetry]. One that is not retried puts the thread into systemError first."""
    thread_id, turn = place(player, step)
    kind, will_retry = step["err"]
    fields: Table = dict(step.get("error") or {})
    if "message" in step:
        fields["message"] = step["message"]
    elif will_retry:
        fields.setdefault("message", items.RETRY_MESSAGE)
    if "details" in step:
        fields["additionalDetails"] = step["details"]
    error = items.turn_error(fields, kind)
    with player.speaking():
        if not will_retry:
            turn.error = error
            player.turns.settle(thread_id, turn, True)
        params = {"error": error, "willRetry": will_retry, "threadId": thread_id, "turnId": turn.id}
        player.output.notify("error", params)


def idle(player: Player, step: Step) -> None:
    thread_id, turn = place(player, step)
    with player.speaking():
        player.turns.settle(thread_id, turn, False)


def done(player: Player, step: Step) -> None:
    """Ends a turn. The script that ends its own turn plays on; any other script of that turn stops."""
    thread_id, turn = place(player, step)
    status = step["done"]
    error = None
    if status == "failed":
        error = items.turn_error(step["error"]) if "error" in step else turn.error or items.turn_error(None)
    with player.speaking():
        if turn is player.turn:
            player.keep_on()
        if "items" in step:
            given = step["items"]
            turn.items = [items.ended(items.agent_message(*i)) if isinstance(i, list) else i for i in given]
        player.turns.end(thread_id, turn, status, error, bool(step.get("silent")))


STEPS: dict[str, Callable[[Player, Step], None]] = {
    "start": start,
    "user_message": user_message,
    "msg": msg,
    "item": item,
    "command": command,
    "usage": usage,
    "rate_limits": rate_limits,
    "err": err,
    "idle": idle,
    "done": done,
}
