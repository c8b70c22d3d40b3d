"""What a pod may not be created with and what a resize may not change, in the API's words."""

from pathlib import Path
from typing import Any

import pytest

from podfit.apiserver.handlers.patching import STRATEGIC_PATCH
from podfit.core.features import FeatureGates
from support.resizing import POD, asking, container, create, policy, refusal, resize, send, spec, stored
from support.server import Server, running_server

CPU, BOTH = {"cpu": "1"}, {"cpu": "1", "memory": "1Gi"}
ONLY = "spec: Forbidden: only cpu and memory resources are mutable"
QOS = "Pod QOS Class may not change as a result of resizing"
SUPPORTED = 'supported values: "cpu", "memory"'
RESTART = policy("cpu", "RestartContainer")


def row(name: str, *values: Any) -> Any:
    return pytest.param(*values, marks=pytest.mark.row(name))


def with_policies(*policies: dict[str, str], **more: Any) -> dict[str, Any]:
    return spec(container("c", CPU, resizePolicy=list(policies)), **more)


def change(name: str = "c", at: str = "containers", **fields: Any) -> dict[str, Any]:
    return {"spec": {at: [{"name": name, **fields}]}}


def amounts(side: str, **values: str | None) -> dict[str, Any]:
    return change(resources={side: values})


async def refused_creation(server: Server, wanted: dict[str, Any]) -> str:
    code, body = await create(server, wanted)
    assert code == 422, body
    text: str = body["message"]
    return text.partition(" is invalid: ")[2]


AT = "spec.containers[0].resizePolicy"


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        row(
            "R-021",
            with_policies(policy("cpu", "NotRequired"), policy("cpu", "NotRequired")),
            f'{AT}[1]: Duplicate value: "cpu"',
        ),
        row("R-021", with_policies(policy("", "NotRequired")), f"{AT}: Required value"),
        row("R-021", with_policies(policy("disk", "NotRequired")), f'{AT}: Unsupported value: "disk": {SUPPORTED}'),
        row("R-022", with_policies(policy("cpu", "")), f"{AT}: Required value"),
        row(
            "R-022",
            with_policies(policy("cpu", "Maybe")),
            f'{AT}: Unsupported value: "Maybe": supported values: "NotRequired", "RestartContainer"',
        ),
        row(
            "R-023",
            with_policies(RESTART, restartPolicy="Never"),
            f"{AT}: Invalid value: \"RestartContainer\": must be 'NotRequired' when pod `restartPolicy` is 'Never'",
        ),
        row(
            "R-024",
            spec(container("c", CPU), initContainers=[container("i", CPU, resizePolicy=[RESTART])]),
            'spec.initContainers[0].resizePolicy[0].restartPolicy: Invalid value: "RestartContainer": must not be set '
            "to 'RestartContainer' for non-sidecar initContainers",
        ),
        row(
            "R-050",
            spec(container("c", CPU), resources={"requests": {"ephemeral-storage": "1Gi"}}),
            'spec.resources.requests[ephemeral-storage]: Unsupported value: "ephemeral-storage": supported values: '
            '"cpu", "hugepages-", "memory"',
        ),
        row(
            "R-051",
            spec(container("a", CPU), container("b", CPU), resources={"requests": {"cpu": "1500m"}}),
            'spec.resources.requests[cpu]: Invalid value: "1500m": must be greater than or equal to aggregate '
            "container requests of 2",
        ),
        row(
            "R-052",
            spec(container("c", CPU, {"cpu": "3"}), resources={"limits": {"cpu": "2"}}),
            'spec.resources.containers[0][cpu].limits: Invalid value: "3": must be less than or equal to pod limits of '
            "2",
        ),
        row(
            "R-055",
            spec(
                container("c", CPU),
                resources={"requests": CPU, "claims": [{"name": "g"}]},
                resourceClaims=[{"name": "g", "resourceClaimName": "x"}],
            ),
            "spec.resources.claims: Forbidden: claims may not be set for Resources at pod-level",
        ),
        row(
            "R-055",
            spec(container("c", CPU), resources={"requests": CPU}, os={"name": "windows"}),
            "spec.resources: Forbidden: may not be set for a windows pod",
        ),
    ],
)
async def test_what_is_not_created(server: Server, wanted: dict[str, Any], text: str) -> None:
    assert await refused_creation(server, wanted) == text


