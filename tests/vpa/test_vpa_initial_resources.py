"""Initial resources of a whole cluster: pods of a CronJob teach, the next Job's pods get, and nobody else is told."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from podfit.answers.plan.amounts import RequestError
from podfit.answers.plan.initial_resources import InitialPlans, plan_initial
from podfit.api.apiregistration.v1.types import APIService
from podfit.api.batch.v1.types import CronJob, Job
from podfit.api.core.v1.limits.types import LimitRange
from podfit.api.core.v1.namespaces.types import Namespace
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert, decode, to_dict
from podfit.api.meta.owners import reference_to
from podfit.api.recommender.v1alpha1 import (
    GROUP_VERSION,
    ContainerRecommendation,
    PodRecommendation,
    PodRecommendationStatus,
)
from podfit.client.rest import MERGE_PATCH
from podfit.core.errors import ApiError
from podfit.decide.autoscaling.initial import ANNOTATION, ENABLED, LABEL
from podfit.vpa.admission.controller import AdmissionController, AdmissionSettings
from podfit.vpa.admission.registration import Registration, register
from podfit.vpa.history.own.compaction import Wanted
from podfit.vpa.history.own.files import HistoryDirectory
from podfit.vpa.history.own.recorder import Recorder
from podfit.vpa.recommender.initial import FILE
from podfit.vpa.recommender.pod_recommendations import PodRecommendationApi
from podfit.vpa.recommender.recommender import Recommender
from podfit.vpa.recommender.settings import RecommenderSettings
from support.access import grant, rule
from support.vpa_world import NAMESPACE, World, recommending

CONTAINER = {"name": "app", "image": "report:1"}
TEMPLATE = {"metadata": {"labels": {"app": "report"}}, "spec": {"containers": [CONTAINER], "restartPolicy": "Never"}}
CRON = {
    "apiVersion": "batch/v1",
    "kind": "CronJob",
    "metadata": {"name": "report"},
    "spec": {"schedule": "0 0 * * *", "jobTemplate": {"spec": {"template": TEMPLATE}}},
}
PODS = 7


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """A CronJob's Job with seven pods of 100m and 40 MiB, three minutes of them; the admission controller asks."""
    async with recommending(tmp_path) as made:
        await made.client.patch(Namespace, NAMESPACE, "", labelled(ENABLED), content_type=MERGE_PATCH)
        await made.client.create_in(CronJob, convert(CRON, CronJob), NAMESPACE)
        recommender = await made.start()
        made.usage.beside["vpa-recommender"] = PodRecommendationApi(recommender.recommend_to)
        service = {"name": "vpa-recommender", "namespace": "kube-system", "port": 443}
        group = {"group": "recommender.podfit.dev", "version": "v1alpha1", "service": service}
        spec: dict[str, Any] = {
            **group,
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "insecureSkipTLSVerify": True,
        }
        name = {"metadata": {"name": "v1alpha1.recommender.podfit.dev"}}
        await made.client.create(convert({**name, "spec": spec}, APIService))
        controller = AdmissionController(made.client, clock=made.clock, settings=AdmissionSettings(asks=True))
        made.usage.beside["vpa-webhook"] = controller.handle
        await made.run(controller.run())
        await register(made.client, Registration(), b"")
        yield made


def labelled(value: str | None) -> dict[str, Any]:
    return {"metadata": {"labels": {LABEL: value}}}


async def job(world: World, name: str, *, of_cron: bool = True) -> dict[str, Any]:
    """The reference that its pods bear."""
    cron = await world.client.get(CronJob, "report", NAMESPACE)
    owners = {"ownerReferences": [to_dict(reference_to(cron))]} if of_cron else {}
    document = {"metadata": {"name": name, "namespace": NAMESPACE, **owners}, "spec": {"template": TEMPLATE}}
    found: dict[str, Any] = to_dict(reference_to(await world.client.create(convert(document, Job))))
    return found


async def pod_of(world: World, name: str, owner: dict[str, Any] | None, **container: Any) -> Pod:
    owners = {"ownerReferences": [owner]} if owner is not None else {}
    meta = {"name": name, "namespace": NAMESPACE, "labels": {"app": "report"}, **owners}
    document = {"metadata": meta, "spec": {"containers": [CONTAINER | container], "nodeName": "n"}}
    return await world.client.create(convert(document, Pod))


