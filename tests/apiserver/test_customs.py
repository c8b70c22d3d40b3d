"""Kinds that a cluster declares: served while their definition stands, and shown in the version that is asked for."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from podfit.api.apiextensions.v1.types import CustomResourceDefinition
from podfit.apiserver.extensions.customresources.deletion import release, remove_all
from podfit.apiserver.extensions.customresources.kinds import kept_as
from podfit.apiserver.extensions.customresources.table import CustomTable
from podfit.apiserver.registry.change_watch import RETRY
from podfit.net.supervisor import Supervisor
from podfit.store.protocol import SlowWatcher, Store, Watch
from support.clock import FakeClock
from support.server import Server, document, running_server

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
FOOS = "/apis/example.com/v1/namespaces/default/foos"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
SPEC = {"type": "object", "properties": {"size": {"type": "integer"}, "mode": {"type": "string", "default": "slow"}}}


def definition(*, kind: str = "Foo", versions: list[dict[str, Any]] | None = None, **more: Any) -> dict[str, Any]:
    plural = f"{kind.lower()}s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind, **more},
            "versions": versions or [version()],
        },
    }


def version(
    name: str = "v1", *, storage: bool = True, spec: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    properties = {"spec": spec or SPEC, "status": {"type": "object", "properties": {"phase": {"type": "string"}}}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": properties}}
    return {"name": name, "served": True, "storage": storage, "schema": schema, **more}


def foo(name: str = "a", api_version: str = "example.com/v1", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": "Foo", "metadata": {"name": name}, "spec": spec}


async def send(server: Server, method: str, path: str, body: Any = None, status: int = 200, **more: Any) -> Any:
    answer = await server.ask(method, path, b"" if body is None else json.dumps(body).encode(), **more)
    text = await answer.read()
    assert answer.status == status, text
    return document(text) if text.startswith(b"{") else text


async def test_a_kind_is_served_from_the_answer_to_its_definition_on(server: Server) -> None:
    await send(server, "GET", FOOS, status=404)
    await send(server, "POST", DEFINITIONS, definition(shortNames=["fo"], categories=["all"]), 201)
    made = await send(server, "GET", f"{DEFINITIONS}/foos.example.com")
    conditions = {
        condition["type"]: (condition["status"], condition["reason"]) for condition in made["status"]["conditions"]
    }
    assert conditions == {"NamesAccepted": ("True", "NoConflicts"), "Established": ("True", "InitialNamesAccepted")}
    assert made["status"]["acceptedNames"]["listKind"] == "FooList"
    assert made["status"]["storedVersions"] == ["v1"]
    await send(server, "POST", FOOS, foo(size=1), 201)
    listed = await send(server, "GET", "/apis/example.com/v1/foos")
    assert (listed["kind"], listed["items"][0]["kind"], listed["items"][0]["spec"]) == (
        "FooList",
        "Foo",
        {"size": 1, "mode": "slow"},
    )
    found = await send(server, "GET", "/apis/example.com/v1")
    assert [(resource["name"], resource["shortNames"], resource["categories"]) for resource in found["resources"]] == [
        ("foos", ["fo"], ["all"])
    ]
    groups = await send(server, "GET", "/apis")
    assert groups["groups"][-1]["name"] == "example.com"


async def test_a_kind_goes_with_its_definition_and_takes_its_objects_along(server: Server) -> None:
    await send(server, "POST", DEFINITIONS, definition(), 201)
    await send(server, "POST", FOOS, foo("a"), 201)
    held = foo("b") | {"metadata": {"name": "b", "finalizers": ["example.com/wait"]}}
    await send(server, "POST", FOOS, held, 201)
    gone = await send(server, "DELETE", f"{DEFINITIONS}/foos.example.com")
    assert gone["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    left = await send(server, "GET", FOOS)
    assert [item["metadata"]["name"] for item in left["items"]] == ["b"]
    refused = await send(server, "POST", FOOS, foo("c"), 405)
    assert refused["message"] == "create not allowed while custom resource definition is terminating"
    await send(server, "PATCH", f"{FOOS}/b", {"metadata": {"finalizers": None}}, content_type=MERGE)
    assert isinstance(server.context.clock, FakeClock)
    await server.context.clock.settle()
    await send(server, "GET", FOOS, status=404)
    await send(server, "GET", f"{DEFINITIONS}/foos.example.com", status=404)
    await send(server, "POST", DEFINITIONS, definition(), 201)
    assert (await send(server, "GET", FOOS))["items"] == []


HELD = foo("b") | {"metadata": {"name": "b", "finalizers": ["example.com/wait"]}}


async def test_looks_at_the_same_time_await_the_end_of_a_kind_once(server: Server) -> None:
    await send(server, "POST", DEFINITIONS, definition(), 201)
    await send(server, "POST", FOOS, HELD, 201)
    await send(server, "DELETE", f"{DEFINITIONS}/foos.example.com")
    tasks = Supervisor("another server")
    other = CustomTable(replace(server.context, supervisor=tasks))
    await asyncio.gather(other.refresh(), other.refresh(), other.refresh())
    ends = [task for task in asyncio.all_tasks() if task.get_name() == "end of foos.example.com"]
    assert len(ends) == 2, "one of each server"
    await tasks.stop()
    assert sum(task.done() for task in ends) == 1


async def test_the_end_of_a_definition_leaves_a_later_one_of_its_name_alone(server: Server) -> None:
    """Another server may have ended it, and a client made it anew, before this one comes to it."""
    await send(server, "POST", DEFINITIONS, definition(), 201)
    old = await server.client.get(CustomResourceDefinition, "foos.example.com", "")
    await send(server, "DELETE", f"{DEFINITIONS}/foos.example.com")
    await send(server, "POST", DEFINITIONS, definition(), 201)
    await send(server, "POST", FOOS, foo("a"), 201)
    info = kept_as(old)
    assert info is not None
    assert not await remove_all(server.context, old, info)
    await release(server.context, old)
    assert [item["metadata"]["name"] for item in (await send(server, "GET", FOOS))["items"]] == ["a"]


async def test_objects_end_with_a_definition_that_is_not_served(server: Server) -> None:
    await send(server, "POST", DEFINITIONS, definition(), 201)
    await send(server, "POST", FOOS, foo("a"), 201)
    unserved = {"spec": {"versions": [version() | {"served": False}]}}
    await send(server, "PATCH", f"{DEFINITIONS}/foos.example.com", unserved, content_type=MERGE)
    await send(server, "GET", FOOS, status=404)
    await send(server, "DELETE", f"{DEFINITIONS}/foos.example.com")
    await send(server, "POST", DEFINITIONS, definition(), 201)
    assert (await send(server, "GET", FOOS))["items"] == []


async def test_the_end_of_a_kind_is_awaited_anew_when_the_store_fails(tmp_path: Path) -> None:
    clock = FakeClock()
    async with running_server(tmp_path, clock=clock) as server:
        await send(server, "POST", DEFINITIONS, definition(), 201)
        await send(server, "POST", FOOS, HELD, 201)
        await send(server, "DELETE", f"{DEFINITIONS}/foos.example.com")
        store = Failing(server.context.store)
        other = CustomTable(replace(server.context, store=cast(Store, store)))
        await other.refresh()
        await clock.advance(0)
        assert store.watched == 1
        await clock.advance(RETRY)
        assert store.watched == 2


class Failing:
    """The store, whose first watch breaks."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.watched = 0

    def watch(self, prefix: str, *, after: int) -> Watch:
        self.watched += 1
        if self.watched == 1:
            raise SlowWatcher
        return self._store.watch(prefix, after=after)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


