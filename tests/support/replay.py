"""Recorded requests sent to a server of ours, and answers compared with what was recorded.

A case is `{id, setup: [request…], request, expect}`. Text in braces stands for what differs between runs; `save` in a
step binds a member of its answer to a name for later steps.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from podfit.apiserver.target import target_of
from podfit.net.wire import Request, Response
from support.golden import Case
from support.server import Server, document

NAMESPACE = "golden"
ADMIN_AGENT = "golden/v1.36 (linux/amd64)"
_PLACEHOLDER = re.compile(r"\{([a-zA-Z0-9]+)\}")
_MOUNTED_TOKEN = "kube-api-access-"  # a volume that we do not give to pods


def served(case: Case) -> bool:
    """Whether the case is about resources that this server has."""
    return all(_known(step) for step in (*(case.get("setup") or []), case["request"]))


def _known(step: dict[str, Any]) -> bool:
    target = target_of(Request(step["method"], step["path"].partition("?")[0], {}, {}, b""))
    return target is None or target.info is not None


class Replay:
    """One case on one server, in a namespace of its own."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._names = {"ns": NAMESPACE}

    async def prepare(self, case: Case) -> None:
        await self._server.namespace(NAMESPACE)
        for step in case.get("setup") or []:
            answer = await self.send(step)
            body = await answer.read()
            if answer.status < 300:
                self._save(step, body)

    async def send(self, step: dict[str, Any]) -> Response:
        body = self.filled(step.get("body"))
        data = b"" if body is None else body.encode() if isinstance(body, str) else json.dumps(body).encode()
        query = self.filled(step.get("query") or "")
        headers = {name.lower(): self.filled(value) for name, value in (step.get("headers") or {}).items()}
        headers.setdefault("user-agent", step.get("ua") or ADMIN_AGENT)
        if step.get("accept"):
            headers["accept"] = step["accept"]
        path = self.filled(step["path"])
        if query:
            path += ("&" if "?" in path else "?") + query
        return await self._server.ask(
            step["method"], path, data, content_type=step.get("contentType") or "", **headers
        )

    def filled(self, value: Any) -> Any:
        if isinstance(value, str):
            return _PLACEHOLDER.sub(lambda found: self._names.get(found[1], found[0]), value)
        if isinstance(value, dict):
            return {self.filled(name): self.filled(inner) for name, inner in value.items()}
        return [self.filled(inner) for inner in value] if isinstance(value, list) else value

    def _save(self, step: dict[str, Any], body: bytes) -> None:
        for name, path in (step.get("save") or {}).items():
            found: Any = document(body)
            for part in path.split("."):
                found = found.get(part, "")
            self._names[name] = found


def differences(expected: Any, got: Any, path: str = "") -> Iterator[str]:
    """Where an answer is not the recorded one; a recorded `{name}` stands for any text."""
    if isinstance(expected, dict) and isinstance(got, dict):
        for name in {**expected, **got}:
            if name not in got:
                yield f"{path}.{name}: missing, not {expected[name]!r}"
            elif name not in expected:
                yield f"{path}.{name}: {got[name]!r} was not there"
            else:
                yield from differences(expected[name], got[name], f"{path}.{name}")
    elif isinstance(expected, list) and isinstance(got, list):
        if len(expected) != len(got):
            yield f"{path}: {len(got)} items, not {len(expected)}: {got!r}"
        for index, (one, other) in enumerate(zip(expected, got, strict=False)):
            yield from differences(one, other, f"{path}[{index}]")
    elif isinstance(expected, str) and isinstance(got, str):
        if not _pattern(expected).fullmatch(got):
            yield f"{path}: {got!r}, not {expected!r}"
    elif expected != got or type(expected) is not type(got):
        yield f"{path}: {got!r}, not {expected!r}"


def _pattern(text: str) -> re.Pattern[str]:
    parts = _PLACEHOLDER.split(text)
    return re.compile("".join(".*?" if index % 2 else re.escape(part) for index, part in enumerate(parts)), re.DOTALL)


def comparable(body: Any) -> Any:
    """An answer without what we do not give to pods, and with each cause named once."""
    if isinstance(body, list):
        return [comparable(each) for each in body if not _mounts_token(each)]
    if not isinstance(body, dict):
        return body
    kept = {name: comparable(value) for name, value in body.items()}
    for name in ("volumes", "volumeMounts"):
        if kept.get(name) == [] != body[name]:
            del kept[name]
    if isinstance(body.get("causes"), list):
        kept["causes"] = [each for index, each in enumerate(body["causes"]) if each not in body["causes"][:index]]
    return kept


def _mounts_token(item: Any) -> bool:
    return isinstance(item, dict) and str(item.get("name", "")).startswith(_MOUNTED_TOKEN)
