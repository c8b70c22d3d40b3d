"""Requests at random, and what has to hold whatever they were.

Objects and patches are built from the server's own OpenAPI schemas, which come from the Structs: begun with an example
that is valid, then grafted with random parts at random places, mostly of the right type, sometimes not.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from copy import deepcopy
from random import Random
from typing import Any
from urllib.parse import quote

from podfit.api.meta.resource_info import ResourceInfo
from podfit.api.registry import resources
from podfit.api.structural.custom import is_custom
from podfit.api.validation import validate_update
from podfit.apiserver.handlers.patching import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from podfit.apiserver.http.openapi.schemas import Schemas, schema_name
from podfit.apiserver.registry import stored
from podfit.net.wire import Response
from podfit.store.protocol import Record
from support.server import Server

REF = "#/"
NAMES = ("a", "b", "default", "kube-system", "a.b", "", "A", "x" * 64, "x" * 260, "-", "ü", "..")
TEXTS = (
    "",
    "a",
    "b",
    "app",
    "100m",
    "1",
    "-1",
    "1Gi",
    "1e999",
    "0.5",
    "100%",
    "150%",
    "Always",
    "Never",
    "TCP",
    "Exists",
    "In",
    "true",
    "2026-01-01T00:00:00Z",
    "2026-01-01T00:00:00.000000Z",
    "yesterday",
    "example.org/a",
    "10.0.0.1",
    "::1",
    "\u0000",
    "\ud7ff",
    "ü",
    "x" * 300,
    "$patch",
    "../..",
    "/",
    "/tmp",
    "http://a",
    "Zm9v",
    "*/5 * * * *",
    "None",
    "%",
)
NUMBERS = (0, 1, -1, 2, 3, 80, 8080, 65536, 2**31 - 1, 2**31, 2**63 - 1, -(2**63), 2**64, 0.5, 1e300)
ODD: tuple[Any, ...] = (None, "", "a", 0, -1, True, [], {}, [None], {"": ""}, [[]], 1.5)
CONTAINER = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "1"}}}
TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [CONTAINER]}}
WORKLOAD = {"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE}
SPECS: dict[str, Any] = {
    "pods": {"containers": [CONTAINER], "nodeName": "n1"},
    "deployments": WORKLOAD,
    "replicasets": WORKLOAD,
    "daemonsets": WORKLOAD,
    "statefulsets": WORKLOAD | {"serviceName": "a"},
    "services": {"ports": [{"port": 80}]},
    "replicationcontrollers": {"selector": {"app": "a"}, "template": TEMPLATE},
    "jobs": {"template": {"spec": {"containers": [CONTAINER], "restartPolicy": "Never"}}},
}
QUERIES = (
    "",
    "",
    "",
    "",
    "dryRun=All",
    "dryRun=Some",
    "fieldValidation=Strict",
    "fieldValidation=Ignore",
    "fieldManager=f",
    "fieldManager=f&force=true",
    "propagationPolicy=Foreground",
    "propagationPolicy=Orphan",
    "gracePeriodSeconds=0",
    "limit=1",
    "limit=-1",
    "limit=1&continue=abc",
    "labelSelector=a%3Db",
    "labelSelector=a+in+(b)",
    "fieldSelector=metadata.name%3Da",
    "fieldSelector=x%3Dy",
    "resourceVersion=1",
    "resourceVersion=0",
    "resourceVersion=99999",
    "resourceVersionMatch=Exact&resourceVersion=1",
    "timeout=1s",
    "pretty=true",
)
ACCEPTS = ("application/json",) * 6 + (
    "application/yaml",
    "*/*",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "text/html",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "application/vnd.kubernetes.protobuf",
)
PATCHES = (MERGE_PATCH, STRATEGIC_PATCH, JSON_PATCH, APPLY_PATCH)
KINDS = 3
NOT_THERE = (
    b"cannot be reached from this API server",  # a node that has no kubelet
    b"no endpoints available for service",
    b"no service port",
    b"error trying to reach service",
)
PATIENCE = 20.0  # seconds until a request counts as one that hangs


class Builder:
    """Documents from schemas, by one random source."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self._schemas = Schemas(REF)
        for info in resources():
            self._schemas.add(info)

    def document(self, info: ResourceInfo, name: str, namespace: str, *, grafts: int | None = None) -> dict[str, Any]:
        """An object of the kind, valid but for what was grafted onto it."""
        meta: dict[str, Any] = {"name": name} | ({"namespace": namespace} if info.namespaced else {})
        base: dict[str, Any] = {"apiVersion": info.group_version, "kind": info.kind, "metadata": meta}
        if info.resource in SPECS:
            base["spec"] = json.loads(json.dumps(SPECS[info.resource]))
        for _ in range(self.random.choice((0, 0, 1, 1, 2, 4)) if grafts is None else grafts):
            self._graft(base, self._schemas.found[schema_name(info.type)])
        return base

    def part(self, info: ResourceInfo) -> dict[str, Any]:
        """Something to merge into an object of the kind."""
        base: dict[str, Any] = {}
        for _ in range(self.random.choice((1, 1, 2, 3))):
            self._graft(base, self._schemas.found[schema_name(info.type)])
        return base

    def operations(self, info: ResourceInfo) -> list[dict[str, Any]]:
        """A JSON patch."""
        return [self._operation(self.part(info)) for _ in range(self.random.choice((1, 1, 2)))]

    def _operation(self, part: dict[str, Any]) -> dict[str, Any]:
        path = ""
        value: Any = part
        while isinstance(value, dict) and value and self.random.random() < 0.8:
            key, value = self.random.choice(list(value.items()))
            path += "/" + str(key).replace("~", "~0").replace("/", "~1")
        kind = self.random.choice(("add", "replace", "remove", "test", "copy", "move", "turn"))
        return {"op": kind, "path": path, "value": value, "from": self.random.choice((path, "/metadata", "/spec"))}

    def _graft(self, target: dict[str, Any], schema: dict[str, Any]) -> None:
        """Walk down where there is something, then put a random value there."""
        schema = self._resolved(schema)
        properties = schema.get("properties")
        if not properties:
            target[self.random.choice(TEXTS)] = self.value(schema.get("additionalProperties") or {}, 3)
            return
        name = self.random.choice(list(properties))
        below, inner = target.get(name), self._resolved(properties[name])
        if isinstance(below, dict) and self.random.random() < 0.85:
            self._graft(below, inner)
        elif isinstance(below, list) and any(isinstance(item, dict) for item in below) and self.random.random() < 0.85:
            self._graft(self.random.choice([item for item in below if isinstance(item, dict)]), inner.get("items", {}))
        else:
            target[name] = self.value(inner, 3)

    def value(self, schema: dict[str, Any], depth: int) -> Any:
        random = self.random
        if random.random() < 0.04:
            return deepcopy(random.choice(ODD))  # what is grafted may be grafted onto
        schema = self._resolved(schema)
        match schema.get("type"):
            case "object":
                return self._object(schema, depth)
            case "array":
                items = schema.get("items", {})
                return [self.value(items, depth - 1) for _ in range(random.choice((0, 1, 1, 2)) if depth > 0 else 0)]
            case "string":
                return random.choice(TEXTS)
            case "integer" | "number":
                return random.choice(NUMBERS)
            case "boolean":
                return random.random() < 0.5
        return random.choice((*TEXTS[:12], *NUMBERS[:6]))

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        random, properties = self.random, schema.get("properties")
        if properties is None:
            inner = schema.get("additionalProperties") or {"type": "string"}
            return {random.choice(TEXTS): self.value(inner, depth - 1) for _ in range(random.choice((0, 1, 2)))}
        if depth <= 0:
            return {}
        names = random.sample(list(properties), min(len(properties), random.choice((1, 2, 3))))
        if "name" in properties and random.random() < 0.8:
            names.append("name")
        return {name: self.value(properties[name], depth - 1) for name in names}

    def _resolved(self, schema: dict[str, Any]) -> dict[str, Any]:
        for branch in schema.get("allOf", ()):
            schema = branch
        while "$ref" in schema:
            schema = self._schemas.found[schema["$ref"].removeprefix(REF)]
        return schema