async def test_a_watch_ends_when_its_kind_is_served_no_more(server: Server) -> None:
    await send(server, "POST", DEFINITIONS, definition(), 201)
    watch = await server.ask("GET", f"{FOOS}?watch=1")
    await send(server, "POST", FOOS, foo("a"), 201)
    await send(server, "DELETE", f"{DEFINITIONS}/foos.example.com")
    events = [json.loads(line) for line in (await watch.read()).splitlines()]
    assert [(event["type"], event["object"]["metadata"]["name"]) for event in events] == [
        ("ADDED", "a"),
        ("DELETED", "a"),
    ]


async def test_names_belong_to_who_asked_first(server: Server) -> None:
    await send(server, "POST", DEFINITIONS, definition(shortNames=["fo"]), 201)
    await send(server, "POST", DEFINITIONS, definition(kind="Bar", shortNames=["fo"]), 201)
    second = await send(server, "GET", f"{DEFINITIONS}/bars.example.com")
    conditions = {
        condition["type"]: (condition["status"], condition["reason"], condition["message"])
        for condition in second["status"]["conditions"]
    }
    assert conditions == {
        "NamesAccepted": ("False", "ShortNamesConflict", '"fo" is already in use'),
        "Established": ("False", "NotAccepted", "not all names are accepted"),
    }
    await send(server, "GET", "/apis/example.com/v1/bars", status=404)
    await send(server, "DELETE", f"{DEFINITIONS}/foos.example.com")
    assert (await send(server, "GET", "/apis/example.com/v1/bars"))["items"] == []


