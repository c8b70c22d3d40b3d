"""Recommendations by pod, node or a label's value, and for pods as a whole, from usage to the pods' sizes."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from podfit.answers.facts.snapshot import Reader
from podfit.answers.facts.target import WORKLOADS, parse_target
from podfit.answers.plan.plan import requests_of
from podfit.answers.plan.recommended_request import RecommendingVpa
from podfit.answers.why.vpa import VpaWhy, read_facts, why_vpa
from podfit.api.apps.v1.deployments import ReplicaSet
from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert, to_dict
from podfit.client.rest import MERGE_PATCH
from podfit.client.vpa_kinds import VPAS
from podfit.core.errors import ApiError
from podfit.core.times import format_time
from podfit.decide.autoscaling.scope import AGGREGATION, POD_POLICY
from podfit.decide.autoscaling.slices import RECOMMENDATIONS, stored
from podfit.vpa.admission.controller import AdmissionController, AdmissionSettings
from podfit.vpa.admission.registration import Registration, register
from podfit.vpa.updater.settings import UpdaterSettings
from podfit.vpa.updater.updater import Updater
from support.vpa_world import NAMESPACE, World, recommending

SMALL = ("100m", "300Mi")
MI = 1 << 20


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """A Deployment of three pods, of which the first uses four times as much as the others, and all three processes."""
    async with recommending(tmp_path) as made:
        await made.deployment("web")
        await made.replicaset("web-rs", "web", 3)
        for number in range(3):
            await made.pod(f"web-{number}", "web", owner="web-rs")
        made.usage.used = {
            f"web-{number}": {"app": ("1500m", "2Gi") if number == 0 else ("400m", "300Mi")} for number in range(3)
        }
        await made.start()
        await made.run(Updater(made.client, clock=made.clock, settings=UpdaterSettings(admission=None)).run())
        controller = AdmissionController(made.client, clock=made.clock, settings=AdmissionSettings())
        made.usage.beside["vpa-webhook"] = controller.handle
        await made.run(controller.run())
        await register(made.client, Registration(), b"")
        await made.clock.settle()
        yield made


async def vpa(world: World, annotations: dict[str, str], mode: str = "InPlaceOrRecreate") -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    meta = {"name": "web", "namespace": NAMESPACE, "annotations": annotations}
    document = {"metadata": meta, "spec": {"targetRef": target, "updatePolicy": {"updateMode": mode}}}
    await world.client.create_in(VPAS, convert(document, VerticalPodAutoscaler))
    await world.clock.settle()


async def milli(world: World) -> dict[str, int]:
    """Of CPU by pod."""
    pods = (await world.client.list(Pod, NAMESPACE)).items
    return {pod.metadata.name: pod.spec.containers[0].resources.requests["cpu"].milli() for pod in pods}


async def why(world: World) -> VpaWhy:
    return why_vpa(await read_facts(world.client, "web", NAMESPACE, world.clock), world.clock.now())


async def test_vpa_by_pod_sizes_each_pod_by_its_own_usage(world: World) -> None:
    await vpa(world, {AGGREGATION: "pod"})
    await world.minutes(6)
    sizes = await milli(world)
    assert 1500 < sizes["web-0"] < 2000
    assert 400 < sizes["web-1"] == sizes["web-2"] < 600
    every = (await world.sizes("web"))["app"].target["cpu"].milli()
    assert 1500 < every < 2000, "the status is of all pods"
    told = await why(world)
    assert {(one.slice, one.pods) for one in told.slices} == {(f"web-{number}", 1) for number in range(3)}
    assert any("by pod (podfit.dev/aggregation)" in note for note in told.notes)
    assert not any("Recommendations" in condition for condition in told.conditions)


async def test_vpa_pod_that_comes_again_has_its_size_and_a_new_one_that_of_all(world: World) -> None:
    await vpa(world, {AGGREGATION: "pod"})
    await world.minutes(4)
    await world.client.delete(Pod, "web-1", NAMESPACE, grace=0)
    await world.pod("web-1", "web", owner="web-rs")
    await world.pod("web-9", "web", owner="web-rs")
    sizes = await milli(world)
    assert 400 < sizes["web-1"] < 600
    assert sizes["web-9"] == (await world.sizes("web"))["app"].target["cpu"].milli()


async def test_vpa_by_node_and_by_label(world: World) -> None:
    """All pods are on one node; one of them bears the label."""
    await world.client.patch(
        Pod, "web-0", NAMESPACE, {"metadata": {"labels": {"role": "leader"}}}, content_type=MERGE_PATCH
    )
    await vpa(world, {AGGREGATION: "node"}, mode="Off")
    await world.minutes(2)
    assert list(stored(await world.seen("web")).slices) == ["n"]
    await world.annotate_vpa("web", {AGGREGATION: "label=role"})
    await world.minutes(2)
    assert list(stored(await world.seen("web")).slices) == ["leader"]
    assert set((await world.requests()).values()) == {SMALL}, "mode Off changes nothing"
    reasons = {stand.pod: stand.why for stand in (await why(world)).stands}
    assert "it is sized by slice leader (podfit.dev/aggregation: label=role)" in reasons["web-0"]
    assert "since it is of no slice" in reasons["web-1"]


async def test_vpa_new_pod_of_a_daemon_set_has_the_size_of_its_node(world: World) -> None:
    """It names the node before it is bound, as the DaemonSet's controller makes it."""
    await vpa(world, {AGGREGATION: "node"})
    await world.minutes(3)
    (text,) = (one.message for one in (await world.seen("web")).status.conditions if one.type == RECOMMENDATIONS)
    assert text is not None
    kept = json.loads(text)
    kept["slices"]["busy"] = {"app": {"cpu": ["3", "3", "3"]}}
    said = {"type": RECOMMENDATIONS, "status": "True", "message": json.dumps(kept)}
    status = to_dict((await world.seen("web")).status)
    await world.say_status("web", {**status, "conditions": [*_without(status["conditions"]), said]})
    owner = await world.reference(ReplicaSet, "web-rs")
    meta = {"namespace": NAMESPACE, "labels": {"app": "web"}, "ownerReferences": [owner]}
    for node in ("busy", "other"):
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        spec = {"containers": [{"name": "app", "image": "i"}], "affinity": {"nodeAffinity": required}}
        await world.client.create(convert({"metadata": {**meta, "name": node}, "spec": spec}, Pod))
    sizes = await milli(world)
    assert sizes["busy"] == 3000
    assert sizes["other"] == (await world.sizes("web"))["app"].target["cpu"].milli()


