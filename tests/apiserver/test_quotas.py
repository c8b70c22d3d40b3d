"""Quotas are charged in the transaction that stores an object: never without it, never too little."""

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from podfit.api.core.v1.limits.types import ResourceQuota
from podfit.client.informers import Informers
from podfit.controllers.quotas import QuotaController
from podfit.store.layer import StoreLayer
from podfit.store.memory import memory_store
from podfit.store.protocol import Companion, CompanionConflict, Record, RevisionConflict, StoreUnavailable
from support.server import Server, document, running_server

NAMESPACE = "/api/v1/namespaces/default"
MERGE = "application/merge-patch+json"


class Disturbed(StoreLayer):
    """Refuses some writes of pods, as if another server had been quicker or the disk had failed."""

    def __init__(self, chances: random.Random) -> None:
        super().__init__(memory_store())
        self._chances = chances

    def _shown(self, record: Record) -> Record:
        return record

    def _kept(self, key: str, value: bytes) -> bytes:
        return value

    def _disturb(self, key: str) -> None:
        draw = self._chances.random() if "/pods/" in key else 1.0
        if draw < 0.1:
            raise CompanionConflict
        if draw < 0.2:
            raise StoreUnavailable("not stored: the disk failed")

    async def create(self, key: str, value: bytes, *, along: Sequence[Companion] = ()) -> Record:
        self._disturb(key)
        return await super().create(key, value, along=along)

    async def update(
        self, key: str, value: bytes, *, expected: int, freeing: bool = False, along: Sequence[Companion] = ()
    ) -> Record:
        self._disturb(key)
        if "/pods/" in key and self._chances.random() < 0.2:
            raise RevisionConflict(await self.get(key))
        return await super().update(key, value, expected=expected, freeing=freeing, along=along)


async def send(server: Server, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
    answer = await server.ask(method, path, msgspec.json.encode(body) if body is not None else b"", content_type=kind)
    return answer.status, document(await answer.read())


async def quota(server: Server, hard: dict[str, str], *, name: str = "q", scopes: Sequence[str] = ()) -> None:
    body = {"metadata": {"name": name}, "spec": {"hard": hard, "scopes": list(scopes)}}
    code, made = await send(server, "POST", f"{NAMESPACE}/resourcequotas", body)
    assert code == 201, made


async def counted(server: Server, name: str = "q") -> dict[str, str]:
    """What is used, as the controller counts it."""
    clock, client = server.context.clock, server.client
    controller = QuotaController(client, informers=Informers(client, clock), clock=clock, gates=server.context.gates)
    await controller.reconcile(("default", name))
    return await used(server, name)


async def used(server: Server, name: str = "q") -> dict[str, str]:
    found = await server.client.get(ResourceQuota, name, "default")
    return {resource: str(amount) for resource, amount in found.status.used.items()}


def pod(name: str, cpu: str = "") -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu}} if cpu else {}
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "x", "resources": resources}]}}


def bigger(cpu: str) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}}


@pytest.mark.parametrize("seed", range(8))
async def test_writes_at_once_never_exceed_a_quota_nor_leave_a_charge(tmp_path: Path, seed: int) -> None:
    chances = random.Random(seed)
    async with running_server(tmp_path, store=Disturbed(chances)) as server:
        await server.account("default", certificate=True)
        await quota(server, {"pods": "12", "requests.cpu": "2"})
        creating = [send(server, "POST", f"{NAMESPACE}/pods", pod(f"p{number}", "100m")) for number in range(24)]
        made = [number for number, (code, _) in enumerate(await asyncio.gather(*creating)) if code == 201]
        assert 0 < len(made) <= 12
        resizing = [
            send(
                server,
                "PATCH",
                f"{NAMESPACE}/pods/p{number}/resize",
                bigger(f"{chances.randrange(1, 6)}00m"),
                "application/strategic-merge-patch+json",
            )
            for number in made
        ]
        assert 200 in {code for code, _ in await asyncio.gather(*resizing)}
        charged = await used(server)
        assert charged == await counted(server)
        assert int(charged["pods"]) == len(made)


