"""The plugin's MCP server on stdio: turns where Claude Code's modules don't load, and the tools of its commands.

Owns: the protocol, one process of ours for each call and its end. Does not own: a turn (the cc-agents command), or
finding that command (bin/cc-agents). Ready at once: standard library only, Python 3.8, nothing is started before a
call. Serves rule.fallbackTool.
"""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
LAUNCHER = [sys.executable, "-I", "-S", os.path.join(ROOT, "bin", "cc-agents")]
PROTOCOL = "2025-06-18"
RESULT_CHARS = 500000  # the most that Claude Code takes in one result
GRACE_S = 30.0  # cc-agents ends a turn within its own grace and is gone then; past it something is broken
STDERR_CHARS = 4000  # kept for a process that ends without an outcome

# A job, a thread, a branch or a folder; never an option.
WORD = re.compile(r"(?!-)[\w~/.@:+-]+")

VERBS = {"run": ["run", "--mode", "read-only"], "write": ["run", "--mode", "write"], "review": ["review"]}


def tool(name, description, key, what, required=True):
    properties = {key: {"type": "string", "description": what}}
    if name in VERBS:
        properties["agent"] = {"type": "string", "description": "leave out"}
    schema = {"type": "object", "properties": properties, "required": [key] if required else []}
    return {
        "name": name,
        "description": description,
        "inputSchema": schema,
        "_meta": {"anthropic/maxResultSizeChars": RESULT_CHARS},
    }


TOOLS = [
    tool("run", "Gives a whole task to a GPT model, read-only; the result is its answer.", "task", "the whole task"),
    tool("write", "The same for a task that may change files.", "task", "the whole task"),
    tool("review", "Codex reviews the uncommitted changes, or those against a base.", "task", "base or uncommitted"),
    tool("status", "The jobs of cc-agents, or one of them.", "job", "a job or thread", required=False),
    tool("result", "The answer of a job, exactly.", "job", "a job or thread"),
    tool("interrupt", "Ends a running job.", "job", "a job or thread"),
    tool("setup", "Whether cc-agents is ready; installs it if asked to.", "words", "install [FOLDER]", required=False),
]


# --- what is told -------------------------------------------------------------------------------------------


def report(outcome):
    """The failure in words: what happened, of which kind, and what to do. hooks/register.ts says the same."""
    error = outcome.get("error") or {}
    kind, reason = error.get("kind", "other"), error.get("reason", "cli_not_usable")
    with open(os.path.join(ROOT, "advice.json"), encoding="utf-8") as file:
        advice = json.load(file)
    what = advice["reason"].get(reason) or advice["kind"].get(kind, "")
    lines = ["cc-agents: the GPT turn was {} ({}, {}).".format(outcome.get("status", "failed"), kind, reason)]
    lines += [error.get("message", "no reason was given"), what]
    if error.get("retry_at"):
        lines[-1] += time.strftime(" Not before %Y-%m-%d %H:%M:%S UTC.", time.gmtime(error["retry_at"]))
    if outcome.get("job"):
        lines.append("Job {0}: /cc-agents:status {0}".format(outcome["job"]))
    return "\n".join(lines)


def without(stderr):
    """An outcome for a process that ended without one."""
    said = re.sub(r"(?m)^cc-agents: ", "", "\n".join(stderr.strip().split("\n")[-5:]))
    message = said or "the cc-agents command ended without a word"
    return {"status": "failed", "error": {"kind": "other", "reason": "cli_not_usable", "message": message}}


# --- one agent, one thread ----------------------------------------------------------------------------------


def thread_file(agent):
    """Where the thread of an agent is kept; None for no agent of Claude Code."""
    data = os.environ.get("CLAUDE_PLUGIN_DATA", "")
    if not os.path.isabs(data) or not agent or not re.fullmatch(r"\w+", agent):
        return None
    return os.path.join(data, "agents", agent + ".json")


def thread_of(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)["thread"]
    except (OSError, ValueError, KeyError, TypeError):
        return None  # its first turn


def keep_thread(path, thread):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump({"thread": thread}, file)
    os.replace(path + ".new", path)


# --- a call -------------------------------------------------------------------------------------------------


