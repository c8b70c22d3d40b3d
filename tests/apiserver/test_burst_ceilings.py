"""Burst ceilings: who may set one, what it is judged by, and that nothing gets around that."""

from typing import Any

import pytest

from apiserver.test_resize_admission import counted, limit
from podfit.api.core.v1.limits.types import ResourceQuota
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.burst import CEILING
from podfit.api.meta.codec import convert
from podfit.apiserver.handlers.patching import JSON_PATCH, MERGE_PATCH
from support.bursts import ceiling
from support.resizing import NAMESPACE, POD, RESIZE, container, read, resize, send, spec, stored
from support.server import Server

BURSTABLE = spec(container("c", {"cpu": "1", "memory": "1Gi"}, {"cpu": "2", "memory": "2Gi"}))
GUARANTEED = spec(container("c", {"cpu": "1", "memory": "1Gi"}, {"cpu": "1", "memory": "1Gi"}))
FOUR = ceiling(c={"cpu": ("2", "4")})


def asked(text: str | None = FOUR, **more: Any) -> dict[str, Any]:
    return {"metadata": {"annotations": {CEILING: text}}, **more}


async def has(server: Server) -> str | None:
    found: dict[str, str] = (await read(server))["metadata"].get("annotations", {})
    return found.get(CEILING)


class TestWhoSets:
    async def test_a_resize_sets_it_and_changes_nothing_else(self, server: Server) -> None:
        before = await stored(server, BURSTABLE)
        code, after = await resize(server, asked())
        assert code == 200, after
        assert after["metadata"]["annotations"] == {CEILING: FOUR}
        assert after["spec"] == before["spec"]
        assert after["metadata"]["generation"] == before["metadata"]["generation"]

    async def test_a_json_patch_and_its_removal(self, server: Server) -> None:
        await stored(server, BURSTABLE)
        await resize(server, asked())
        path = f"/metadata/annotations/{CEILING.replace('/', '~1')}"
        patch = [{"op": "add", "path": path, "value": "{}"}]
        assert (await send(server, "PATCH", RESIZE, patch, JSON_PATCH))[0] == 200
        assert await has(server) == "{}"
        assert (await resize(server, asked(None)))[0] == 200
        assert await has(server) is None

    async def test_no_other_write_sets_changes_or_removes_it(self, server: Server) -> None:
        """A tenant may patch its pods and write what it likes into the template of a Deployment."""
        await stored(server, BURSTABLE)
        assert (await send(server, "PATCH", POD, asked(), MERGE_PATCH))[0] == 200
        assert await has(server) is None
        assert (await send(server, "PATCH", f"{POD}/status", asked(), MERGE_PATCH))[0] == 200
        assert await has(server) is None
        await resize(server, asked())
        for text in (ceiling(c={"cpu": ("2", "64")}), None):
            for path in (POD, f"{POD}/status"):
                assert (await send(server, "PATCH", path, asked(text), MERGE_PATCH))[0] == 200
                assert await has(server) == FOUR
        whole = await read(server)
        del whole["metadata"]["annotations"]
        assert (await send(server, "PUT", POD, whole))[0] == 200
        assert await has(server) == FOUR

    async def test_a_new_pod_begins_without_it(self, server: Server) -> None:
        body = {"metadata": {"name": "q", "annotations": {CEILING: FOUR, "a": "b"}}, "spec": BURSTABLE}
        code, made = await send(server, "POST", f"{NAMESPACE}/pods", body)
        assert code == 201, made
        assert made["metadata"]["annotations"] == {"a": "b"}

    async def test_a_binding_does_not_bring_it(self, server: Server) -> None:
        body = {"metadata": {"name": "q"}, "spec": {**BURSTABLE, "nodeName": ""}}
        assert (await send(server, "POST", f"{NAMESPACE}/pods", body))[0] == 201
        binding = {"metadata": {"name": "q", "annotations": {CEILING: FOUR}}, "target": {"kind": "Node", "name": "n"}}
        assert (await send(server, "POST", f"{NAMESPACE}/pods/q/binding", binding))[0] == 201
        _, found = await send(server, "GET", f"{NAMESPACE}/pods/q")
        assert CEILING not in found["metadata"].get("annotations", {})