class Armed(Disturbed):
    """Refuses the next write of a pod."""

    def __init__(self) -> None:
        super().__init__(random.Random(1))
        self.armed = False

    def _disturb(self, key: str) -> None:
        if "/pods/" in key and self.armed:
            self.armed = False
            raise CompanionConflict

    async def update(self, key: str, value: bytes, *, expected: int, **options: Any) -> Record:
        if "/pods/" in key and self.armed:
            self.armed = False
            raise RevisionConflict(await self.get(key))
        return await StoreLayer.update(self, key, value, expected=expected, **options)


async def test_a_write_that_is_tried_again_is_charged_once(tmp_path: Path) -> None:
    """The reproduction: a quota of exactly the new size, and a conflict on the first try."""
    store = Armed()
    async with running_server(tmp_path, store=store) as server:
        await server.account("default", certificate=True)
        await quota(server, {"requests.cpu": "2"})
        store.armed = True
        code, body = await send(server, "POST", f"{NAMESPACE}/pods", pod("p", "1"))
        assert (code, store.armed) == (201, False), body
        store.armed = True
        path = f"{NAMESPACE}/pods/p/resize"
        code, body = await send(server, "PATCH", path, bigger("2"), "application/strategic-merge-patch+json")
        assert (code, store.armed) == (200, False), body
        assert await used(server) == {"requests.cpu": "2"}


async def test_a_quota_holds_from_the_moment_it_is_made(server: Server) -> None:
    await send(server, "POST", f"{NAMESPACE}/pods", pod("old", "1"))
    await quota(server, {"pods": "1", "requests.cpu": "4"})
    code, body = await send(server, "POST", f"{NAMESPACE}/pods", pod("silent"))
    assert (code, "must specify requests.cpu for: c" in body["message"]) == (403, True)
    code, body = await send(server, "POST", f"{NAMESPACE}/pods", pod("new", "1"))
    assert code == 403
    assert body["message"].endswith("exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1")


async def test_the_last_object_is_given_back(server: Server) -> None:
    await quota(server, {"pods": "1", "configmaps": "1"})
    await send(server, "POST", f"{NAMESPACE}/pods", pod("a"))
    await send(server, "POST", f"{NAMESPACE}/configmaps", {"metadata": {"name": "a"}})
    assert await counted(server) == {"pods": "1", "configmaps": "1"}
    await send(server, "DELETE", f"{NAMESPACE}/pods/a")
    await send(server, "DELETE", f"{NAMESPACE}/configmaps/a")
    assert await counted(server) == {"pods": "0", "configmaps": "0"}


def service(**spec: Any) -> dict[str, Any]:
    ports = [{"name": f"p{port}", "port": port} for port in (80, 81)]
    return {"metadata": {"name": "s"}, "spec": {"ports": ports, **spec}}


async def test_a_service_that_becomes_a_node_port_is_charged(server: Server) -> None:
    await quota(server, {"services": "1", "services.nodeports": "1"})
    assert (await send(server, "POST", f"{NAMESPACE}/services", service()))[0] == 201
    change = {"spec": {"type": "NodePort"}}
    code, body = await send(server, "PATCH", f"{NAMESPACE}/services/s", change, MERGE)
    assert (code, "requested: services.nodeports=2" in body["message"]) == (403, True)
    assert await counted(server) == {"services": "1", "services.nodeports": "0"}


def claim(name: str, storage: str) -> dict[str, Any]:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "gold",
        "resources": {"requests": {"storage": storage}},
    }
    return {"metadata": {"name": name}, "spec": spec}


