"""The recommender's own API: what a pod would get now, for whom, and pods that are made while nobody answers."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from podfit.api.apiregistration.v1.types import APIService
from podfit.api.apps.v1.deployments import ReplicaSet
from podfit.api.meta import codec
from podfit.api.recommender.v1alpha1 import GROUP_VERSION, PodRecommendation, PodRecommendationStatus
from podfit.client.rest import MERGE_PATCH
from podfit.client.vpa_kinds import VPAS
from podfit.core.errors import ApiError
from podfit.net.wire import Request, Response
from podfit.vpa.admission.controller import AdmissionController, AdmissionSettings
from podfit.vpa.admission.fresh import AWAY_SECONDS, WAIT_SECONDS
from podfit.vpa.admission.registration import Registration, register
from podfit.vpa.recommender.pod_recommendations import BODY_LIMIT, PodRecommendationApi
from support.vpa_world import NAMESPACE, World, recommending

ROOT = f"/apis/{GROUP_VERSION}/namespaces"
PATH = f"{ROOT}/{NAMESPACE}/podrecommendations"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with recommending(tmp_path) as made:
        yield made


@pytest.fixture
async def web(world: World) -> World:
    """A Deployment with a pod of half a core and 400 MiB, whose recommender serves its API behind the API server."""
    await world.deployment("web")
    await world.replicaset("web-rs", "web", 1)
    await world.pod("web-1", "web", owner="web-rs")
    await world.vpa("web", updatePolicy={"updateMode": "Initial"})
    world.usage.used = {"web-1": {"app": ("500m", "400Mi")}}
    recommender = await world.start()
    world.usage.beside["vpa-recommender"] = PodRecommendationApi(recommender.recommend_to)
    service = {"name": "vpa-recommender", "namespace": "kube-system", "port": 443}
    group = {"group": "recommender.podfit.dev", "version": "v1alpha1"}
    priorities = {"groupPriorityMinimum": 100, "versionPriority": 100, "insecureSkipTLSVerify": True}
    spec = {**group, **priorities, "service": service}
    document = {"metadata": {"name": "v1alpha1.recommender.podfit.dev"}, "spec": spec}
    await world.client.create(codec.convert(document, APIService))
    await world.minutes(3)
    return world


async def pod_of(world: World, **metadata: Any) -> dict[str, Any]:
    meta = {"labels": {"app": "web"}, "ownerReferences": [await world.reference(ReplicaSet, "web-rs")], **metadata}
    return {"metadata": meta, "spec": {"containers": [{"name": "app", "image": "i"}]}}


async def asked(world: World, pod: dict[str, Any], path: str = PATH, **fields: Any) -> PodRecommendationStatus:
    body = {"apiVersion": GROUP_VERSION, "kind": "PodRecommendation", "spec": {"pod": pod}, **fields}
    told = await world.client.request("POST", path, json.dumps(body).encode())
    return codec.decode(told, PodRecommendation).status


async def admitting(world: World) -> None:
    controller = AdmissionController(world.client, clock=world.clock, settings=AdmissionSettings(asks=True))
    world.usage.beside["vpa-webhook"] = controller.handle
    await world.run(controller.run())
    await register(world.client, Registration(), b"")
    await world.clock.settle()


async def bound_cpu(world: World, most: str) -> None:
    policy = {"containerPolicies": [{"containerName": "app", "maxAllowed": {"cpu": most}}]}
    patch = {"spec": {"resourcePolicy": policy}}
    await world.client.patch(VPAS, "web", NAMESPACE, patch, content_type=MERGE_PATCH)
    await world.clock.settle()


async def test_vpa_pod_is_told_what_it_would_get(web: World) -> None:
    answer = await asked(web, await pod_of(web))
    (app,) = answer.containers
    assert (answer.vpa, app.name, app.source) == ("web", "app", "usage")
    stored = (await web.sizes("web"))["app"]
    assert (app.target, app.lower_bound, app.upper_bound) == (stored.target, stored.lower_bound, stored.upper_bound)
    assert app.confidence is not None
    assert 0 < app.confidence.milli() < 10, "three minutes of a day"


async def test_vpa_answer_knows_the_policy_before_the_status_does(web: World) -> None:
    before = (await web.sizes("web"))["app"].target["cpu"]
    await bound_cpu(web, "200m")
    (app,) = (await asked(web, await pod_of(web))).containers
    assert str(app.target["cpu"]) == "200m"
    assert f"cpu would be {before} without bounds" in app.reasons
    assert (await web.sizes("web"))["app"].target["cpu"] == before
    await admitting(web)
    await web.pod("web-2", "web", owner="web-rs")
    assert (await web.requests())["web-2"][0] == "200m"


async def test_vpa_usage_of_another_namespace_is_never_told(web: World) -> None:
    """Whoever may ask in a namespace of theirs copies labels and owner of the pod that they are curious about."""
    pod = await pod_of(web)
    elsewhere = await asked(web, pod, f"{ROOT}/theirs/podrecommendations")
    assert (elsewhere.vpa, elsewhere.containers) == ("", ())
    for hidden in ({"metadata": {"namespace": NAMESPACE}}, {"spec": {"pod": await pod_of(web, namespace=NAMESPACE)}}):
        with pytest.raises(ApiError, match="does not match the namespace of the request"):
            await asked(web, pod, f"{ROOT}/theirs/podrecommendations", **hidden)


async def test_vpa_pod_of_nobody_and_a_container_that_nobody_knows(web: World) -> None:
    assert "no VerticalPodAutoscaler" in (await asked(web, await pod_of(web, ownerReferences=[]))).message
    pod = await pod_of(web)
    pod["spec"]["containers"].append({"name": "new", "image": "i"})
    answer = await asked(web, pod)
    assert [(container.name, bool(container.target)) for container in answer.containers] == [
        ("app", True),
        ("new", False),
    ]
    assert answer.containers[1].reasons == ("no samples of it are known",)


@pytest.mark.parametrize(
    ("method", "body", "code"),
    [
        ("GET", b"", 405),
        ("POST", b"{", 400),
        ("POST", b'{"apiVersion": "v1", "kind": "Pod"}', 400),
        ("POST", b'{"spec": {"pod": {}}}', 400),
        ("POST", b'{"spec": {"pod": {"spec": {"containers": 3}}}}', 400),
        ("POST", b'{"spec": ' * 100_000, 400),
        ("POST", b" " * (BODY_LIMIT + 1), 413),
    ],
)
async def test_vpa_question_that_is_none(web: World, method: str, body: bytes, code: int) -> None:
    assert web.recommender is not None
    response = await PodRecommendationApi(web.recommender.recommend_to)(Request(method, PATH, body=body))
    assert response.status == code


async def test_vpa_pods_are_made_by_the_status_while_the_recommender_is_away(web: World) -> None:
    """The first pod waits 200 ms for it, later ones not at all; after a while it is asked beside them."""
    api, asking = web.usage.beside["vpa-recommender"], 0
    known = str((await web.sizes("web"))["app"].target["cpu"])

    async def hangs(request: Request) -> Response:
        nonlocal asking
        asking += request.method == "POST"
        await asyncio.Event().wait()
        raise AssertionError("nobody waits that long")

    async def made(name: str) -> str:
        await web.pod(name, "web", owner="web-rs")
        return (await web.requests())[name][0]

    await admitting(web)
    await web.recommend("web", "123m", "300Mi")
    assert await made("before") == known
    web.usage.beside["vpa-recommender"] = hangs
    making = asyncio.create_task(made("first"))
    await web.clock.settle()
    assert not making.done()
    await web.clock.advance(WAIT_SECONDS)
    assert await making == "123m"
    began = web.clock.monotonic()
    assert await made("second") == "123m"
    assert (web.clock.monotonic(), asking) == (began, 1)
    await web.clock.advance(AWAY_SECONDS)
    assert asking == 2
    assert await made("third") == "123m", "nobody waits for that answer"
    web.usage.beside["vpa-recommender"] = api
    await web.clock.advance(WAIT_SECONDS + AWAY_SECONDS)
    assert await made("fourth") == known
    assert await made("fifth") == known