class Fuzz:
    """A course of requests to one server, about a few of its kinds, so that they meet objects that are there."""

    def __init__(self, server: Server, seed: int) -> None:
        self._server, self._random = server, Random(seed)
        self._builder = Builder(self._random)
        self._kinds = self._random.sample(resources(), KINDS)
        self.sent = 0

    async def run(self, requests: int) -> None:
        for info in self._kinds:
            for name in "ab":
                body = encoded(self._builder.document(info, name, "default", grafts=0))
                await checked(self._server, "POST", info.path("default"), body)
        for _ in range(requests):
            method, path, body, kind, accept = self._request()
            await checked(self._server, method, path, body, kind=kind, accept=accept)
            self.sent += 1
        await check_stored(self._server)

    def _request(self) -> tuple[str, str, bytes, str, str]:
        random = self._random
        info = random.choice(self._kinds)
        name = random.choice(NAMES) if random.random() < 0.1 else random.choice("ab")
        namespace = "nowhere" if random.random() < 0.05 else "default"
        query = random.choice(QUERIES)
        accept = random.choice(ACCEPTS) if random.random() < 0.3 else ACCEPTS[0]
        method = random.choice(("POST", "POST", "POST", "PUT", "PATCH", "PATCH", "PATCH", "PATCH", "GET", "DELETE"))
        sub = random.choice(info.subresources).name if info.subresources and random.random() < 0.3 else ""
        body, kind = b"", "application/json"
        if method == "PATCH":
            kind = random.choice(PATCHES)
            made: Any = self._builder.operations(info) if kind == JSON_PATCH else self._builder.part(info)
            if kind == APPLY_PATCH:
                made = {"apiVersion": info.group_version, "kind": info.kind, **made}
            body = encoded(made)
        elif method in ("POST", "PUT"):
            body = encoded(self._builder.document(info, name, namespace))
        on_list = (method == "POST" and not sub) or (method in ("GET", "DELETE") and random.random() < 0.3)
        path = info.path(namespace, "" if on_list else quote(name) or "a", "" if on_list else sub)
        return method, f"{path}?{query}" if query else path, body, kind, accept