async def learnt(world: World, *, minutes: int = 3) -> None:
    owner = await job(world, "report-1")
    for number in range(PODS):
        await pod_of(world, f"report-1-{number}", owner)
        await world.report(f"report-1-{number}", phase="Running")
    world.usage.used = {f"report-1-{number}": {"app": ("100m", "40Mi")} for number in range(PODS)}
    await world.minutes(minutes)


def given(pod: Pod) -> dict[str, str]:
    return {name: str(amount) for name, amount in pod.spec.containers[0].resources.requests.items()}


async def asked(world: World, pod: dict[str, Any], namespace: str = NAMESPACE) -> tuple[ContainerRecommendation, ...]:
    path = f"/apis/{GROUP_VERSION}/namespaces/{namespace}/podrecommendations"
    body = {"apiVersion": GROUP_VERSION, "kind": "PodRecommendation", "spec": {"pod": pod}}
    return decode(await world.client.request("POST", path, json.dumps(body).encode()), PodRecommendation).status.initial


async def test_vpa_next_job_of_a_known_image_gets_its_initial_requests(world: World) -> None:
    await learnt(world)
    made = await pod_of(world, "report-2-a", await job(world, "report-2"))
    assert given(made) == {"cpu": "102m", "memory": "43Mi"}
    assert not made.spec.containers[0].resources.limits
    said = json.loads(made.metadata.annotations[ANNOTATION])["app"]
    assert said["source"] == "90 % of 21 samples of 7 pods of cronjob/report"
    assert 0 < said["confidence"] < 0.1


async def test_vpa_learns_from_enough_and_gives_to_who_asks_for_nothing(world: World) -> None:
    await learnt(world, minutes=2)
    early = await job(world, "report-2")
    assert given(await pod_of(world, "early", early)) == {}, "fourteen samples"
    await world.minutes(1)
    assert given(await pod_of(world, "now", early))
    assert given(await pod_of(world, "own", early, resources={"requests": {"cpu": "1m"}})) == {"cpu": "1m"}
    assert given(await pod_of(world, "limited", early, resources={"limits": {"cpu": "7m"}})) == {"cpu": "7m"}
    assert given(await pod_of(world, "newer", early, image="report:2")) == {}
    assert given(await pod_of(world, "nobody", None)) == {}
    assert given(await pod_of(world, "alone", await job(world, "alone", of_cron=False))) == {}


async def test_vpa_namespace_that_does_not_ask_is_left_alone_and_forgotten(world: World) -> None:
    await learnt(world)
    owner = await job(world, "report-2")
    await world.client.patch(Namespace, NAMESPACE, "", labelled(None), content_type=MERGE_PATCH)
    await world.clock.settle()
    assert given(await pod_of(world, "off", owner)) == {}
    await world.minutes(1)
    await world.client.patch(Namespace, NAMESPACE, "", labelled(ENABLED), content_type=MERGE_PATCH)
    await world.clock.settle()
    assert given(await pod_of(world, "anew", owner)) == {}


async def test_vpa_limit_range_and_policy_bound_what_is_given(world: World) -> None:
    await learnt(world)
    owner = await job(world, "report-2")
    target = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "report"}
    policy = {"containerPolicies": [{"containerName": "app", "maxAllowed": {"cpu": "50m"}}]}
    await world.vpa("report", target, updatePolicy={"updateMode": "Off"}, resourcePolicy=policy)
    assert given(await pod_of(world, "bounded", owner)) == {"cpu": "50m", "memory": "43Mi"}
    spec = {"limits": [{"type": "Container", "min": {"memory": "64Mi"}}]}
    meta = {"metadata": {"name": "l", "namespace": NAMESPACE}}
    await world.client.create(convert({**meta, "spec": spec}, LimitRange))
    await world.clock.settle()
    assert given(await pod_of(world, "least", owner)) == {"cpu": "50m", "memory": "64Mi"}


