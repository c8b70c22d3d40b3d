"""Native sidecars are sized as other containers are; init containers that end are not."""

from typing import Any

from podfit.api.autoscaling_k8s.v1 import RecommendedPodResources, VerticalPodAutoscaler
from podfit.api.core.v1.limits.types import LimitRange
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.api.meta.owners import ObjectIdentity
from podfit.core.times import parse_time
from podfit.decide.autoscaling.actions import ResizePod
from podfit.decide.autoscaling.gates import NO_GATES, Gates
from podfit.decide.autoscaling.in_place import restarts_nothing
from podfit.decide.autoscaling.limit_range_capping import for_pod
from podfit.decide.autoscaling.oom import ran_out
from podfit.decide.autoscaling.patches import admission_patches
from podfit.decide.autoscaling.priority import Thresholds, priority
from podfit.decide.autoscaling.update import View, run
from podfit.decide.autoscaling.update_settings import UpdateSettings

NOW = parse_time("2026-05-01T12:00:00Z")
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "u", "controller": True}


def container(name: str, cpu: str = "100m", **more: Any) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": {"cpu": cpu, "memory": "100Mi"}}, **more}


def pod(*, policy: str = "NotRequired", **status: Any) -> Pod:
    resize = [{"resourceName": "memory", "restartPolicy": policy}]
    spec = {
        "initContainers": [container("setup"), container("proxy", restartPolicy="Always", resizePolicy=resize)],
        "containers": [container("app")],
    }
    metadata = {"name": "p", "namespace": "n", "uid": "p", "ownerReferences": [OWNER]}
    return convert({"metadata": metadata, "spec": spec, "status": {"phase": "Running", **status}}, Pod)


def vpa(*names: str, **spec: Any) -> VerticalPodAutoscaler:
    amounts = {"cpu": "300m", "memory": "200Mi"}
    found = [{"containerName": name, "target": amounts, "lowerBound": amounts, "upperBound": amounts} for name in names]
    status = {"recommendation": {"containerRecommendations": found}}
    metadata = {"name": "v", "namespace": "n"}
    return convert({"metadata": metadata, "spec": spec, "status": status}, VerticalPodAutoscaler)


def paths(operations: Any) -> list[str]:
    return [str(operation["path"]) for operation in operations]


def test_vpa_gives_a_new_sidecar_what_is_recommended() -> None:
    found = admission_patches(pod(), vpa("app", "proxy"), (), NO_GATES)
    assert paths(found)[1:5] == [
        "/spec/containers/0/resources/requests/cpu",
        "/spec/containers/0/resources/requests/memory",
        "/spec/initContainers/1/resources/requests/cpu",
        "/spec/initContainers/1/resources/requests/memory",
    ]
    values = {operation["path"].rpartition("/")[2]: operation["value"] for operation in found[5:]}
    assert values["vpaObservedContainers"] == "app, proxy"
    assert "init container 1: cpu request, memory request" in values["vpaUpdates"]


def test_vpa_leaves_a_sidecar_without_a_recommendation_alone() -> None:
    found = admission_patches(pod(), vpa("app", "setup"), (), NO_GATES)
    assert not [path for path in paths(found) if path.startswith("/spec/initContainers")]


def test_vpa_boosts_the_start_of_containers_only() -> None:
    boost = {"cpu": {"type": "Factor", "factor": 2}}
    found = admission_patches(pod(), vpa("app", "proxy", startupBoost=boost), (), Gates(cpu_startup_boost=True))
    cpu = {operation["path"]: operation["value"] for operation in found if operation["path"].endswith("requests/cpu")}
    assert list(cpu.values()) == ["600m", "300m"]
    assert [path for path in paths(found) if "Boost" in path] == ["/metadata/annotations/vpaCpuStartupBoost~1app"]


def test_vpa_resizes_sidecars_with_their_pod() -> None:
    view = View(
        vpa=vpa("proxy"), pods=(pod(),), configured={ObjectIdentity("apps", "ReplicaSet", "n", "rs", "u"): 1}, now=NOW
    )
    action = next(run(view, UpdateSettings(min_replicas=1)))
    assert isinstance(action, ResizePod)
    assert paths(action.resources) == [
        "/spec/initContainers/1/resources/requests/cpu",
        "/spec/initContainers/1/resources/requests/memory",
    ]


def test_vpa_takes_what_the_node_reports_of_a_sidecar() -> None:
    resources = {"requests": {"cpu": "300m", "memory": "200Mi"}}
    status = {"name": "proxy", "image": "i", "imageID": "i", "ready": True, "restartCount": 0, "resources": resources}
    reported = pod(initContainerStatuses=[status])
    recommendation = vpa("proxy").status.recommendation
    assert priority(reported, vpa("proxy"), recommendation, NO_GATES, Thresholds()).difference == 0
    assert priority(pod(), vpa("proxy"), recommendation, NO_GATES, Thresholds()).difference == 3


def test_a_sidecar_may_restart() -> None:
    assert restarts_nothing(pod())
    assert not restarts_nothing(pod(policy="RestartContainer"))


def test_a_sidecar_without_a_recommendation_does_not_count_for_the_limit_range_of_a_pod() -> None:
    item = {"type": "Pod", "max": {"cpu": "500m"}}
    limits = convert({"metadata": {"name": "l"}, "spec": {"limits": [item]}}, LimitRange)
    found = for_pod(pod(), vpa("app").status.recommendation, None, (limits,)).recommendation
    assert isinstance(found, RecommendedPodResources)
    assert [recommendation.container_name for recommendation in found.container_recommendations] == ["app"]


def test_memory_that_a_sidecar_ran_out_of_is_seen() -> None:
    base = {"name": "proxy", "image": "i", "imageID": "i", "ready": True, "restartCount": 0}
    end = {"reason": "OOMKilled", "exitCode": 137, "finishedAt": "2026-05-01T12:00:00Z"}
    before = pod(initContainerStatuses=[{**base, "state": {"running": {}}}])
    after = pod(initContainerStatuses=[{**base, "state": {"terminated": end}}])
    (found,) = ran_out(before, after)
    assert (found.container, found.memory) == ("proxy", 100 * 2**20)