async def populate(server: Server, seed: int, name: str) -> None:
    """An object of each kind, as far as one is valid without more than a name."""
    builder = Builder(Random(seed))
    for info in resources():
        body = encoded(builder.document(info, name, "default", grafts=0))
        await checked(server, "POST", info.path("default"), body)


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


async def checked(
    server: Server, method: str, path: str, body: bytes, *, kind: str = "application/json", accept: str = "*/*"
) -> Response:
    """The answer, which came in time, is no failure of the server, and is what it says it is."""
    said = f"{method} {path} {kind} {accept}\n{body.decode(errors='replace')}"
    try:
        async with asyncio.timeout(PATIENCE):
            answer = await server.ask(method, path, body, content_type=kind, accept=accept)
            if not isinstance(answer.body, bytes):
                await answer.body.aclose()  # type: ignore[attr-defined]  # every body that is streamed has it
                return answer
            text = await answer.read()
    except TimeoutError:
        raise AssertionError(f"no answer: {said}") from None
    early = answer.status == 504 and b"Too large resource version" in text
    away = answer.status == 503 and any(why in text for why in NOT_THERE)
    assert answer.status < 500 or early or away, f"{answer.status} to {said}\n{text.decode(errors='replace')}"
    if text and answer.headers.get("content-type") == "application/json":
        document = json.loads(text)
        if answer.status >= 400:
            assert (document["kind"], document["code"]) == ("Status", answer.status), said
            assert document["message"] or answer.status == 404, said
    return answer


async def check_stored(server: Server) -> None:
    """Every object decodes, is encoded to the same bytes, and would be let through as an update of itself."""
    for info, record in [record async for record in _records(server)]:
        obj = stored.decoded(info, record)
        assert stored.encoded(obj) == record.value, record.key
        errors = [str(error) for error in validate_update(obj, obj, server.context.gates)]
        assert not errors, f"{record.key}: {errors}\n{record.value.decode()}"


async def _records(server: Server) -> AsyncIterator[tuple[ResourceInfo, Record]]:
    for info in resources():
        if is_custom(info.type) or info.conversion:  # what another version stores is looked at there
            continue
        for record in (await server.context.store.list(stored.prefix(info))).records:
            yield info, record