class TestJudged:
    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("{", "Input data was truncated"),
            ("x" * 20_000, "must have at most 16384 characters"),
            (ceiling(d={"cpu": ("2", "4")}), "the pod has no such container"),
            (ceiling(c={"cpu": ("3", "2")}), "the floor must be above zero and at most the ceiling"),
            (ceiling(c={"cpu": ("0", "4")}), "the floor must be above zero and at most the ceiling"),
            (ceiling(c={"cpu": ("-1", "4")}), "the floor must be above zero and at most the ceiling"),
            (ceiling(c={"cpu": ("1", "1500m")}), "its cpu limit 2 is above the ceiling 1500m"),
            (ceiling(c={"cpu": ("500m", "4")}), "the cpu floor 500m is below its request 1"),
            (ceiling(c={"gpu": ("1", "4")}), "must name the same of cpu and memory"),
            (ceiling(c={"cpu": ("a", "4")}), "quantities must match"),
            ('{"c": {"floor": {"cpu": "2"}, "ceiling": {"memory": "4Gi"}}}', "must name the same of cpu and memory"),
            ('{"c": {"floor": {}, "ceiling": {}}}', "must name the same of cpu and memory"),
        ],
    )
    async def test_what_says_nothing_is_refused(self, server: Server, text: str, said: str) -> None:
        await stored(server, BURSTABLE)
        code, body = await resize(server, asked(text))
        assert code == 422, body
        assert said in body["message"]
        assert len(body["message"]) < 1000

    async def test_what_a_raise_would_restart_has_no_ceiling(self, server: Server) -> None:
        restarts = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
        wanted = container("c", {"cpu": "1", "memory": "1Gi"}, {"cpu": "2", "memory": "2Gi"})
        await stored(server, spec({**wanted, "resizePolicy": restarts}))
        code, body = await resize(server, asked(ceiling(c={"memory": ("2Gi", "4Gi")})))
        assert (code, "a change of memory restarts it" in body["message"]) == (422, True)
        assert (await resize(server, asked()))[0] == 200

    async def test_the_namespaces_limits_hold_for_it(self, server: Server) -> None:
        await stored(server, BURSTABLE)
        await limit(server, {"type": "Container", "max": {"cpu": "3"}, "maxLimitRequestRatio": {"cpu": "2"}})
        code, body = await resize(server, asked())
        assert code == 403
        assert "maximum cpu usage per Container is 3, but limit is 4" in body["message"]
        assert "cpu max limit to request ratio per Container is 2, but provided ratio is 4.000000" in body["message"]

    async def test_the_node_holds_for_it(self, server: Server) -> None:
        node = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "3", "memory": "8Gi"}}}
        await server.client.create(convert(node, Node))
        await server.client.patch(Node, "n", "", {"status": node["status"]}, subresource="status")
        await stored(server, {**BURSTABLE, "nodeName": "n"})
        code, body = await resize(server, asked())
        assert code == 403, body
        assert "node doesn't have enough for the burst ceiling: cpu, ceiling: 4, allocatable: 3" in body["message"]
        assert (await resize(server, asked(ceiling(c={"cpu": ("2", "3")}))))[0] == 200

    async def test_a_guaranteed_pod_is_judged_with_its_requests(self, server: Server) -> None:
        await stored(server, GUARANTEED)
        await limit(server, {"type": "Container", "max": {"cpu": "3"}})
        code, body = await resize(server, asked(ceiling(c={"cpu": ("1", "4")})))
        assert (code, "but limit is 4" in body["message"]) == (403, True)
        assert (await resize(server, asked(ceiling(c={"cpu": ("1", "3")}))))[0] == 200

    async def test_a_ceiling_that_would_make_another_class_is_refused(self, server: Server) -> None:
        """Requests 4 and 1Gi, limits 2 and 1Gi cannot be; a raise to the request of each would make it Guaranteed."""
        await stored(server, spec(container("c", {"cpu": "1", "memory": "1Gi"}, {"cpu": "1", "memory": "2Gi"})))
        assert (await resize(server, asked(ceiling(c={"cpu": ("1", "4")}))))[0] == 200
        assert (await read(server))["status"]["qosClass"] == "Burstable"

    async def test_a_dry_run_obtains_nothing(self, server: Server) -> None:
        await stored(server, BURSTABLE)
        assert (await resize(server, asked(), query="?dryRun=All"))[0] == 200
        assert await has(server) is None


class TestQuota:
    async def test_a_ceiling_is_charged_and_given_back(self, server: Server) -> None:
        await stored(server, BURSTABLE)
        await quota(server, {"limits.cpu": "5", "requests.cpu": "1"})
        assert await used(server) == "2"
        assert (await resize(server, asked()))[0] == 200
        assert await used(server) == "4"
        await counted(server)
        assert await used(server) == "4", "the controller counts as admission does"
        code, body = await resize(server, asked(ceiling(c={"cpu": ("2", "6")})))
        assert code == 403
        assert (
            "exceeded quota: q, requested: limits.cpu=2, used: limits.cpu=4, limited: limits.cpu=5" in body["message"]
        )
        assert (await resize(server, asked(None)))[0] == 200
        await counted(server)
        assert await used(server) == "2"

    async def test_a_raise_up_to_the_ceiling_is_charged_once(self, server: Server) -> None:
        await stored(server, BURSTABLE)
        await quota(server, {"limits.cpu": "4"})
        assert (await resize(server, asked()))[0] == 200
        raised = {"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "4"}}}]}}
        assert (await resize(server, raised))[0] == 200
        assert await used(server) == "4"

    async def test_of_a_guaranteed_pod_requests_are_charged(self, server: Server) -> None:
        await stored(server, GUARANTEED)
        await quota(server, {"limits.cpu": "9", "requests.cpu": "3"})
        code, body = await resize(server, asked(ceiling(c={"cpu": ("1", "4")})))
        assert (code, "requested: requests.cpu=3" in body["message"]) == (403, True)
        assert (await resize(server, asked(ceiling(c={"cpu": ("1", "3")}))))[0] == 200


async def quota(server: Server, hard: dict[str, str]) -> None:
    code, made = await send(
        server, "POST", f"{NAMESPACE}/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": hard}}
    )
    assert code == 201, made
    await counted(server)


async def used(server: Server) -> str:
    return str((await server.client.get(ResourceQuota, "q", "default")).status.used["limits.cpu"])