async def test_claims_are_charged_in_whole_bytes_and_by_class(server: Server) -> None:
    gold, path = "gold.storageclass.storage.k8s.io", f"{NAMESPACE}/persistentvolumeclaims"
    await quota(server, {"requests.storage": "3Gi", f"{gold}/requests.storage": "2Gi"})
    assert (await send(server, "POST", path, claim("a", "1500m")))[0] == 201
    assert (await used(server))["requests.storage"] == "2"
    code, body = await send(server, "POST", path, claim("b", "2Gi"))
    assert (code, f"exceeded quota: q, requested: {gold}/requests.storage=2Gi" in body["message"]) == (403, True)


async def test_custom_resources_are_counted(server: Server) -> None:
    names = {"plural": "tins", "singular": "tin", "kind": "Tin"}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    definition = {
        "metadata": {"name": "tins.example.org"},
        "spec": {"group": "example.org", "names": names, "scope": "Namespaced", "versions": [version]},
    }
    code, body = await send(server, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    assert code == 201, body
    await quota(server, {"count/tins.example.org": "1"})
    path, tin = "/apis/example.org/v1/namespaces/default/tins", {"apiVersion": "example.org/v1", "kind": "Tin"}
    assert (await send(server, "POST", path, tin | {"metadata": {"name": "a"}}))[0] == 201
    code, body = await send(server, "POST", path, tin | {"metadata": {"name": "b"}})
    assert (code, body["details"]) == (403, {"name": "b", "group": "example.org", "kind": "tins"})
    assert await counted(server) == {"count/tins.example.org": "1"}
    await send(server, "DELETE", f"{path}/a")
    assert await counted(server) == {"count/tins.example.org": "0"}


async def test_names_that_nobody_counts_are_not_shown_as_used(server: Server) -> None:
    await quota(server, {"limits.example.com/x": "1", "count/unknown.example.org": "1", "count/events": "1"})
    assert await counted(server) == {}


async def test_a_quota_with_scopes_does_not_limit_other_kinds(server: Server) -> None:
    hard = {"pods": "5", "count/configmaps": "0"}
    await quota(server, hard, scopes=["BestEffort"])
    assert (await send(server, "POST", f"{NAMESPACE}/configmaps", {"metadata": {"name": "a"}}))[0] == 201
    assert await counted(server) == {"count/configmaps": "0", "pods": "0"}


async def test_a_quota_limits_quotas_and_counts_itself(server: Server) -> None:
    await quota(server, {"resourcequotas": "2"})
    await quota(server, {"pods": "1"}, name="other")
    assert await counted(server) == {"resourcequotas": "2"}
    body = {"metadata": {"name": "third"}, "spec": {"hard": {"pods": "1"}}}
    assert (await send(server, "POST", f"{NAMESPACE}/resourcequotas", body))[0] == 403


async def test_a_dry_run_is_judged_and_not_charged(server: Server) -> None:
    await quota(server, {"pods": "1"})
    assert (await send(server, "POST", f"{NAMESPACE}/pods?dryRun=All", pod("a")))[0] == 201
    assert (await send(server, "POST", f"{NAMESPACE}/pods", pod("a")))[0] == 201
    assert (await send(server, "POST", f"{NAMESPACE}/pods?dryRun=All", pod("b")))[0] == 403
    assert await used(server) == {"pods": "1"}


@pytest.mark.parametrize(
    ("scopes", "hard", "refused"),
    [
        (["Terminating"], "requests.ephemeral-storage", True),
        (["VolumeAttributesClass"], "requests.storage", False),
        (["VolumeAttributesClass"], "pods", True),
        (["PriorityClass"], "count/deployments.apps", False),
        ([], "storage", True),
        ([], "hugepages-2Mi", False),
    ],
)
async def test_what_a_scope_may_limit(server: Server, scopes: list[str], hard: str, refused: bool) -> None:
    body = {"metadata": {"name": "q"}, "spec": {"hard": {hard: "1"}, "scopes": scopes}}
    assert (await send(server, "POST", f"{NAMESPACE}/resourcequotas", body))[0] == (422 if refused else 201)
