"""What the cluster's policies say to a resize: LimitRange, ResourceQuota with its controller, the node."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from podfit.api.core.v1.limits.types import ResourceQuota
from podfit.api.core.v1.nodes.types import Node
from podfit.api.meta.codec import convert
from podfit.apiserver.handlers.patching import MERGE_PATCH, STRATEGIC_PATCH
from podfit.client.informers import Informers
from podfit.controllers.quotas import QuotaController
from support.resizing import NAMESPACE, POD, RESIZE, asking, container, cpu, read, refusal, resize, send, spec, stored
from support.server import Server

ONE = spec(container("c", {"cpu": "1", "memory": "1Gi"}))


async def limit(server: Server, *limits: dict[str, Any]) -> None:
    body = {"metadata": {"name": "l"}, "spec": {"limits": list(limits)}}
    code, made = await send(server, "POST", f"{NAMESPACE}/limitranges", body)
    assert code == 201, made


class TestLimitRange:
    @pytest.mark.row("R-060")
    async def test_a_lower_bound_of_containers(self, server: Server) -> None:
        await stored(server, spec(container("c", {"cpu": "1"}, {"cpu": "2"})))
        await limit(server, {"type": "Container", "min": {"cpu": "500m"}})
        text = "minimum cpu usage per Container is 500m, but request is 100m"
        assert await refusal(server, asking(c="100m")) == text
        assert (await resize(server, asking(c="500m")))[0] == 200

    @pytest.mark.row("R-060")
    async def test_the_refusal_is_a_403_with_upstreams_text(self, server: Server) -> None:
        await stored(server, spec(container("c", {"cpu": "1"}, {"cpu": "2"})))
        await limit(server, {"type": "Container", "max": {"cpu": "2"}})
        patch = {"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "3"}}}]}}
        code, body = await resize(server, patch)
        text = 'pods "p" is forbidden: maximum cpu usage per Container is 2, but limit is 3'
        assert (code, body["reason"], body["message"]) == (403, "Forbidden", text)
        assert body["details"] == {"name": "p", "kind": "pods"}

    async def test_the_refusal_says_what_the_client_was_warned_of(self, server: Server) -> None:
        """As upstream, whose warnings are headers before it is known how the request ends."""
        await stored(server, spec(container("c", {"cpu": "1"}, {"cpu": "2"})))
        await limit(server, {"type": "Container", "max": {"cpu": "2"}})
        patch = {"spec": {"mistyped": 1, "containers": [{"name": "c", "resources": {"limits": {"cpu": "3"}}}]}}
        answer = await server.ask("PATCH", RESIZE, json.dumps(patch).encode(), content_type=STRATEGIC_PATCH)
        assert (answer.status, answer.headers.get("warning")) == (403, '299 - "unknown field \\"spec.mistyped\\""')

    @pytest.mark.row("R-061")
    async def test_two_violations_are_one_refusal(self, server: Server) -> None:
        await stored(server, spec(container("c", {"cpu": "1", "memory": "1Gi"}, {"cpu": "2", "memory": "2Gi"})))
        await limit(server, {"type": "Container", "max": {"cpu": "2", "memory": "2Gi"}})
        patch = {"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "3", "memory": "3Gi"}}}]}}
        assert await refusal(server, patch) == (
            "[maximum cpu usage per Container is 2, but limit is 3, "
            "maximum memory usage per Container is 2Gi, but limit is 3Gi]"
        )

    @pytest.mark.row("R-062")
    async def test_a_bound_of_pods_takes_the_pod_level_values(self, server: Server) -> None:
        level = {"requests": {"cpu": "2"}, "limits": {"cpu": "3"}}
        await stored(server, spec(container("a", {"cpu": "1"}), container("b", {"cpu": "500m"}), resources=level))
        await limit(server, {"type": "Pod", "max": {"cpu": "4"}})
        assert (await resize(server, {"spec": {"resources": {"limits": {"cpu": "4"}}}}))[0] == 200
        text = "maximum cpu usage per Pod is 4, but limit is 5"
        assert await refusal(server, {"spec": {"resources": {"limits": {"cpu": "5"}}}}) == text

    @pytest.mark.row("R-063")
    async def test_defaults_fill_what_a_container_lacks(self, server: Server) -> None:
        await stored(server, spec(container("c", {"cpu": "1"})))
        await limit(server, {"type": "Container", "default": {"memory": "2Gi"}, "defaultRequest": {"memory": "1Gi"}})
        code, found = await resize(server, asking(c="2"))
        assert code == 200
        assert found["spec"]["containers"][0]["resources"] == {
            "limits": {"memory": "2Gi"},
            "requests": {"cpu": "2", "memory": "1Gi"},
        }
        assert "annotations" not in found["metadata"]

    @pytest.mark.row("R-060")
    async def test_a_pod_on_its_way_out_is_not_bounded(self, server: Server) -> None:
        await stored(server, finalizers=["a.b/c"], wanted=ONE)
        await limit(server, {"type": "Container", "max": {"cpu": "1"}, "defaultRequest": {"cpu": "1"}})
        await send(server, "DELETE", POD)
        code, found = await resize(server, asking(c="3"))
        assert (code, cpu(found)) == (200, "3")


async def quota(server: Server, hard: str) -> None:
    body = {"metadata": {"name": "q"}, "spec": {"hard": {"requests.cpu": hard}}}
    code, made = await send(server, "POST", f"{NAMESPACE}/resourcequotas", body)
    assert code == 201, made
    await counted(server)


async def counted(server: Server) -> None:
    clock, client = server.context.clock, server.client
    controller = QuotaController(client, informers=Informers(client, clock), clock=clock, gates=server.context.gates)
    await controller.reconcile(("default", "q"))


async def used(server: Server) -> str:
    found = await server.client.get(ResourceQuota, "q", "default")
    return str(found.status.used["requests.cpu"])


async def reported(server: Server, allocated: str, actual: str, *conditions: Mapping[str, Any]) -> None:
    """What the node says of the container: its promise, what the runtime enforces, and how the resize goes."""
    container = {
        "name": "c",
        "image": "x",
        "imageID": "",
        "ready": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
        "allocatedResources": {"cpu": allocated},
        "resources": {"requests": {"cpu": actual}},
    }
    status = {"phase": "Running", "containerStatuses": [container], "conditions": list(conditions)}
    code, body = await send(server, "PATCH", f"{POD}/status", {"status": status}, MERGE_PATCH)
    assert code == 200, body


def pending(reason: str, generation: int) -> dict[str, Any]:
    return {"type": "PodResizePending", "status": "True", "reason": reason, "observedGeneration": generation}


class TestResourceQuota:
    @pytest.mark.row("R-064")
    async def test_growth_beyond_the_bound_is_refused(self, server: Server) -> None:
        await stored(server, ONE)
        await quota(server, "1500m")
        assert await refusal(server, asking(c="1700m")) == (
            "exceeded quota: q, requested: requests.cpu=700m, used: requests.cpu=1, limited: requests.cpu=1500m"
        )
        assert await used(server) == "1"

    @pytest.mark.row("R-065")
    async def test_growth_within_the_bound_is_charged_at_once(self, server: Server) -> None:
        await stored(server, ONE)
        await quota(server, "2")
        assert (await resize(server, asking(c="1700m")))[0] == 200
        assert await used(server) == "1700m"
        assert (await resize(server, asking(c="1900m"), query="?dryRun=All"))[0] == 200
        assert await used(server) == "1700m"

    @pytest.mark.row("R-066")
    async def test_a_decrease_is_credited_when_the_node_reports_it(self, server: Server) -> None:
        await stored(server, ONE)
        await reported(server, "1", "1")
        await quota(server, "2")
        assert (await resize(server, asking(c="400m")))[0] == 200
        await counted(server)
        assert await used(server) == "1"
        await reported(server, "400m", "1")
        await counted(server)
        assert await used(server) == "1"
        await reported(server, "400m", "400m")
        await counted(server)
        assert await used(server) == "400m"

    @pytest.mark.row("R-067")
    async def test_a_deferred_pod_is_charged_what_it_wants(self, server: Server) -> None:
        await stored(server, ONE)
        await reported(server, "1", "1")
        await quota(server, "5")
        assert (await resize(server, asking(c="3")))[0] == 200
        await reported(server, "1", "1", pending("Deferred", 2))
        await counted(server)
        assert await used(server) == "3"

    @pytest.mark.row("R-068")
    async def test_an_infeasible_pod_is_charged_what_it_has(self, server: Server) -> None:
        await stored(server, ONE)
        await reported(server, "1", "1")
        await quota(server, "5")
        assert (await resize(server, asking(c="3")))[0] == 200
        assert await used(server) == "3"
        await reported(server, "1", "1", pending("Infeasible", 2))
        await counted(server)
        assert await used(server) == "1"

    @pytest.mark.row("R-068")
    async def test_pq5_a_new_request_after_an_infeasible_one_is_charged(self, server: Server) -> None:
        await stored(server, ONE)
        await reported(server, "1", "1")
        assert (await resize(server, asking(c="3")))[0] == 200
        await reported(server, "1", "1", pending("Infeasible", 2))
        await quota(server, "2")
        assert "exceeded quota: q" in await refusal(server, asking(c="4"))


FEATURES = ["InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers"]


async def node(server: Server, *, system: str = "linux", features: list[str] = FEATURES) -> None:
    labels = {"kubernetes.io/os": system}
    await server.client.create(convert({"metadata": {"name": "n", "labels": labels}}, Node))
    status = {"allocatable": {"cpu": "2", "memory": "2Gi", "pods": "9"}, "declaredFeatures": features}
    raw = json.dumps({"status": status}).encode()
    assert (await server.ask("PATCH", "/api/v1/nodes/n/status", raw, content_type=MERGE_PATCH)).status == 200


def bound(*containers: dict[str, Any], **more: Any) -> dict[str, Any]:
    return spec(*containers, nodeName="n", **more)


def grown(name: str, at: str = "containers", **requests: str) -> dict[str, Any]:
    return {"spec": {at: [{"name": name, "resources": {"requests": requests}}]}}


class TestNode:
    @pytest.mark.row("R-069")
    async def test_more_than_the_node_has_is_refused_with_every_resource(self, server: Server) -> None:
        await node(server)
        await stored(server, bound(container("c", {"cpu": "1", "memory": "1Gi"})))
        code, body = await resize(server, grown("c", cpu="2100m", memory="3Gi"))
        assert code == 403
        assert body["message"] == (
            'pods "p" is forbidden: node didn\'t have enough allocatable resources: '
            "cpu, requested: 2100, allocatable: 2000; memory, requested: 3221225472, allocatable: 2147483648"
        )
        assert body["details"]["causes"] == [{"reason": "NodeCapacity"}]

    @pytest.mark.row("R-070")
    async def test_all_that_the_node_has_is_admitted(self, server: Server) -> None:
        await node(server)
        await stored(server, bound(container("c", {"cpu": "1", "memory": "1Gi"})))
        assert (await resize(server, grown("c", cpu="2", memory="2Gi")))[0] == 200

    @pytest.mark.row("R-069")
    async def test_a_pod_is_measured_as_a_whole(self, server: Server) -> None:
        await node(server)
        await stored(server, bound(container("a", {"cpu": "1"}), container("b", {"cpu": "1"})))
        assert "cpu, requested: 2500, allocatable: 2000" in await refusal(server, grown("b", cpu="1500m"))

    @pytest.mark.row("R-071")
    async def test_only_linux_nodes_resize(self, server: Server) -> None:
        await node(server, system="windows")
        await stored(server, bound(container("c", {"cpu": "1"})))
        code, body = await resize(server, asking(c="1500m"))
        text = 'pod resize is only supported on linux nodes, node "n" is "windows"'
        assert (code, body["message"]) == (403, f'pods "p" is forbidden: {text}')
        assert body["details"]["causes"] == [{"reason": "UnsupportedPlatform"}]

    @pytest.mark.row("R-072")
    @pytest.mark.parametrize(
        ("patch", "features"),
        [
            (grown("i", "initContainers", cpu="900m"), "InPlacePodVerticalScalingInitContainers"),
            ({"spec": {"resources": {"requests": {"cpu": "1500m"}}}}, "InPlacePodLevelResourcesVerticalScaling"),
            (
                {
                    "spec": grown("i", "initContainers", cpu="900m")["spec"]
                    | {"resources": {"requests": {"cpu": "1500m"}}}
                },
                "InPlacePodLevelResourcesVerticalScaling, InPlacePodVerticalScalingInitContainers",
            ),
        ],
    )
    async def test_a_node_has_to_declare_what_a_resize_needs(
        self, server: Server, patch: dict[str, Any], features: str
    ) -> None:
        await node(server, features=[])
        init = [container("i", {"cpu": "1"})]
        level = {"requests": {"cpu": "1"}}
        await stored(server, bound(container("c", {"cpu": "1"}), initContainers=init, resources=level))
        assert await refusal(server, patch) == (
            f'pod update requires features {features} which are not available on node "n"'
        )

    @pytest.mark.row("R-072")
    async def test_a_regular_container_needs_no_declaration(self, server: Server) -> None:
        await node(server, features=[])
        await stored(server, bound(container("c", {"cpu": "1"})))
        assert (await resize(server, asking(c="1500m")))[0] == 200

    @pytest.mark.row("R-073")
    async def test_a_node_that_is_not_there_is_named(self, server: Server) -> None:
        await stored(server, bound(container("c", {"cpu": "1"})))
        assert await refusal(server, asking(c="1500m")) == 'node "n" not found'

    @pytest.mark.row("R-074")
    async def test_a_resize_to_the_same_asks_no_node(self, server: Server) -> None:
        before = await stored(server, bound(container("c", {"cpu": "9"})))
        assert await resize(server, asking(c="9000m")) == (200, before)


@pytest.mark.row("R-077")
async def test_what_is_invalid_is_said_before_what_is_forbidden(server: Server) -> None:
    await stored(server, spec(container("c", {"cpu": "1"}, {"cpu": "2"})))
    await quota(server, "1")
    await limit(server, {"type": "Container", "max": {"cpu": "2"}})
    code, body = await resize(server, asking(c="3"))
    assert (code, body["reason"]) == (422, "Invalid")
    assert (await read(server))["metadata"]["generation"] == 1
    assert (await send(server, "GET", RESIZE))[0] == 200