class Call:
    """One tools/call in a thread of its own: its process, and the ways in which it ends."""

    def __init__(self, server, rid, params):
        self.server, self.rid = server, rid
        self.name, self.arguments = params["name"], params.get("arguments") or {}
        self.token = (params.get("_meta") or {}).get("progressToken")
        self.lock = threading.Lock()
        self.process = None
        self.cancelled = False
        self.progress = 0
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        try:
            text, failed = self.turn() if self.name in VERBS else self.command()
        except Exception as error:  # whatever it is, Claude Code must hear of it
            text, failed = "cc-agents: {}: {}".format(type(error).__name__, error), True
        self.server.over(self, text, failed)

    def start(self, words, task):
        """The process with `task` on its stdin. None when the call was cancelled before."""
        pipe = subprocess.PIPE
        with self.lock:
            if self.cancelled:
                return None
            self.process = subprocess.Popen(LAUNCHER + words, stdin=pipe, stdout=pipe, stderr=pipe)
        threading.Thread(target=self.feed, args=(task.encode("utf-8", "surrogatepass"),), daemon=True).start()
        return self.process

    def feed(self, data):
        try:
            self.process.stdin.write(data)
            self.process.stdin.close()
        except OSError:
            pass  # it ended before it had read everything; its outcome says why

    def stop(self):
        """Asks for the end of the call; its own thread goes on to the outcome."""
        with self.lock:
            self.cancelled = True
            if self.process is not None and self.process.poll() is None:
                self.process.send_signal(signal.SIGTERM)

    def finish(self, within_s):
        """Waits for the process; one that does not end is killed, and the guard ends what it has started."""
        if self.process is not None:
            try:
                self.process.wait(within_s)
            except subprocess.TimeoutExpired:
                self.process.kill()

    # --- a turn

    def turn(self):
        task = self.arguments["task"]
        path = thread_file(self.arguments.get("agent"))
        process = self.start(self.words(task, path), task)
        if process is None:
            return "cancelled", True
        tail = []
        lines = threading.Thread(target=self.tell, args=(process.stderr, tail), daemon=True)
        lines.start()
        outcome = None
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

    def words(self, task, path):
        words = VERBS[self.name] + ["--events", "--attended"]
        if self.name == "review":
            base = task.strip()
            return words + ["--base", base] if base != "uncommitted" and WORD.fullmatch(base) else words
        thread = thread_of(path) if path else None
        return words + ["--resume", thread] if thread else words

    def tell(self, stderr, tail):
        """Every status line as progress."""
        for raw in stderr:
            line = raw.decode("utf-8", "replace")
            tail.append(line[:STDERR_CHARS])
            del tail[:-5]
            self.say(re.sub(r"^cc-agents: +([\d.]+s )?", "", line.rstrip("\n")))

    def say(self, message):
        if self.token is not None:
            self.progress += 1
            params = {"progressToken": self.token, "progress": self.progress, "message": message}
            self.server.send({"method": "notifications/progress", "params": params})

    # --- a command

    def command(self):
        given = " ".join(str(self.arguments.get(key) or "") for key in ("job", "words")).split()
        if not all(WORD.fullmatch(word) for word in given):
            return "cc-agents: {} takes a job, not: {}".format(self.name, " ".join(given)), True
        process = self.start(["plugin-setup" if self.name == "setup" else self.name, *given], "")
        if process is None:
            return "cancelled", True
        errors = []
        reading = threading.Thread(target=lambda: errors.append(process.stderr.read()), daemon=True)
        reading.start()
        out = process.stdout.read().decode("utf-8", "replace")
        process.wait()
        reading.join()
        if self.name == "result" and process.returncode == 0:
            return out, False
        texts = [text.rstrip() for text in (out, errors[0].decode("utf-8", "replace"))]
        return "\n".join(text for text in texts if text) or "nothing to show", process.returncode != 0


# --- the server ---------------------------------------------------------------------------------------------


class Server:
    def __init__(self, out):
        self.out = out
        self.lock = threading.Lock()
        self.calls = {}

    def send(self, message):
        data = json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
        with self.lock:
            try:
                self.out.write(data)
                self.out.flush()
            except OSError:
                pass  # Claude Code has gone; the end of stdin says so too, and ends every call

    def read(self, line):
        try:
            message = json.loads(line)
        except ValueError as error:
            self.send({"id": None, "error": {"code": -32700, "message": str(error)}})
            return
        self.handle(message)

    def handle(self, message):
        method, rid, params = message.get("method"), message.get("id"), message.get("params") or {}
        if method == "initialize":
            info = {"name": "gpt", "version": plugin_version()}
            wanted = params.get("protocolVersion", PROTOCOL)
            self.send({"id": rid, "result": {"protocolVersion": wanted, "capabilities": {"tools": {}}, "serverInfo": info}})
        elif method == "tools/list":
            self.send({"id": rid, "result": {"tools": TOOLS}})
        elif method == "tools/call":
            self.call(rid, params)
        elif method == "ping":
            self.send({"id": rid, "result": {}})
        elif method == "notifications/cancelled":
            call = self.calls.get(params.get("requestId"))
            if call is not None:
                call.stop()
        elif rid is not None:
            self.send({"id": rid, "error": {"code": -32601, "message": "unknown method {}".format(method)}})

    def call(self, rid, params):
        if params.get("name") not in [known["name"] for known in TOOLS]:
            self.send({"id": rid, "error": {"code": -32602, "message": "unknown tool {}".format(params.get("name"))}})
            return
        call = Call(self, rid, params)
        self.calls[rid] = call
        call.thread.start()

    def over(self, call, text, failed):
        self.calls.pop(call.rid, None)
        if not call.cancelled:  # nobody waits for the answer of a cancelled request
            content = [{"type": "text", "text": text}]
            self.send({"id": call.rid, "result": {"content": content, "isError": failed}})

    def close(self):
        """Ends every call, and waits until their processes are gone."""
        calls = list(self.calls.values())
        for call in calls:
            call.stop()
        for call in calls:
            call.finish(GRACE_S)


def plugin_version():
    with open(os.path.join(ROOT, ".claude-plugin", "plugin.json"), encoding="utf-8") as file:
        return json.load(file)["version"]


class Told(Exception):
    """A signal asked us to end."""


def on_signal(_number, _frame):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    raise Told


def main():
    server = Server(sys.stdout.buffer)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, on_signal)
    try:
        for line in sys.stdin.buffer:
            if line.strip():
                server.read(line)
    except Told:
        pass
    finally:
        server.close()


if __name__ == "__main__":
    main()