@pytest.mark.row("R-025")
@pytest.mark.parametrize("field", [{"resizePolicy": [policy("cpu", "NotRequired")]}, {"resources": {"requests": CPU}}])
async def test_an_ephemeral_container_has_no_resources(server: Server, field: dict[str, Any]) -> None:
    await stored(server)
    guest = {"name": "e", "image": "busybox", "terminationMessagePolicy": "File", **field}
    body = {"spec": {"ephemeralContainers": [guest]}}
    code, refused = await send(server, "PATCH", f"{POD}/ephemeralcontainers", body, STRATEGIC_PATCH)
    (name,) = field
    assert code == 422
    assert f"spec.ephemeralContainers[0].{name}: Forbidden" in refused["message"]


@pytest.mark.parametrize(
    "wanted",
    [
        row("R-050", spec(container("c", CPU), resources={"requests": BOTH, "limits": {"cpu": "2", "memory": "2Gi"}})),
        row(
            "R-053",
            spec(
                container("a", CPU, {"cpu": "2"}),
                container("b", CPU, {"cpu": "2"}),
                resources={"requests": {"cpu": "2"}, "limits": {"cpu": "2"}},
            ),
        ),
    ],
)
async def test_what_is_created(server: Server, wanted: dict[str, Any]) -> None:
    assert (await create(server, wanted))[0] == 201


@pytest.mark.row("R-054")
@pytest.mark.parametrize(
    ("level", "requests"),
    [
        ({"limits": {"cpu": "4"}}, {"cpu": "1", "memory": "1Gi"}),
        ({"limits": {"memory": "2Gi"}}, {"cpu": "1", "memory": "1Gi"}),
        ({"requests": {"cpu": "2"}}, {"cpu": "2"}),
    ],
    ids=["from containers", "also what has no limit", "nothing from requests alone"],
)
async def test_pod_level_requests_default_from_containers_where_there_are_limits(
    server: Server, level: dict[str, Any], requests: dict[str, str]
) -> None:
    pod = await stored(server, spec(container("c", BOTH), resources=level))
    assert pod["spec"]["resources"]["requests"] == requests


@pytest.mark.row("R-054")
async def test_pod_level_requests_default_from_limits_where_containers_ask_for_nothing(server: Server) -> None:
    pod = await stored(server, spec(container("c"), resources={"limits": BOTH}))
    assert pod["spec"]["resources"] == {"limits": BOTH, "requests": BOTH}


@pytest.mark.row("R-059")
@pytest.mark.parametrize(
    ("containers", "level", "qos"),
    [
        (container("c", CPU), {"requests": BOTH, "limits": BOTH}, "Guaranteed"),
        (container("c", BOTH, BOTH), {"requests": BOTH, "limits": {"cpu": "2", "memory": "2Gi"}}, "Burstable"),
        (container("c"), {"requests": CPU}, "Burstable"),
    ],
)
async def test_qos_asks_the_pod_level_alone(
    server: Server, containers: dict[str, Any], level: dict[str, Any], qos: str
) -> None:
    assert (await stored(server, spec(containers, resources=level)))["status"]["qosClass"] == qos


TWO = spec(container("a", CPU), container("b", CPU))
INIT = spec(container("c", CPU), initContainers=[container("i", CPU)])
LEVEL = spec(container("c", CPU), resources={"requests": BOTH, "limits": {"cpu": "2", "memory": "2Gi"}})
RUNNING = {
    "name": "c",
    "image": "x",
    "imageID": "",
    "ready": True,
    "restartCount": 0,
    "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
}
CAN_RESIZE = {"containerStatuses": [{**RUNNING, "resources": {}}]}
CLAIMED = container("c", CPU)
CLAIMED["resources"]["claims"] = [{"name": "g"}]


