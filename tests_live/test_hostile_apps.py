"""Apps, plugins and reviews on the real codex: with a made-up sign-in at ChatGPT, whose address is on loopback."""

from __future__ import annotations

import base64
import json
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests_live import hostile
from tests_live.attempts import attempt, listening
from tests_live.homes import Home, write_config
from tests_live.hostile import SIGN_IN, outcome_of
from tests_live.responses_api import ScriptedModel, run_command, say

DAY_S = 86400


class Provider(ThreadingHTTPServer):
    """Has nothing to offer, and remembers what it was asked for."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: set[str] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/backend-api/"


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Provider)
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.server.asked.add(self.path.partition("?")[0])
        self.send_error(404)

    do_POST = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: pytest shows what matters."""


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as made:
        serving = threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True)
        serving.start()
        yield made
        made.shutdown()
        serving.join()


def sign_in(home: Home) -> None:
    """Tokens that nobody has signed: only the provider would look."""

    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    account = {"chatgpt_account_id": "a", "chatgpt_user_id": "u", "chatgpt_plan_type": "pro"}
    claims = {"email": "a@b", "exp": int(time.time()) + DAY_S, "https://api.openai.com/auth": account}
    token = f"{part({'alg': 'none'})}.{part(claims)}.x"
    tokens = {"id_token": token, "access_token": token, "refresh_token": "r", "account_id": "a"}
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    auth = {"auth_mode": "chatgpt", "OPENAI_API_KEY": None, "tokens": tokens, "last_refresh": now}
    (home.codex_home / "auth.json").write_text(json.dumps(auth))


@pytest.mark.rule("rule.mcpOff")
@pytest.mark.parametrize("without", [None, "features.apps", "features.plugins"], ids=lambda name: name or "off")
@pytest.mark.parametrize("mode", ["read-only", "yolo"])
def test_apps_and_plugins_are_not_even_asked_for(
    codex: str, home: Home, model: ScriptedModel, provider: Provider, mode: str, without: str | None
) -> None:
    sign_in(home)
    write_config(home, model.base_url, f'chatgpt_base_url = "{provider.url}"\n')
    model.extend(run_command("sleep 1"), say("done"))  # what goes out, goes out by then
    ran = hostile.cc_agents(home, codex, "run", "--json", "--mode", mode, "go", without=without)
    ended, asked = outcome_of(ran), {path for path in provider.asked if "/ps/" in path}
    if without == "features.apps":  # its server starts, and that ends the turn, perhaps before it is asked
        assert (ran.returncode, "codex_apps" in ended["error"]["message"]) == (7, True), ended
    else:
        assert ended["status"] == "completed", ended
        assert ("/backend-api/ps/plugins/installed" in asked) is (without is not None)
        assert without is not None or asked == set()
    model.drop_rest()


@pytest.mark.rule("rule.modes")
@pytest.mark.rule("rule.execRulesClosed")
def test_a_review_has_the_sandbox_of_a_read_only_turn(codex: str, home: Home, model: ScriptedModel) -> None:
    world = hostile.build(home, model, codex, trusted_hooks=False)
    git = "git -c user.name=a -c user.email=a@b"
    script = f"rm -r .git && git init -q && {git} add . && {git} commit -qm x && echo y > changed && git add changed"
    subprocess.run(["sh", "-ec", script], cwd=world.repository, check=True, env=home.environ(), capture_output=True)
    with listening(home) as listener:
        tries = (run_command(attempt(world, listener)), run_command(f"touch {world.marks}/rule"))
        model.extend(*tries, say("no findings"))
        ran = hostile.cc_agents(world, codex, "review", "--json")
        assert listener.hits == []
    assert outcome_of(ran)["status"] == "completed", outcome_of(ran)
    assert (world.marked(), len(model.requests)) == (set(), 3)
    assert SIGN_IN not in json.dumps(model.requests[-1].body)