def _without(conditions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [condition for condition in conditions if condition["type"] != RECOMMENDATIONS]


async def test_vpa_restarted_recommender_knows_its_slices(world: World) -> None:
    await vpa(world, {AGGREGATION: "pod"}, mode="Off")
    await world.minutes(10)
    before = stored(await world.seen("web"))
    assert {name for name in await world.checkpoints() if name.startswith("web-app-")}
    await world.stop()
    world.usage.used = {}
    await world.start()
    await world.minutes(2)
    after = stored(await world.seen("web"))
    assert after.slices.keys() == before.slices.keys()
    for name, recommendation in after.slices.items():
        for one, other in zip(
            recommendation.container_recommendations, before.slices[name].container_recommendations, strict=True
        ):
            assert abs(one.target["cpu"].milli() - other.target["cpu"].milli()) <= other.target["cpu"].milli() / 20
    await world.annotate_vpa("web", {AGGREGATION: "workload"})
    await world.minutes(12)
    assert set(await world.checkpoints()) == {"web-app"}, "checkpoints of slices that nobody asks for are deleted"
    assert not stored(await world.seen("web")).slices


async def test_vpa_plan_from_it_and_its_synchronous_answer_are_by_slice(world: World) -> None:
    await vpa(world, {AGGREGATION: "pod"}, mode="Off")
    await world.minutes(4)
    target = parse_target("deployment/web", *WORKLOADS)
    snapshot = await Reader(world.client, NAMESPACE).read(target, usage=False)
    found = requests_of(snapshot, (await RecommendingVpa.find(world.client, target, NAMESPACE)).request(snapshot))
    asked = {one.pod.metadata.name: one.asked.containers["app"].requests["cpu"].milli() for one in found}
    assert asked["web-0"] > 1500 > 600 > asked["web-1"]
    recommending = await RecommendingVpa.find(world.client, target, NAMESPACE)
    every = (await world.sizes("web"))["app"].target["cpu"]
    assert recommending.template_sizes(snapshot)["app"].requests["cpu"] == every, "of new pods, whoever they are"
    assert world.recommender is not None
    answers = {
        name: await world.recommender.recommend_to(await world.client.get(Pod, name, NAMESPACE)) for name in asked
    }
    for name, answer in answers.items():
        assert answer is not None
        assert answer.containers[0].target["cpu"].milli() == asked[name]
        assert answer.message == f"by slice {name} (podfit.dev/aggregation: pod)"


# ---------------------------------------------------------------- as a whole


AS_A_WHOLE = {POD_POLICY: json.dumps({"mode": "Auto", "maxAllowed": {"memory": "3Gi"}})}
FEATURES = ("InPlacePodLevelResourcesVerticalScaling",)
TOO_LITTLE = {"requests": {"cpu": "300m", "memory": "512Mi"}, "limits": {"cpu": "600m", "memory": "512Mi"}}


async def whole_pod(world: World, name: str, resources: dict[str, Any] | None = None) -> Pod:
    """Of the containers app and side, which ask for nothing themselves."""
    owner = await world.reference(ReplicaSet, "web-rs")
    meta = {"name": name, "namespace": NAMESPACE, "labels": {"app": "web"}, "ownerReferences": [owner]}
    containers = [{"name": container, "image": "i"} for container in ("app", "side")]
    spec: dict[str, Any] = {"containers": containers, "nodeName": "n", "tolerations": [{"operator": "Exists"}]}
    made = await world.client.create(
        convert({"metadata": meta, "spec": spec | ({"resources": resources} if resources else {})}, Pod)
    )
    await world.report(name, phase="Running")
    return made


@pytest.fixture
async def wholes(world: World) -> World:
    """Three pods of two containers, which together use 900m and 1100Mi, and ask for less as a whole."""
    node = await world.client.get(Node, "n")
    await world.client.update_status(replace(node, status=replace(node.status, declared_features=FEATURES)))
    for number in range(3):
        await world.client.delete(Pod, f"web-{number}", NAMESPACE, grace=0)
        await whole_pod(world, f"api-{number}", TOO_LITTLE)
    world.usage.used = {f"api-{number}": {"app": ("600m", "800Mi"), "side": ("300m", "300Mi")} for number in range(3)}
    return world


async def levels(world: World) -> dict[str, tuple[int, int, int, int]]:
    """By pod: millicores and MiB of requests, then of limits."""
    found = {}
    for pod in (await world.client.list(Pod, NAMESPACE)).items:
        asked = pod.spec.resources
        assert asked is not None
        assert not any(container.resources.requests for container in pod.spec.containers)
        sides = (asked.requests, asked.limits)
        amounts = [(side["cpu"].milli(), side["memory"].value() // MI) if side else (0, 0) for side in sides]
        found[pod.metadata.name] = (*amounts[0], *amounts[1])
    return found


async def test_vpa_sizes_pods_as_a_whole(wholes: World) -> None:
    """By the sum of their containers, limits in proportion; a new pod is made so, even one that asks for nothing."""
    await vpa(wholes, AS_A_WHOLE)
    await wholes.minutes(8)
    for name, (cpu, memory, cpu_limit, memory_limit) in (await levels(wholes)).items():
        assert 900 < cpu < 1200, name
        assert 1100 < memory < 1600, name
        assert cpu_limit == 2 * cpu
        assert memory_limit == memory
    await whole_pod(wholes, "new")
    cpu, memory, *limits = (await levels(wholes))["new"]
    assert (900 < cpu < 1200, 1100 < memory < 1600, limits) == (True, True, [0, 0])
    told = await why(wholes)
    assert {(one.slice, one.container, one.pods) for one in told.slices} == {("", "(pod)", 4)}
    assert any("sized as a whole" in note for note in told.notes)
    assert (await wholes.sizes("web")).keys() == {"app", "side"}, "the status is of containers, as ever"


async def test_vpa_pod_that_has_no_size_as_a_whole_gets_one_where_its_class_stays(world: World) -> None:
    """Its container requests something, so that it is Burstable before and after."""
    node = await world.client.get(Node, "n")
    await world.client.update_status(replace(node, status=replace(node.status, declared_features=FEATURES)))
    await vpa(world, AS_A_WHOLE)
    await world.minutes(6)
    found = [pod.spec.resources for pod in (await world.client.list(Pod, NAMESPACE)).items]
    assert any(level is not None and level.requests["cpu"].milli() > 400 for level in found)
    assert set((await world.requests()).values()) == {SMALL}, "containers keep theirs"


async def test_vpa_pod_of_which_a_container_is_not_measured_counts_for_nothing(wholes: World) -> None:
    """AEP 9988: half of a pod is no pod."""
    for used in wholes.usage.used.values():
        del used["side"]
    await vpa(wholes, AS_A_WHOLE)
    await wholes.minutes(3)
    assert not stored(await wholes.seen("web")).slices
    assert set((await levels(wholes)).values()) == {(300, 512, 600, 512)}


async def test_vpa_pods_as_a_whole_by_slice_from_checkpoints(wholes: World) -> None:
    wholes.usage.used["api-0"] = {"app": ("1500m", "800Mi"), "side": ("1", "300Mi")}
    await vpa(wholes, {**AS_A_WHOLE, AGGREGATION: "pod"}, mode="Off")
    await wholes.minutes(5)
    before = stored(await wholes.seen("web")).slices
    assert before.keys() == {"", "api-0", "api-1", "api-2"}
    amounts = {name: sized.container_recommendations[0].target["cpu"].milli() for name, sized in before.items()}
    assert amounts["api-0"] > 2500 > 1200 > amounts["api-1"]
    await wholes.stop()
    wholes.usage.used = {}
    await wholes.start()
    await wholes.minutes(1)
    after = stored(await wholes.seen("web")).slices
    assert after.keys() == before.keys()
    assert wholes.recommender is not None
    answer = await wholes.recommender.recommend_to(await wholes.client.get(Pod, "api-0", NAMESPACE))
    assert answer is not None
    assert answer.pod is not None
    assert not answer.containers, "of the pod as a whole alone"
    assert answer.pod.target["cpu"].milli() > 2500


async def test_vpa_pod_that_ran_out_of_memory_as_a_whole_gets_more(wholes: World) -> None:
    await vpa(wholes, AS_A_WHOLE, mode="Off")
    await wholes.minutes(3)
    running = {"name": "app", "image": "i", "imageID": "i", "ready": True, "restartCount": 0}
    await wholes.report("api-1", containerStatuses=[{**running, "state": {"running": {}}}])
    ended = {"reason": "OOMKilled", "exitCode": 137, "finishedAt": format_time(wholes.clock.now())}
    status = {**running, "ready": False, "state": {"terminated": ended}}
    before = stored(await wholes.seen("web")).slices[""].container_recommendations[0].target["memory"]
    await wholes.report("api-1", containerStatuses=[status])
    await wholes.minutes(2)
    after = stored(await wholes.seen("web")).slices[""].container_recommendations[0].target["memory"]
    assert after.value() > 1.1 * before.value()


async def test_vpa_that_sizes_both_is_refused(world: World) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    meta = {"name": "web", "namespace": NAMESPACE, "annotations": AS_A_WHOLE}
    spec = {"targetRef": target, "resourcePolicy": {"containerPolicies": [{"containerName": "app"}]}}
    with pytest.raises(ApiError, match="there are containerPolicies"):
        await world.client.create_in(VPAS, convert({"metadata": meta, "spec": spec}, VerticalPodAutoscaler))