async def test_vpa_pods_that_only_say_whose_they_are_teach_nothing(world: World) -> None:
    """A pod names a CronJob by a UID that is none, another one a workload that is not there."""
    cron = to_dict(reference_to(await world.client.get(CronJob, "report", NAMESPACE)))
    for number in range(PODS):
        false = {**cron, "uid": "false"} if number % 2 else {**cron, "name": "ghost"}
        await pod_of(world, f"p-{number}", false)
        await world.report(f"p-{number}", phase="Running")
    world.usage.used = {f"p-{number}": {"app": ("4", "4Gi")} for number in range(PODS)}
    await world.minutes(5)
    assert given(await pod_of(world, "report-2-a", await job(world, "report-2"))) == {}
    pod = {"metadata": {"ownerReferences": [{**cron, "name": "ghost"}]}, "spec": {"containers": [CONTAINER]}}
    assert await asked(world, pod) == ()


async def test_vpa_tenant_of_another_namespace_is_told_nothing(world: World) -> None:
    """With labels, owners, names and image of the pods of others, in a namespace of their own that asks as well."""
    await learnt(world)
    await world.client.create(convert({"metadata": {"name": "theirs", "labels": {LABEL: ENABLED}}}, Namespace))
    await world.clock.settle()
    pod: dict[str, Any] = to_dict(await world.client.get(Pod, "report-1-0", NAMESPACE))
    assert await asked(world, pod)
    pod["metadata"].pop("namespace")
    cron = to_dict(reference_to(await world.client.get(CronJob, "report", NAMESPACE)))
    for owner in (pod["metadata"]["ownerReferences"][0], cron, {**cron, "uid": ""}):
        pod["metadata"]["ownerReferences"] = [owner]
        assert await asked(world, pod, "theirs") == ()


async def test_vpa_who_may_not_ask_is_told_nothing(world: World) -> None:
    """Jane may ask in a namespace of hers, and reads what she may."""
    await learnt(world)
    jane = world.server.as_user("jane")
    path = f"/apis/{GROUP_VERSION}/namespaces/{NAMESPACE}/podrecommendations"
    with pytest.raises(ApiError, match='User "jane" cannot create resource "podrecommendations"'):
        await jane.request("POST", path, b"{}")
    told = await plan_initial(jane, [CRON], NAMESPACE)
    unknown = "initial resources of cronjob/report: you may not {} in namespace default"
    assert (told.plans, told.unknown) == ((), (unknown.format("list limitranges"),))
    await grant(world.server, rule("list", "limitranges"), rule("get", "namespaces"))
    told = await plan_initial(jane, [CRON], NAMESPACE)
    assert told.unknown == (unknown.format("create podrecommendations.recommender.podfit.dev"),)


@pytest.mark.parametrize("bounded", [False, True])
async def test_vpa_plan_foretells_what_new_pods_get(world: World, bounded: bool) -> None:
    """Of a CronJob that is there, and of a Job that is made anew under its name; the plan comes before the pods."""
    await learnt(world)
    alone = await job(world, "alone", of_cron=False)
    for number in range(PODS):
        await pod_of(world, f"alone-{number}", alone)
        await world.report(f"alone-{number}", phase="Running")
    world.usage.used = {f"alone-{number}": {"app": ("30m", "9Mi")} for number in range(PODS)}
    await world.minutes(3)
    await world.client.delete(Job, "alone", NAMESPACE, propagation="Background")
    if bounded:
        item = {"type": "Container", "max": {"cpu": "80m"}, "min": {"memory": "16Mi"}}
        meta = {"metadata": {"name": "l", "namespace": NAMESPACE}}
        await world.client.create(convert({**meta, "spec": {"limits": [item]}}, LimitRange))
        policy = {"containerPolicies": [{"containerName": "app", "maxAllowed": {"memory": "20Mi"}}]}
        target = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "report"}
        await world.vpa("report", target, resourcePolicy=policy, updatePolicy={"updateMode": "Off"})
    await world.clock.settle()
    again = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "alone"}, "spec": {"template": TEMPLATE}}
    told = await plan_initial(world.client, [CRON, again, {"kind": "Pod"}], NAMESPACE)
    assert not told.unknown
    promised = {plan.target: plan.requests for plan in told.plans}
    owners = {"cronjob/report": await job(world, "report-2"), "job/alone": await job(world, "alone", of_cron=False)}
    for workload, owner in owners.items():
        made = await pod_of(world, f"{workload.rpartition('/')[2]}-new", owner)
        assert promised[workload] == given(made), workload
        said = json.loads(made.metadata.annotations[ANNOTATION])["app"]
        plan = next(plan for plan in told.plans if plan.target == workload)
        assert (said["source"], said["confidence"]) == (plan.source, plan.confidence)
        assert tuple(said.get("notes", ())) == plan.notes
    assert len(set(map(str, promised.values()))) == 2