@pytest.mark.parametrize(
    ("old", "patch", "text"),
    [
        row("R-028", spec(container("c")), asking(c="1"), f'spec: Invalid value: "BestEffort": {QOS}'),
        row(
            "R-029",
            spec(container("c", BOTH, BOTH)),
            amounts("limits", cpu="2"),
            f'spec: Invalid value: "Guaranteed": {QOS}',
        ),
        row(
            "R-030",
            spec(container("c", BOTH, {"cpu": "2", "memory": "1Gi"})),
            amounts("limits", cpu="1"),
            f'spec: Invalid value: "Burstable": {QOS}',
        ),
        row(
            "R-033",
            spec(container("c", BOTH)),
            amounts("requests", cpu=None),
            "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed",
        ),
        row(
            "R-034",
            spec(container("c", CPU, {"cpu": "2"})),
            amounts("limits", cpu=None),
            "spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed",
        ),
        row(
            "R-036",
            spec(container("c", CPU)),
            change("new", image="x"),
            "spec.containers: Forbidden: containers may not be added or removed on resize",
        ),
        row(
            "R-036",
            INIT,
            change("new", at="initContainers", image="x"),
            "spec.initContainers: Forbidden: initContainers may not be added or removed on resize",
        ),
        row(
            "R-036",
            TWO,
            {"spec": {"containers": [{"name": "b", "$patch": "delete"}, {"name": "a", "resizePolicy": [RESTART]}]}},
            "spec.containers: Forbidden: containers may not be added or removed on resize",
        ),
        row(
            "R-037",
            TWO,
            {"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}},
            "[spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize, "
            "spec.containers[1].name: Forbidden: containers may not be renamed or reordered on resize]",
        ),
        row(
            "R-038",
            spec(container("c", {"cpu": "1", "ephemeral-storage": "1Gi"})),
            change(resources={"requests": {"ephemeral-storage": "2Gi"}}),
            ONLY,
        ),
        row(
            "R-038",
            spec(container("c", {"cpu": "1", "example.com/gpu": "1"}, {"example.com/gpu": "1"})),
            change(resources={"requests": {"example.com/gpu": "2"}, "limits": {"example.com/gpu": "2"}}),
            ONLY,
        ),
        row("R-039", spec(container("c", CPU)), change(resizePolicy=[policy("cpu", "NotRequired")]), ONLY),
        row(
            "R-040",
            spec(container("c", CPU), initContainers=[container("i", {"ephemeral-storage": "1Gi"})]),
            change("i", "initContainers", resources={"requests": {"ephemeral-storage": "2Gi"}}),
            "spec.initContainers[0]: Forbidden: only cpu and memory resources for init or sidecar containers are "
            "mutable",
        ),
        row(
            "R-043",
            spec(container("c", CPU, {"cpu": "2"})),
            asking(c="3"),
            'spec.containers[0].resources.requests: Invalid value: "3": must be less than or equal to cpu limit of 2',
        ),
        row(
            "R-044",
            spec(container("c", BOTH)),
            asking(c="-1"),
            'spec.containers[0].resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0',
        ),
        row("R-046", spec(CLAIMED, resourceClaims=[{"name": "g", "resourceClaimName": "x"}]), asking(c="2"), ONLY),
        row(
            "R-027",
            spec(container("c", CPU), os={"name": "windows"}),
            asking(c="2"),
            "[]: Forbidden: windows pods cannot be resized",
        ),
        row(
            "R-051",
            LEVEL,
            asking(c="1500m"),
            'spec.resources.requests[cpu]: Invalid value: "1": must be greater than or equal to aggregate container '
            "requests of 1500m",
        ),
        row(
            "R-056",
            LEVEL,
            {"spec": {"resources": None}},
            "spec.resources: Forbidden: pod-level resources cannot be removed",
        ),
        row(
            "R-056",
            LEVEL,
            {"spec": {"resources": {"limits": {"cpu": None}}}},
            "spec.resources.limits: Forbidden: pod-level resource limits cannot be removed",
        ),
        row(
            "R-056",
            spec(container("c"), resources={"requests": BOTH}),
            {"spec": {"resources": {"requests": {"cpu": None}}}},
            "spec.resources.requests: Forbidden: pod-level resource requests cannot be removed",
        ),
        row(
            "R-057",
            spec(
                container("c", {"cpu": "1", "hugepages-2Mi": "2Mi"}, {"hugepages-2Mi": "2Mi"}),
                resources={
                    "requests": {"cpu": "1", "hugepages-2Mi": "4Mi"},
                    "limits": {"cpu": "2", "hugepages-2Mi": "4Mi"},
                },
            ),
            {"spec": {"resources": {"requests": {"hugepages-2Mi": "8Mi"}, "limits": {"hugepages-2Mi": "8Mi"}}}},
            "spec: Forbidden: only cpu and memory resources are mutable at pod-level",
        ),
    ],
)
async def test_what_a_resize_may_not_do(server: Server, old: dict[str, Any], patch: dict[str, Any], text: str) -> None:
    await stored(server, old)
    assert await refusal(server, patch) == text


@pytest.mark.row("R-026")
async def test_a_static_pod_is_its_nodes(server: Server) -> None:
    mirror = {"kubernetes.io/config.mirror": "x"}
    await stored(server, spec(container("c"), nodeName="n"), annotations=mirror)
    for patch in (asking(c="1"), asking(c="-1")):
        code, body = await resize(server, patch)
        assert (code, body["message"]) == (422, 'Pod "p" is invalid: []: Forbidden: static pods cannot be resized')
        assert [cause["message"] for cause in body["details"]["causes"]] == ["Forbidden: static pods cannot be resized"]


@pytest.mark.parametrize(
    ("status", "text"),
    [
        row(
            "R-031", {"containerStatuses": [RUNNING]}, "spec: Forbidden: Pod running on node without support for resize"
        ),
        row(
            "R-047",
            {
                **CAN_RESIZE,
                "nodeAllocatableResourceClaimStatuses": [
                    {"resourceClaimName": "x", "containers": ["c"], "resources": {"cpu": "1"}}
                ],
            },
            "spec: Forbidden: pods with node allocatable resource claims cannot be resized",
        ),
    ],
)
async def test_what_the_node_reports_may_rule_it_out(server: Server, status: dict[str, Any], text: str) -> None:
    await stored(server, spec(container("c", CPU)), status=status)
    assert await refusal(server, asking(c="2")) == text


@pytest.mark.parametrize(
    ("old", "patch", "status"),
    [
        row("R-031", spec(container("c", CPU)), asking(c="2"), CAN_RESIZE),
        row(
            "R-032",
            spec(container("c", CPU)),
            asking(c="2"),
            {"containerStatuses": [{**RUNNING, "ready": False, "state": {"waiting": {"reason": "x"}}}]},
        ),
        row("R-035", spec(container("c", CPU)), amounts("limits", cpu="2"), None),
        row("R-035", spec(container("c", CPU)), amounts("requests", memory="1Gi"), None),
        row("R-042", INIT, change("i", "initContainers", resources={"requests": {"cpu": "2"}}), None),
        row(
            "R-045",
            spec(container("c", BOTH, {"memory": "4Gi"}, resizePolicy=[policy("memory", "NotRequired")])),
            amounts("limits", memory="2Gi"),
            CAN_RESIZE,
        ),
        row(
            "R-045",
            spec(container("c", BOTH, {"memory": "4Gi"}, resizePolicy=[policy("memory", "RestartContainer")])),
            amounts("limits", memory="2Gi"),
            CAN_RESIZE,
        ),
        row("R-056", spec(container("c", CPU)), {"spec": {"resources": {"requests": {"cpu": "2"}}}}, None),
        row("R-056", LEVEL, {"spec": {"resources": {"requests": {"cpu": "1500m"}}}}, None),
    ],
)
async def test_what_a_resize_may_do(
    server: Server, old: dict[str, Any], patch: dict[str, Any], status: dict[str, Any] | None
) -> None:
    before = await stored(server, old, status=status)
    code, after = await resize(server, patch)
    assert (code, after["metadata"].get("generation")) == (200, before["metadata"]["generation"] + 1), after


@pytest.mark.row("R-042")
async def test_without_its_gate_a_plain_init_container_stays(tmp_path: Path) -> None:
    gates = FeatureGates({"InPlacePodVerticalScalingInitContainers": False})
    async with running_server(tmp_path, gates=gates) as server:
        await stored(server, INIT)
        patch = change("i", "initContainers", resources={"requests": {"cpu": "2"}})
        said = await refusal(server, patch)
    assert said == "spec: Forbidden: resources for non-sidecar init containers are immutable"


@pytest.mark.row("R-058")
async def test_without_its_gate_a_pod_with_pod_level_resources_stays(tmp_path: Path) -> None:
    gates = FeatureGates({"InPlacePodLevelResourcesVerticalScaling": False})
    async with running_server(tmp_path, gates=gates) as server:
        await stored(server, LEVEL)
        said = await refusal(server, asking(c="900m"))
    assert said.endswith(
        "Forbidden: resize of pods with pod-level resources is forbidden when "
        "InPlacePodLevelResourcesVerticalScalingEnabled feature gate is disabled"
    )


@pytest.mark.row("R-059")
async def test_containers_of_a_pod_with_pod_level_resources_have_no_say_in_its_class(server: Server) -> None:
    await stored(server, spec(container("c", CPU), resources={"requests": BOTH, "limits": BOTH}))
    code, found = await resize(server, asking(c="500m"))
    assert (code, found["status"]["qosClass"]) == (200, "Guaranteed")
