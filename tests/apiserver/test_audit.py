"""The audit log: what is recorded of whom, how much, and what happens when it cannot be."""

import json
import logging
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from podfit.api.audit.v1.types import AuditPolicy
from podfit.api.meta.codec import convert
from podfit.apiserver.extensions.audit.log import AuditLog
from podfit.apiserver.extensions.audit.options import AuditOptions, BadPolicy
from podfit.apiserver.extensions.audit.policy import EVERYTHING, AuditAttributes, recorded
from podfit.apiserver.server import ApiServer
from podfit.net.guard import answer
from podfit.net.wire import Identity, Request
from support.server import Server, running_server

SECRETS = "/api/v1/namespaces/default/secrets"
MAPS = "/api/v1/namespaces/default/configmaps"
JANE = Identity("jane", ("system:authenticated",), "u-1", {"team": ("a", "b")})
ADMIN = Identity("admin", ("system:masters",))


def policy(*rules: dict[str, Any], **more: Any) -> AuditPolicy:
    return convert({"rules": list(rules), **more}, AuditPolicy)


class Audited:
    def __init__(self, server: Server, path: Path, rules: AuditPolicy) -> None:
        self.path = path
        self.log = AuditLog(path, rules, server.context.clock)
        self.api = ApiServer(server.context, signing_key=path.parent / "sa.key", audit=self.log)

    async def ask(
        self, method: str, path: str, body: bytes = b"", who: Identity = ADMIN, *, headers: dict[str, str] | None = None
    ) -> bytes:
        path, _, text = path.partition("?")
        query = {name: (value,) for name, _, value in (part.partition("=") for part in text.split("&") if part)}
        sent = {"content-type": "application/json", "user-agent": "test/1"} | (headers or {})
        request = Request(method, path, query, sent, body, identity=who, remote="10.0.0.1")
        return await (await answer(self.api.handler, request)).read()

    async def lines(self) -> list[dict[str, Any]]:
        await self.log.close()
        return [json.loads(line) for line in self.path.read_text().splitlines()]


@asynccontextmanager
async def audited(directory: Path, rules: AuditPolicy = EVERYTHING) -> AsyncIterator[Audited]:
    async with running_server(directory) as server:
        yield Audited(server, directory / "logs" / "audit.log", rules)


async def test_who_asked_for_what_and_what_came_of_it(tmp_path: Path) -> None:
    async with audited(tmp_path) as made:
        secret = b'{"metadata":{"name":"s"},"stringData":{"password":"hunter2"},"data":{"k":"aHVudGVyMw=="}}'
        await made.ask("POST", SECRETS, secret)
        await made.ask("GET", f"{SECRETS}/s?pretty=true")
        await made.ask("GET", f"{SECRETS}/s", who=JANE, headers={"audit-id": "mine"})
        await made.ask("GET", "/version")
        created, read, refused, version = await made.lines()
        text = made.path.read_text()
    assert "hunter2" not in text
    assert "aHVudGVyMw" not in text
    assert (created["kind"], created["apiVersion"], created["level"], created["stage"]) == (
        "Event",
        "audit.k8s.io/v1",
        "Metadata",
        "ResponseComplete",
    )
    assert created["verb"] == "create"
    assert created["objectRef"] == {"resource": "secrets", "namespace": "default", "apiVersion": "v1"}
    assert created["responseStatus"] == {"metadata": {}, "code": 201}
    assert created["sourceIPs"] == ["10.0.0.1"]
    assert created["userAgent"] == "test/1"
    assert read["requestURI"] == f"{SECRETS}/s?pretty=true"
    assert read["auditID"] != created["auditID"]
    assert refused["auditID"] == "mine"
    assert refused["user"] == {
        "username": "jane",
        "uid": "u-1",
        "groups": ["system:authenticated"],
        "extra": {"team": ["a", "b"]},
    }
    assert (refused["responseStatus"]["code"], refused["responseStatus"]["reason"]) == (403, "Forbidden")
    assert (version["verb"], version["requestURI"], "objectRef" in version) == ("get", "/version", False)
    assert created["requestReceivedTimestamp"] <= created["stageTimestamp"]


async def test_impersonation_and_bad_credentials(tmp_path: Path) -> None:
    async with audited(tmp_path) as made:
        await made.ask("GET", MAPS, headers={"impersonate-user": "joe"})
        request = Request("GET", MAPS, {}, {"authorization": "Bearer nonsense"})
        await answer(made.api.handler, request)
        impersonated, unknown = await made.lines()
    assert impersonated["user"]["username"] == "admin"
    assert impersonated["impersonatedUser"]["username"] == "joe"
    assert (unknown["responseStatus"]["code"], unknown["user"]["username"]) == (401, "system:anonymous")
    assert "nonsense" not in json.dumps(unknown)