async def test_every_version_shows_the_same_objects_by_its_own_schema(server: Server) -> None:
    colour = {"type": "string", "default": "red"}
    older = {"type": "object", "properties": {"size": {"type": "integer"}, "colour": colour}}
    versions = [version("v1beta1", storage=False, spec=older, deprecated=True), version("v1")]
    await send(server, "POST", DEFINITIONS, definition(versions=versions), 201)
    path = "/apis/example.com/v1beta1/namespaces/default/foos"
    made = await server.ask("POST", path, json.dumps(foo(api_version="example.com/v1beta1", size=1)).encode())
    assert made.headers["warning"] == '299 - "example.com/v1beta1 Foo is deprecated"'
    assert document(await made.read())["spec"] == {"size": 1, "colour": "red"}
    seen = await send(server, "GET", f"{FOOS}/a")
    assert (seen["apiVersion"], seen["spec"]) == ("example.com/v1", {"size": 1, "mode": "slow"})
    watch = await server.ask("GET", f"{path}?watch=1&timeoutSeconds=1")
    await send(server, "PATCH", f"{FOOS}/a", {"spec": {"size": 2}}, content_type=MERGE)
    assert not isinstance(watch.body, bytes)
    lines = [json.loads(await anext(aiter(watch.body))) for _ in range(2)]
    assert [(line["type"], line["object"]["apiVersion"], line["object"]["spec"]["size"]) for line in lines] == [
        ("ADDED", "example.com/v1beta1", 1),
        ("MODIFIED", "example.com/v1beta1", 2),
    ]
    found = await send(server, "GET", "/apis/example.com")
    assert [version["version"] for version in found["versions"]] == ["v1", "v1beta1"]
    refused = await send(server, "POST", path, foo(), 400)
    assert refused["message"] == (
        "the API version in the data (example.com/v1) does not match the expected API version (example.com/v1beta1)"
    )


async def test_a_default_that_comes_later_is_seen_in_older_objects(server: Server) -> None:
    await send(server, "POST", DEFINITIONS, definition(), 201)
    await send(server, "POST", FOOS, foo(size=1), 201)
    later = {"type": "object", "properties": {"size": {"type": "integer"}, "new": {"type": "integer", "default": 7}}}
    patch = {"spec": {"versions": [version(spec=later)]}}
    await send(server, "PATCH", f"{DEFINITIONS}/foos.example.com", patch, content_type=MERGE)
    assert (await send(server, "GET", f"{FOOS}/a"))["spec"] == {"size": 1, "new": 7}


async def test_status_and_generation(server: Server) -> None:
    await send(server, "POST", DEFINITIONS, definition(versions=[version(subresources={"status": {}})]), 201)
    made = await send(server, "POST", FOOS, foo(size=1) | {"status": {"phase": "x"}}, 201)
    assert ("status" in made, made["metadata"]["generation"]) == (False, 1)
    patch = {"spec": {"size": 9}, "status": {"phase": "Up"}, "metadata": {"labels": {"a": "b"}}}
    seen = await send(server, "PATCH", f"{FOOS}/a/status", patch, content_type=MERGE)
    assert (seen["spec"]["size"], seen["status"], seen["metadata"]["generation"]) == (1, {"phase": "Up"}, 1)
    assert "labels" not in seen["metadata"]
    seen = await send(server, "PATCH", f"{FOOS}/a", patch | {"status": {"phase": "Down"}}, content_type=MERGE)
    assert (seen["spec"]["size"], seen["status"], seen["metadata"]["generation"]) == (9, {"phase": "Up"}, 2)


