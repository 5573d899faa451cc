"""The JSON Schema of the app-server protocol, as the installed codex prints it, and what breaks it.

Owns: finding the schema of one message. Does not own: where messages come from. Serves rule.fakeIsTrue.
The bundle: ClientRequest, ClientNotification, ServerRequest, ServerNotification are a `oneOf` of methods; the
answer to a method whose params are FooParams is FooResponse, at the top, in v1 or in v2.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import jsonschema

GENERATE_S = 60.0
Json = Mapping[str, Any]


class Protocol:
    """One codex' own schemas. Experimental fields are included: we ask for some of them."""

    def __init__(self, codex: str, folder: Path, env: Mapping[str, str]) -> None:
        argv = [codex, "app-server", "generate-json-schema", "--experimental", "--out", str(folder)]
        subprocess.run(argv, check=True, timeout=GENERATE_S, capture_output=True, env=env)
        self._folder = folder

    @cached_property
    def server_requests(self) -> Mapping[str, str]:
        """Method of each request that the server can make -> the name of its params."""
        return self._methods("ServerRequest")

    @cached_property
    def server_notifications(self) -> Mapping[str, str]:
        return self._methods("ServerNotification")

    @cached_property
    def client_requests(self) -> Mapping[str, str]:
        return self._methods("ClientRequest")

    def problems(self, lines_in: Iterable[bytes], lines_out: Iterable[bytes]) -> list[str]:
        """What is wrong with a conversation: `lines_in` went to the server, `lines_out` came from it."""
        found: list[str] = []
        asked_by_us: dict[Any, str] = {}
        asked_by_server: dict[Any, str] = {}
        ours, theirs = map(_messages, (lines_in, lines_out))
        asked_by_us.update({m["id"]: m["method"] for m in ours if "method" in m and "id" in m})
        asked_by_server.update({m["id"]: m["method"] for m in theirs if "method" in m and "id" in m})
        for message in ours:
            found += self._one(message, "Client", asked_by_server, self.server_requests)
        for message in theirs:
            found += self._one(message, "Server", asked_by_us, self.client_requests)
        return found

    def answer_problems(self, params_name: str, result: Any, where: str) -> list[str]:
        """What is wrong with `result` as the answer to the method whose params have that name."""
        name = params_name.removesuffix("Params") + "Response"
        for path in (self._folder / sub / f"{name}.json" for sub in (".", "v2", "v1")):
            if path.is_file():
                return _broken(json.loads(path.read_bytes()), result, where)
        return [f"{where}: no schema {name}"]

    def _one(self, message: Json, side: str, asked: Mapping[Any, str], methods: Mapping[str, str]) -> list[str]:
        if "method" in message:
            return self._call(message, f"{side}{'Request' if 'id' in message else 'Notification'}")
        method = asked.get(message.get("id"))
        if method is None:
            return [f"{side} answers an id that nobody asked: {message.get('id')!r}"]
        if "error" in message:
            schema = json.loads((self._folder / "JSONRPCError.json").read_bytes())
            return _broken(schema, message, f"error for {method}")
        if method not in methods:
            return [f"{side} answers {method}, which the schema does not know"]
        named = methods[method] or "".join(w[:1].upper() + w[1:] for w in method.split("/"))  # it has no params
        return self.answer_problems(named, message.get("result"), f"answer to {method}")

    def _call(self, message: Json, kind: str) -> list[str]:
        bundle, method = self._bundle(kind), message["method"]
        for variant in bundle["oneOf"]:
            if variant["properties"]["method"]["enum"] == [method]:
                schema = {**variant, "definitions": bundle.get("definitions", {})}
                unknown = _unknown_params(variant, bundle, message) if kind == "ClientRequest" else []
                return _broken(schema, message, method) + unknown
        return [f"{kind} {method} is not in the schema"]

    def _methods(self, kind: str) -> dict[str, str]:
        variants = [variant["properties"] for variant in self._bundle(kind)["oneOf"]]
        return {v["method"]["enum"][0]: _reference(v.get("params", {})) for v in variants}

    def _bundle(self, kind: str) -> Any:
        return self._bundles.setdefault(kind, json.loads((self._folder / f"{kind}.json").read_bytes()))

    @cached_property
    def _bundles(self) -> dict[str, Any]:
        return {}


def _messages(lines: Iterable[bytes]) -> list[Json]:
    return [json.loads(line) for line in lines]


def _reference(schema: Json) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]


def _broken(schema: Json, instance: Any, where: str) -> list[str]:
    validator = jsonschema.Draft7Validator(schema)
    return [f"{where}: {error.json_path} {error.message[:300]}" for error in validator.iter_errors(instance)]


def _unknown_params(variant: Json, bundle: Json, message: Json) -> list[str]:
    """Codex passes by fields that it does not know: one that we send by mistake would be silently void."""
    definition = bundle["definitions"].get(_reference(variant["properties"].get("params", {})), {})
    known = definition.get("properties")
    sent = message.get("params") or {}
    if known is None:
        return []
    return [f"{message['method']}: the schema has no params.{name}" for name in sent if name not in known]
