"""The recommender beside a real API server: what it reads, what it writes, and what it does when something is away."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

from podfit.api.apiextensions.v1.types import CustomResourceDefinition
from podfit.api.apps.v1.deployments import Deployment
from podfit.api.core.v1.events.types import Event
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.client.rest import MERGE_PATCH, Client
from podfit.client.vpa_kinds import CHECKPOINTS, VPAS
from podfit.core.errors import ApiError
from podfit.core.quantity import Quantity
from podfit.core.selectors import from_map
from podfit.core.times import format_time
from podfit.decide.autoscaling.cluster_state import ClusterState
from podfit.decide.autoscaling.tracked import PodKey, VpaKey
from podfit.vpa.recommender.checkpoints import Checkpoints
from support.clock import FakeClock
from support.vpa_world import NAMESPACE, World, recommending

MI = 1024 * 1024
NO_PODS = "No pods match this VPA object"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with recommending(tmp_path) as made:
        yield made


@pytest.fixture
async def web(world: World) -> World:
    """A Deployment with one pod that uses half a core and 400 MiB, and its VPA; the recommender runs."""
    await world.deployment("web")
    await world.pod("web-1", "web")
    await world.vpa("web")
    world.usage.used = {"web-1": {"app": ("500m", "400Mi")}}
    await world.start()
    return world


async def target(world: World, container: str = "app", vpa: str = "web") -> tuple[int, int]:
    """Millicores and MiB."""
    found = (await world.sizes(vpa))[container].target
    return found["cpu"].milli(), found["memory"].value() // MI


@pytest.mark.row("V-052")
async def test_usage_becomes_a_recommendation(web: World) -> None:
    assert await web.sizes("web") == {}
    await web.minutes(3)
    cpu, memory = await target(web)
    assert 500 < cpu < 700
    assert 400 < memory < 560
    found = (await web.sizes("web"))["app"]
    assert found.lower_bound["cpu"] < found.target["cpu"] < found.upper_bound["cpu"]
    assert await web.conditions("web") == {"RecommendationProvided": ("True", "")}
    assert (await web.seen("web")).status.observed_generation == 1


@pytest.mark.row("V-050")
async def test_a_status_that_says_the_same_is_not_written(web: World) -> None:
    await web.minutes(1)
    web.usage.used = {}
    await web.minutes(1)
    before = await web.seen("web")
    await web.minutes(5)
    assert (await web.seen("web")).metadata.resource_version == before.metadata.resource_version


@pytest.mark.row("V-047")
async def test_lost_metrics_change_nothing_and_come_back(web: World) -> None:
    await web.minutes(10)
    before = await web.seen("web")
    web.usage.there = False
    await web.minutes(20)
    assert (await web.seen("web")).status == before.status
    web.usage.there, web.usage.used = True, {"web-1": {"app": ("2", "400Mi")}}
    await web.minutes(10)
    assert (await target(web))[0] > 2000


@pytest.mark.row("V-036", "V-053")
async def test_a_restart_goes_on_from_the_checkpoints(web: World) -> None:
    await web.minutes(10)
    (kept,) = (await web.checkpoints()).values()
    assert (kept.metadata.name, kept.spec.vpa_object_name, kept.spec.container_name) == ("web-app", "web", "app")
    assert (kept.status.version, kept.status.total_samples_count) == ("v3", 10)
    before = await target(web)
    await web.stop()
    web.usage.used = {"web-1": {"app": ("1m", "400Mi")}}
    await web.start()
    await web.minutes(2)
    assert await target(web) == before
    assert (await web.checkpoints())["web-app"].status.total_samples_count == 12


async def test_a_restart_without_metrics_keeps_every_recommendation(web: World) -> None:
    """The checkpoint lacks the memory of the window that was open; what was recommended stays."""
    await web.minutes(10)
    before = (await web.seen("web")).status
    await web.stop()
    web.usage.there = False
    await web.start()
    await web.minutes(3)
    after = (await web.seen("web")).status.recommendation
    assert before.recommendation is not None
    assert after is not None
    old, new = before.recommendation.container_recommendations[0], after.container_recommendations[0]
    assert new.target == old.target
    await web.stop()
    for name in await web.checkpoints():
        await web.client.delete(CHECKPOINTS, name, NAMESPACE)
    await web.start()
    await web.minutes(3)
    assert (await web.seen("web")).status.recommendation == after
    assert await web.checkpoints() == {}


async def test_without_a_sample_nothing_is_recommended(world: World) -> None:
    await world.deployment("web")
    await world.pod("web-1", "web", "app", "side")
    await world.vpa("web")
    await world.start()
    world.usage.used = {"web-1": {"side": ("100m", "300Mi")}}
    await world.minutes(2)
    assert list(await world.sizes("web")) == ["side"]
    world.usage.used = {}
    await world.minutes(2)
    assert list(await world.sizes("web")) == ["side"]


async def test_memory_that_ran_out_raises_the_recommendation(web: World) -> None:
    await web.minutes(5)
    before = await target(web)
    running = {"name": "app", "image": "i", "imageID": "i", "ready": True, "restartCount": 0}
    await web.report("web-1", containerStatuses=[{**running, "state": {"running": {}}}])
    end = {"reason": "OOMKilled", "exitCode": 137, "finishedAt": format_time(web.clock.now())}
    await web.report("web-1", containerStatuses=[{**running, "ready": False, "state": {"terminated": end}}])
    await web.minutes(1)
    assert (await target(web))[1] > before[1] + 90


@pytest.mark.row("V-040", "V-051")
async def test_pods_that_are_gone_leave_what_was_learnt(web: World) -> None:
    await web.minutes(5)
    before = await target(web)
    await web.client.delete(Pod, "web-1", NAMESPACE, grace=0)
    web.usage.used = {}
    await web.minutes(2)
    assert await target(web) == before
    conditions = await web.conditions("web")
    assert conditions == {"NoPodsMatched": ("True", NO_PODS), "RecommendationProvided": ("True", "")}


@pytest.mark.row("V-051")
async def test_no_pods(world: World) -> None:
    await world.deployment("web")
    await world.vpa("web")
    await world.start()
    await world.minutes(2)
    assert await world.conditions("web") == {
        "NoPodsMatched": ("True", NO_PODS),
        "RecommendationProvided": ("False", NO_PODS),
    }
    first = (await world.seen("web")).status.conditions
    await world.minutes(2)
    assert (await world.seen("web")).status.conditions == first


@pytest.mark.row("V-051", "V-054")
async def test_a_target_that_cannot_be_read_keeps_what_is_known(web: World) -> None:
    await web.minutes(5)
    before = await target(web)
    await web.client.delete(Deployment, "web", NAMESPACE)
    await web.minutes(5)
    text = "Cannot read targetRef. Reason: Deployment default/web does not exist"
    assert (await web.conditions("web"))["ConfigUnsupported"] == ("True", text)
    assert await target(web) == before
    await web.deployment("web")
    await web.minutes(1)
    assert "ConfigUnsupported" not in await web.conditions("web")


@pytest.mark.row("V-045")
async def test_only_its_own_vpas_are_served(world: World) -> None:
    await world.deployment("web")
    await world.pod("web-1", "web")
    await world.vpa("web")
    await world.vpa("other", {"kind": "Deployment", "name": "web"}, recommenders=[{"name": "mine"}])
    world.usage.used = {"web-1": {"app": ("500m", "400Mi")}}
    await world.start(name="mine")
    await world.minutes(2)
    assert await world.sizes("web") == {}
    assert list(await world.sizes("other")) == ["app"]


@pytest.mark.row("V-053")
async def test_checkpoints_of_vpas_that_are_gone_are_deleted(web: World) -> None:
    await web.minutes(2)
    assert list(await web.checkpoints()) == ["web-app"]
    await web.client.delete(VPAS, "web", NAMESPACE)
    await web.minutes(11)
    assert await web.checkpoints() == {}


class Slow:
    """A server to which each checkpoint takes a second, and which remembers them."""

    random = None

    def __init__(self, clock: FakeClock) -> None:
        self._clock, self.stored = clock, list[str]()

    async def patch(self, *about: Any, **_: Any) -> None:
        self.stored.append(about[1])
        await self._clock.sleep(1.0)


@pytest.mark.row("V-053")
async def test_checkpoints_that_were_written_longest_ago_go_first_and_some_always() -> None:
    clock = FakeClock()
    state, server, number = ClusterState(), Slow(clock), 250
    for index in range(number):
        labels, now = {"app": f"a{index}"}, clock.now().timestamp()
        state.set_vpa(VpaKey(NAMESPACE, f"v{index:03}"), from_map(labels), None)
        state.set_pod(PodKey(NAMESPACE, f"p{index}"), labels, ["c"], now)
        state.add_sample(PodKey(NAMESPACE, f"p{index}"), "c", now, cpu=100, memory=None)
    checkpoints = Checkpoints(cast(Client, server), clock, state)

    async def written(seconds: float) -> list[str]:
        server.stored.clear()
        writing = asyncio.create_task(checkpoints.write(seconds, workers=10))
        await clock.advance(60)
        await writing
        return sorted(server.stored)

    every = [f"v{index:03}-c" for index in range(number)]
    assert await written(0.0) == every[:100], "a part of them at least"
    assert await written(0.0) == every[100:200]
    assert await written(60.0) == every
    state.remove_vpa(VpaKey(NAMESPACE, "v000"))
    assert await written(60.0) == every[1:]


@pytest.mark.row("V-037")
async def test_a_checkpoint_of_another_version_is_left_out(web: World, caplog: pytest.LogCaptureFixture) -> None:
    await web.minutes(2)
    await web.stop()
    patch = {"status": {"version": "v9"}}
    await web.client.patch(CHECKPOINTS, "web-app", NAMESPACE, patch, content_type=MERGE_PATCH)
    await web.start()
    await web.minutes(1)
    assert "unsupported checkpoint version 'v9': only v3 can be loaded" in caplog.text
    assert (await web.checkpoints())["web-app"].status.total_samples_count == 1


async def test_a_policy_bounds_what_was_recommended_before_too(web: World) -> None:
    await web.minutes(5)
    web.usage.there = False
    await web.stop()
    policy = {"containerPolicies": [{"containerName": "*", "maxAllowed": {"cpu": "200m"}}]}
    await web.client.patch(VPAS, "web", NAMESPACE, {"spec": {"resourcePolicy": policy}}, content_type=MERGE_PATCH)
    await web.start()
    await web.minutes(1)
    assert (await web.sizes("web"))["app"].target["cpu"] == Quantity.parse("200m")
    assert (await web.seen("web")).status.observed_generation == 2


async def test_its_metrics(web: World) -> None:
    await web.minutes(2)
    assert web.recommender is not None
    value = web.recommender.metrics.registry.get_sample_value
    labels: dict[str, Any] = {"update_mode": "Recreate", "api": "v1", "unsupported_config": "false"}
    labels |= {"has_recommendation": "true", "matches_pods": "true"}
    assert value("vpa_recommender_vpa_objects_count", labels) == 1
    assert value("vpa_recommender_recommendation_latency_seconds_count") == 1
    assert value("vpa_recommender_execution_latency_seconds_count", {"step": "total"}) == 2
    answers = {"is_error": "false", "client_name": "recommender"}
    assert value("vpa_recommender_metric_server_responses_total", answers) == 2


@pytest.mark.row("V-121")
async def test_vpa_tells_how_good_its_recommendations_are(web: World) -> None:
    await web.minutes(3)
    assert web.recommender is not None
    value = web.recommender.metrics.registry.get_sample_value
    labels = {"update_mode": "Recreate", "resource": "cpu", "is_oom": "false"}
    assert value("vpa_quality_usage_sample_missing_recommendation_count_total", labels) == 1
    assert value("vpa_quality_usage_recommendation_relative_diffs_count", labels) == 2
    assert value("vpa_quality_cpu_recommendations_cores_count", {"update_mode": "Recreate"}) == 2
    found = {"update_mode": "Recreate", "recommendation_missing": "false", "is_oom": "false"}
    assert value("vpa_quality_mem_recommendation_over_usage_diffs_bytes_count", found) == 2
    changes = {"update_mode": "Recreate", "resource": "memory", "vpa_size_log2": "0"}
    assert value("vpa_quality_relative_recommendation_changes_count", changes) == 2
    names = {declared.name for declared in web.recommender.metrics.declared if "_quality_" in declared.name}
    assert len(names) == 9


@pytest.mark.row("V-041")
async def test_usage_of_init_containers_is_not_counted(web: World) -> None:
    web.usage.used = {"web-1": {"app": ("500m", "400Mi"), "setup": ("2", "2Gi")}}
    await web.minutes(3)
    assert list(await web.sizes("web")) == ["app"]


@pytest.mark.row("V-046")
async def test_pods_that_no_vpa_selects_take_no_memory_when_it_is_to_be_saved(world: World) -> None:
    await world.deployment("web")
    for name, app in (("web-1", "web"), ("other-1", "other")):
        await world.pod(name, app)
    await world.vpa("web")
    world.usage.used = {"web-1": {"app": ("500m", "400Mi")}, "other-1": {"app": ("500m", "400Mi")}}
    recommender = await world.start(memory_saver=True)

    def tracked() -> str:
        line = "vpa_recommender_aggregate_container_states_count "
        told = recommender.metrics.exposition().decode().splitlines()
        return next(text.removeprefix(line) for text in told if text.startswith(line))

    await world.minutes(2)
    assert tracked() == "1.0"
    assert list(await world.sizes("web")) == ["app"]
    await world.deployment("other")
    await world.vpa("other")
    await world.minutes(2)
    assert tracked() == "2.0"
    assert list(await world.sizes("other")) == ["app"]
    await world.client.delete(Pod, "other-1", NAMESPACE, grace=0)
    await world.minutes(2)
    assert list(await world.sizes("other")) == ["app"]


@pytest.mark.row("V-002", "V-003")
async def test_the_definition_says_what_a_vpa_may_be(world: World) -> None:
    found = await world.client.get(CustomResourceDefinition, "verticalpodautoscalers.autoscaling.k8s.io")
    versions = {version.name: (version.served, version.deprecated, version.storage) for version in found.spec.versions}
    assert versions == {"v1": (True, False, True), "v1beta2": (False, True, False)}
    target = {"kind": "Deployment", "name": "web"}
    wrong: list[dict[str, Any]] = [
        {"updatePolicy": {"updateMode": "Sometimes"}},
        {"resourcePolicy": {"containerPolicies": [{"containerName": "*", "mode": "Maybe"}]}},
        {"resourcePolicy": {"containerPolicies": [{"containerName": "*", "controlledValues": "Limits"}]}},
        {"updatePolicy": {"evictionRequirements": [{"resources": ["cpu"], "changeRequirement": "Any"}]}},
        {"startupBoost": {"cpu": {"type": "Factor"}}},
        {"startupBoost": {"cpu": {"type": "Quantity", "factor": 2}}},
        {"startupBoost": {"cpu": {"type": "Half", "factor": 2}}},
    ]
    for number, spec in enumerate(wrong):
        with pytest.raises(ApiError) as refused:
            await world.vpa(f"wrong-{number}", target, **spec)
        assert refused.value.code == 422, spec
    await world.vpa("right", target, startupBoost={"cpu": {"type": "Factor", "factor": 2}})


@pytest.mark.row("V-040", "V-043")
async def test_memory_that_ran_out_counts_when_it_is_told_after_the_pod_is_gone(web: World) -> None:
    await web.minutes(5)
    before = await target(web)
    await web.client.delete(Pod, "web-1", NAMESPACE, grace=0)
    web.usage.used = {}
    await web.minutes(1)
    starved = {"offending_containers": "app", "offending_containers_usage": "900Mi", "starved_resource": "memory"}
    about = {"apiVersion": "v1", "kind": "Pod", "name": "web-1", "namespace": NAMESPACE}
    metadata = {"name": "web-1.1", "namespace": NAMESPACE, "annotations": starved}
    event = {"metadata": metadata, "involvedObject": about, "reason": "Evicted", "type": "Warning", "message": "low"}
    await web.client.create(convert(event, Event))
    await web.minutes(1)
    assert (await target(web))[1] > before[1] + 400
    assert (await web.conditions("web"))["NoPodsMatched"][0] == "True"