async def test_vpa_plan_and_pod_go_by_the_same_of_several_vpas(world: World) -> None:
    """The oldest that sizes new pods, be there an older one that is Off; where none does, the oldest bounds."""
    await learnt(world)
    target = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "report"}
    owner, promised = await job(world, "report-2"), list[dict[str, str]]()
    for name, mode, cpu in (("a", "Off", "90m"), ("b", "Off", "80m"), ("c", "Initial", "70m")):
        policy = {"containerPolicies": [{"containerName": "app", "maxAllowed": {"cpu": cpu}}]}
        await world.vpa(name, target, updatePolicy={"updateMode": mode}, resourcePolicy=policy)
        told = await plan_initial(world.client, [CRON], NAMESPACE)
        made = await pod_of(world, f"beside-{name}", owner)
        own = given(made) if ANNOTATION in made.metadata.annotations else {}
        assert [plan.requests for plan in told.plans] == ([own] if own else []), name
        promised.append(own)
    assert promised == [{"cpu": "90m", "memory": "43Mi"}] * 2 + [{}], "the third is sized by its VPA"


async def test_vpa_plan_says_nothing_of_what_asks_or_of_a_namespace_that_does_not(world: World) -> None:
    await learnt(world)
    sized = json.loads(json.dumps(CRON))
    container = sized["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = {"requests": {"cpu": "1"}}
    assert await plan_initial(world.client, [sized], NAMESPACE) == InitialPlans()
    assert await plan_initial(world.client, [CRON], "elsewhere") == InitialPlans()
    with pytest.raises(RequestError, match="a CronJob cannot be read: no field 'spec'"):
        await plan_initial(world.client, [{**CRON, "spec": {"jobTemplate": {}}}], NAMESPACE)


async def test_vpa_twenty_fat_samples_of_a_hostile_pod_stay_a_percentile(world: World) -> None:
    """Its owner is true: whoever may make pods in the namespace can write that."""
    await learnt(world, minutes=27)
    owner = await job(world, "report-2")
    await pod_of(world, "fat", owner)
    await world.report("fat", phase="Running")
    world.usage.used = {**world.usage.used, "fat": {"app": ("60", "200Gi")}}
    await world.minutes(20)
    assert given(await pod_of(world, "next", owner)) == {"cpu": "102m", "memory": "43Mi"}


async def test_vpa_recommender_that_starts_anew_knows_what_was_used_before(world: World, tmp_path: Path) -> None:
    """Kept beside the history, once a minute, durably; a pod that lives is counted once, whoever restarts."""
    await world.stop()
    root = tmp_path / "history"

    async def begin() -> Recommender:
        recorder = Recorder(HistoryDirectory(root), world.clock, compacting=nothing)
        made = Recommender(world.client, clock=world.clock, settings=RecommenderSettings(), recorder=recorder)
        await world.run(made.run())
        return made

    await begin()
    await learnt(world, minutes=5)
    kept = (root / FILE).stat()
    assert kept.st_mode & 0o777 == 0o600
    await world.stop()
    recommender = await begin()
    pod = await pod_of(world, "report-2-0", await job(world, "report-2"))
    answer = await recommender.recommend_to(pod)
    assert answer is not None
    (told,) = answer.initial
    assert "of 7 pods of cronjob/report" in " ".join(told.reasons)
    await world.minutes(3)
    answer = await recommender.recommend_to(pod)
    assert answer is not None
    assert "of 7 pods" in " ".join(answer.initial[0].reasons)
    await world.stop()
    (root / FILE).write_text('{"version": 1, "places": [[["a"]]]}')
    assert not (await (await begin()).recommend_to(pod) or PodRecommendationStatus()).initial, "it begins anew"


async def nothing(wanted: Wanted) -> None:
    """No compaction."""


async def test_vpa_pod_is_made_as_it_is_while_the_recommender_is_away(world: World) -> None:
    await learnt(world)
    owner = await job(world, "report-2")
    del world.usage.beside["vpa-recommender"]
    assert given(await pod_of(world, "as-it-is", owner)) == {}
