"""One call of a tool of the plugin's MCP server: its process, and what is told of it.

Owns: the words for the cc-agents command, one process for each call and its end, an agent's thread, the report of a
failure. Does not own: the protocol (gpt_mcp.py), a turn (the cc-agents command). Standard library only, Python 3.8.
Serves rule.fallbackTool, rule.identityIsThread.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import IO, Any

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
LAUNCHER = [sys.executable, "-I", "-S", os.path.join(ROOT, "servers", "launcher.py")]
STDERR_CHARS = 4000  # kept for a process that ends without an outcome

# A job, a thread, a branch or a folder; never an option.
WORD = re.compile(r"(?!-)[\w~/.@:+-]+")

VERBS = {"run": ["run", "--mode", "read-only"], "write": ["run", "--mode", "write"], "review": ["review"]}

# --- what is told -------------------------------------------------------------------------------------------


def report(outcome: dict[str, Any]) -> str:
    """The failure in words: what happened, of which kind, and what to do. hooks/register.ts says the same."""
    error = outcome.get("error") or {}
    kind, reason = error.get("kind", "other"), error.get("reason", "cli_not_usable")
    with open(os.path.join(ROOT, "advice.json"), encoding="utf-8") as file:
        advice = json.load(file)
    status, message = outcome.get("status", "failed"), error.get("message", "no reason was given")
    ended = status if status == "failed" else f"was {status}"
    lines = [f"cc-agents: the GPT turn {ended} ({kind}, {reason}).", message]
    if "/cc-agents:setup" not in message:  # which is what to do
        lines.append(advice["reason"].get(reason) or advice["kind"].get(kind, ""))
    if error.get("retry_at"):
        lines[-1] += time.strftime(" Not before %Y-%m-%d %H:%M:%S UTC.", time.gmtime(error["retry_at"]))
    if outcome.get("job"):
        lines.append(f"Job {outcome['job']}: /cc-agents:status {outcome['job']}")
    return "\n".join(lines)


def without(stderr: str) -> dict[str, Any]:
    """An outcome for a process that ended without one."""
    said = re.sub(r"(?m)^cc-agents: ", "", "\n".join(stderr.strip().split("\n")[-5:]))
    message = said or "the cc-agents command ended without a word"
    return {"status": "failed", "error": {"kind": "other", "reason": "cli_not_usable", "message": message}}


# --- one agent, one thread ----------------------------------------------------------------------------------


def thread_file(agent: str | None) -> str | None:
    """Where the thread of an agent is kept; None for no agent of Claude Code."""
    data = os.environ.get("CLAUDE_PLUGIN_DATA", "")
    if not os.path.isabs(data) or not agent or not re.fullmatch(r"\w+", agent):
        return None
    return os.path.join(data, "agents", agent + ".json")


def thread_of(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as file:
            return str(json.load(file)["thread"])
    except (OSError, ValueError, KeyError, TypeError):
        return None  # its first turn


def keep_thread(path: str, thread: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump({"thread": thread}, file)
    os.replace(path + ".new", path)


# --- a call -------------------------------------------------------------------------------------------------


class Call:
    """One tools/call in a thread of its own. `send` takes a message, `over` hears the text and whether it failed."""

    def __init__(self, params: dict[str, Any], send: Callable[..., None], over: Callable[..., None]) -> None:
        self.send, self.over = send, over
        self.name, self.arguments = params["name"], params.get("arguments") or {}
        self.token = (params.get("_meta") or {}).get("progressToken")
        self.lock = threading.Lock()
        self.process: subprocess.Popen[bytes] | None = None
        self.cancelled = False
        self.progress = 0
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self) -> None:
        try:
            text, failed = self.turn() if self.name in VERBS else self.command()
        except Exception as error:  # whatever it is, Claude Code must hear of it
            text, failed = f"cc-agents: {type(error).__name__}: {error}", True
        self.over(self, text, failed)

    def start(self, words: list[str], task: str) -> subprocess.Popen[bytes] | None:
        """The process with `task` on its stdin. None when the call was cancelled before."""
        pipe = subprocess.PIPE
        with self.lock:
            if self.cancelled:
                return None
            self.process = process = subprocess.Popen(LAUNCHER + words, stdin=pipe, stdout=pipe, stderr=pipe)
        data = task.encode("utf-8", "surrogatepass")
        threading.Thread(target=feed, args=(process.stdin, data), daemon=True).start()
        return process

    def stop(self) -> None:
        """Asks for the end of the call; its own thread goes on to the outcome."""
        with self.lock:
            self.cancelled = True
            if self.process is not None and self.process.poll() is None:
                self.process.send_signal(signal.SIGTERM)

    def finish(self, within_s: float) -> None:
        """Waits for the process; one that does not end is killed, and the guard ends what it has started."""
        if self.process is not None:
            try:
                self.process.wait(within_s)
            except subprocess.TimeoutExpired:
                self.process.kill()

    # --- a turn

    def turn(self) -> tuple[str, bool]:
        task = self.arguments["task"]
        path = thread_file(self.arguments.get("agent"))
        process = self.start(self.words(task, path), task)
        if process is None:
            return "cancelled", True
        tail: list[str] = []
        lines = threading.Thread(target=self.tell, args=(process.stderr, tail), daemon=True)
        lines.start()
        outcome = None
        assert process.stdout is not None
        for line in process.stdout:
            event = json.loads(line)
            if event["event"] == "begun" and path:
                keep_thread(path, event["thread"])
            elif event["event"] == "alive":
                self.say("still at work")
            elif event["event"] == "outcome":
                outcome = event["outcome"]
        process.wait()
        lines.join()
        outcome = outcome or without("".join(tail))
        if outcome["status"] == "completed":
            return outcome["final_text"], False
        return report(outcome), True

    def words(self, task: str, path: str | None) -> list[str]:
        words = [*VERBS[self.name], "--events", "--attended"]
        if self.name == "review":
            base = task.strip()
            return [*words, "--base", base] if base != "uncommitted" and WORD.fullmatch(base) else words
        thread = thread_of(path) if path else None
        return [*words, "--resume", thread] if thread else words

    def tell(self, stderr: IO[bytes], tail: list[str]) -> None:
        """Every status line as progress."""
        for raw in stderr:
            line = raw.decode("utf-8", "replace")
            tail.append(line[:STDERR_CHARS])
            del tail[:-5]
            self.say(re.sub(r"^cc-agents: +([\d.]+s )?", "", line.rstrip("\n")))

    def say(self, message: str) -> None:
        if self.token is not None:
            self.progress += 1
            params = {"progressToken": self.token, "progress": self.progress, "message": message}
            self.send({"method": "notifications/progress", "params": params})

    # --- a command

    def command(self) -> tuple[str, bool]:
        given = " ".join(str(self.arguments.get(key) or "") for key in ("job", "words")).split()
        if not all(WORD.fullmatch(word) for word in given):
            return f"cc-agents: {self.name} takes a job, not: {' '.join(given)}", True
        process = self.start(["plugin-setup" if self.name == "setup" else self.name, *given], "")
        if process is None:
            return "cancelled", True
        errors: list[bytes] = []
        assert process.stdout is not None
        assert process.stderr is not None
        stderr = process.stderr
        reading = threading.Thread(target=lambda: errors.append(stderr.read()), daemon=True)
        reading.start()
        out = process.stdout.read().decode("utf-8", "replace")
        process.wait()
        reading.join()
        if self.name == "result" and process.returncode == 0:
            return out, False
        texts = [text.rstrip() for text in (out, errors[0].decode("utf-8", "replace"))]
        return "\n".join(text for text in texts if text) or "nothing to show", process.returncode != 0


def feed(stdin: IO[bytes], data: bytes) -> None:
    try:
        stdin.write(data)
        stdin.close()
    except OSError:
        pass  # it ended before it had read everything; its outcome says why