async def test_bodies_where_the_policy_wants_them(tmp_path: Path) -> None:
    rules = policy(
        {"level": "None", "users": ["jane"]},
        {"level": "Request", "resources": [{"resources": ["configmaps"]}], "verbs": ["create"]},
        {"level": "RequestResponse", "resources": [{"resources": ["configmaps"]}]},
        {"level": "Metadata"},
        omitStages=["RequestReceived"],
    )
    async with audited(tmp_path, rules) as made:
        await made.ask("POST", MAPS, b'{"metadata":{"name":"m"},"data":{"k":"v"}}')
        await made.ask("GET", f"{MAPS}/m")
        await made.ask("GET", MAPS, who=JANE)
        await made.ask("PUT", f"{MAPS}/m", b"not json")
        created, read, wrong = await made.lines()
    assert created["requestObject"]["data"] == {"k": "v"}
    assert "responseObject" not in created
    assert read["responseObject"]["data"] == {"k": "v"}
    assert "requestObject" not in read
    assert "requestObject" not in wrong
    assert wrong["responseStatus"]["code"] == 400


async def test_a_watch_is_told_when_it_begins_and_when_it_ends(tmp_path: Path) -> None:
    async with audited(tmp_path, policy({"level": "Metadata"})) as made:
        request = Request("GET", MAPS, {"watch": ("1",)}, {}, identity=ADMIN)
        watching = await answer(made.api.handler, request)
        await watching.body.aclose()  # type: ignore[union-attr]  # every body that is streamed has it
        found = await made.lines()
    assert [event["stage"] for event in found] == ["RequestReceived", "ResponseStarted", "ResponseComplete"]
    assert len({event["auditID"] for event in found}) == 1


async def test_nobody_else_may_read_it_and_it_may_be_moved_away(tmp_path: Path) -> None:
    async with audited(tmp_path) as made:
        await made.ask("GET", "/version")
        await made.lines()
        assert stat.S_IMODE(made.path.stat().st_mode) == 0o600


async def test_a_full_disk_stops_nobody_and_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with audited(tmp_path) as made:
        whole = made.log._append

        def full(lines: list[bytes]) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(made.log, "_append", full)
        for _ in range(3):
            assert b"gitVersion" in await made.ask("GET", "/version")
            await made.log.supervisor.finish()
        said = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
        assert len(said) == 1
        assert "No space left on device" in said[0]
        monkeypatch.setattr(made.log, "_append", whole)
        await made.ask("GET", "/version")
        assert len(await made.lines()) == 1
        assert made.log.dropped == 3
        assert "dropped=3" in caplog.text


@pytest.mark.parametrize(
    ("rule", "asked", "level"),
    [
        ({}, AuditAttributes("u", (), "get", resource="pods"), "Metadata"),
        ({"users": ["v"]}, AuditAttributes("u", (), "get", resource="pods"), "None"),
        ({"userGroups": ["g"]}, AuditAttributes("u", ("f", "g"), "get", resource="pods"), "Metadata"),
        ({"verbs": ["list"]}, AuditAttributes("u", (), "get", resource="pods"), "None"),
        ({"namespaces": ["a"]}, AuditAttributes("u", (), "get", resource="pods", namespace="b"), "None"),
        ({"namespaces": [""]}, AuditAttributes("u", (), "get", resource="nodes"), "Metadata"),
        ({"resources": [{}]}, AuditAttributes("u", (), "get", resource="pods"), "Metadata"),
        ({"resources": [{"group": "apps"}]}, AuditAttributes("u", (), "get", resource="pods"), "None"),
        (
            {"resources": [{"resources": ["pods"]}]},
            AuditAttributes("u", (), "get", resource="pods", subresource="log"),
            "None",
        ),
        (
            {"resources": [{"resources": ["pods/*"]}]},
            AuditAttributes("u", (), "get", resource="pods", subresource="log"),
            "Metadata",
        ),
        (
            {"resources": [{"resources": ["*/log"]}]},
            AuditAttributes("u", (), "get", resource="pods", subresource="log"),
            "Metadata",
        ),
        (
            {"resources": [{"resources": ["pods"], "resourceNames": ["a"]}]},
            AuditAttributes("u", (), "get", resource="pods", name="b"),
            "None",
        ),
        ({"nonResourceURLs": ["/healthz*"]}, AuditAttributes("u", (), "get", path="/healthz/ping"), "Metadata"),
        ({"nonResourceURLs": ["/metrics"]}, AuditAttributes("u", (), "get", path="/healthz"), "None"),
        ({"nonResourceURLs": ["/metrics"]}, AuditAttributes("u", (), "get", resource="pods"), "None"),
        ({"resources": [{}]}, AuditAttributes("u", (), "get", path="/healthz"), "None"),
    ],
)
def test_rules(rule: dict[str, Any], asked: AuditAttributes, level: str) -> None:
    assert recorded(policy({"level": "Metadata"} | rule), asked).level == level


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("rules: []", "records nothing"),
        ("rules: [{level: Loud}]", "'Loud' is none of"),
        ("[", "policy.yaml"),
        ("kind: Pod\nrules: [{level: None}]", "not audit.k8s.io/v1 Policy"),
        ("rules: [{level: Metadata, resources: [{}], nonResourceURLs: [/]}]", "not both"),
        ("omitStages: [Never]\nrules: [{level: Metadata}]", "'Never' is none of"),
        ("rules: 3", "rules"),
    ],
)
def test_a_bad_policy_says_what_is_wrong(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(text)
    with pytest.raises(BadPolicy, match=why):
        AuditOptions(log=tmp_path / "log", policy=file).read()