async def test_a_null_is_applied_where_the_schema_allows_one(server: Server) -> None:
    text = {"type": "string"}
    spec = {"type": "object", "properties": {"a": text, "n": text | {"nullable": True}}}
    await send(server, "POST", DEFINITIONS, definition(versions=[version(spec=spec)]), 201)
    apply = f"{FOOS}/a?fieldManager=one"
    for status in (201, 200):
        made = await send(server, "PATCH", apply, foo(a=None, n=None), status, content_type=APPLY)
        assert made["spec"] == {"n": None}


async def test_columns_and_selectable_fields(server: Server) -> None:
    columns = [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status', "priority": 1},
    ]
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    one = version(additionalPrinterColumns=columns, selectableFields=[{"jsonPath": ".spec.mode"}])
    one["schema"]["openAPIV3Schema"]["properties"]["status"] = free
    await send(server, "POST", DEFINITIONS, definition(versions=[one]), 201)
    status = {"conditions": [{"type": "Other", "status": "False"}, {"type": "Ready", "status": "True"}]}
    await send(server, "POST", FOOS, foo("a", size=3, mode="fast") | {"status": status}, 201)
    await send(server, "POST", FOOS, foo("b"), 201)
    table = await send(server, "GET", FOOS, accept=TABLE)
    assert [definition["name"] for definition in table["columnDefinitions"]] == ["Name", "Size", "Ready"]
    assert [row["cells"] for row in table["rows"]] == [["a", 3, "True"], ["b", None, None]]
    chosen = await send(server, "GET", f"{FOOS}?fieldSelector=spec.mode%3Dfast")
    assert [item["metadata"]["name"] for item in chosen["items"]] == ["a"]
    refused = await send(server, "GET", f"{FOOS}?fieldSelector=spec.size%3D3", status=400)
    assert refused["message"] == "field label not supported: spec.size"


async def test_apply_where_the_root_preserves_unknown_fields(server: Server) -> None:
    one = version()
    one["schema"]["openAPIV3Schema"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    await send(server, "POST", DEFINITIONS, definition(versions=[one]), 201)
    applied = json.dumps(foo("a") | {"spec": {"any": [1]}, "other": 2}).encode()
    answer = await server.ask("PATCH", f"{FOOS}/a?fieldManager=m", applied, content_type="application/apply-patch+yaml")
    assert answer.status == 201, await answer.read()


async def test_what_an_update_does_not_touch_may_stay_wrong(server: Server) -> None:
    await send(server, "POST", DEFINITIONS, definition(), 201)
    await send(server, "POST", FOOS, foo(size=9, mode="fast"), 201)
    spec = {"type": "object", "properties": {"size": {"type": "integer", "maximum": 5}, "mode": {"type": "string"}}}
    patch = {"spec": {"versions": [version(spec=spec)]}}
    await send(server, "PATCH", f"{DEFINITIONS}/foos.example.com", patch, content_type=MERGE)
    await send(server, "PATCH", f"{FOOS}/a", {"spec": {"mode": "slow"}}, content_type=MERGE)
    await send(server, "PATCH", f"{FOOS}/a", {"spec": {"size": 8}}, 422, content_type=MERGE)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"conversion": {"strategy": "Webhook"}}, "webhooks: use strategy None, by which only the apiVersion changes"),
        ({"scope": "Galaxy"}, 'spec.scope: Unsupported value: "Galaxy": supported values: "Cluster", "Namespaced"'),
        ({"group": "x.k8s.io"}, "see https://github.com/kubernetes/enhancements/pull/1111"),
    ],
)
async def test_refused_definitions(server: Server, change: dict[str, Any], message: str) -> None:
    wrong = definition()
    wrong["spec"] |= change
    wrong["metadata"]["name"] = f"foos.{wrong['spec']['group']}"
    refused = await send(server, "POST", DEFINITIONS, wrong, 422)
    assert message in refused["message"]
