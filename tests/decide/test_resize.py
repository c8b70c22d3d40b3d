"""What a resize of a running pod comes to, step by step."""

import pytest

from podfit.api.core.v1.pods.types import Pod
from podfit.core.features import FeatureGates
from podfit.decide.cgroup.container_resources import Machine, effective
from podfit.decide.cgroup.pod_cgroup import PodValues, pod_config
from podfit.decide.pod.allocated import PodResources, resizable
from podfit.decide.resize.steps import (
    CheckMemory,
    RecordPod,
    SetPod,
    Step,
    UpdateContainer,
    in_progress,
    restarts,
    steps,
)
from support.placed import RESTART_CPU, RESTART_MEMORY, placed, resized
from support.pods import container, needs, pod, sidecar

GATES = FeatureGates()
MACHINE = Machine(memory=8 << 30)
MI = 1 << 20


def actuated(pod: Pod) -> PodResources:
    """The record of a pod that has settled."""
    records = {container.name: effective(pod, container) for container in resizable(pod, GATES)}
    return PodResources(records, pod.spec.resources or needs())


def settled(pod: Pod) -> PodValues:
    """What the cgroup of a settled pod holds."""
    return PodValues.of(pod_config(pod, MACHINE))


def names(pod: Pod) -> set[str]:
    return {container.name for container in (*pod.spec.init_containers, *pod.spec.containers)}


def plan(old: Pod, new: Pod, *, running: set[str] | None = None) -> tuple[Step, ...]:
    return steps(new, actuated(old), names(old) if running is None else running, settled(old), MACHINE)


def trace(done: tuple[Step, ...]) -> list[str]:
    """`pod memory limit=268435456`, `c1 cpu quota=20000 shares=102 memory=0`."""
    lines = []
    for step in done:
        match step:
            case CheckMemory(limits):
                listed = [f"pod<{limits.pod}"] * (limits.pod is not None)
                lines.append(" ".join(["check", *listed, *(f"{k}<{v}" for k, v in limits.containers.items())]))
            case SetPod("cpu", "shares"):
                lines.append(f"pod shares={step.config.shares}")
            case SetPod("cpu", "limit"):
                lines.append(f"pod quota={step.config.quota}")
            case SetPod():
                lines.append(f"pod memory={step.config.memory}")
            case UpdateContainer(name, resource, values):
                lines.append(
                    f"{name} {resource}: shares={values.cpu_shares} quota={values.cpu_quota} "
                    f"memory={values.memory_limit}"
                )
            case RecordPod():
                lines.append("record pod")
    return lines


SMALL = needs({"cpu": "100m", "memory": "64Mi"}, {"cpu": "200m", "memory": "128Mi"})
WEB = placed(pod(container("c1", {"cpu": "100m", "memory": "64Mi"}, {"cpu": "200m", "memory": "128Mi"})))


def test_nothing_to_do() -> None:
    assert plan(WEB, WEB) == ()
    assert not in_progress(WEB, actuated(WEB), {"c1"}, GATES)


@pytest.mark.row("R-130", "R-131", "R-137")
def test_growth_raises_the_pod_first_and_memory_before_cpu() -> None:
    bigger = resized(WEB, c1=needs({"cpu": "150m", "memory": "80Mi"}, {"cpu": "300m", "memory": "256Mi"}))
    assert trace(plan(WEB, bigger)) == [
        f"pod memory={256 * MI}",
        f"c1 memory: shares=102 quota=20000 memory={256 * MI}",
        "pod quota=30000",
        "pod shares=153",
        f"c1 cpu: shares=153 quota=30000 memory={256 * MI}",
    ]


@pytest.mark.row("R-132")
def test_shrinking_lowers_the_pod_last_and_checks_usage_first() -> None:
    smaller = resized(WEB, c1=needs({"cpu": "50m", "memory": "32Mi"}, {"cpu": "100m", "memory": "64Mi"}))
    assert trace(plan(WEB, smaller)) == [
        f"check pod<{64 * MI} c1<{64 * MI}",
        f"c1 memory: shares=102 quota=20000 memory={64 * MI}",
        f"pod memory={64 * MI}",
        f"c1 cpu: shares=51 quota=10000 memory={64 * MI}",
        "pod shares=51",
        "pod quota=10000",
    ]


@pytest.mark.row("R-133")
def test_containers_that_shrink_go_before_those_that_grow() -> None:
    limits = {"cpu": "200m", "memory": "128Mi"}
    pair = placed(pod(container("a", {"cpu": "100m"}, limits), container("b", {"cpu": "100m"}, limits)))
    swapped = resized(
        pair, a=needs({"cpu": "100m"}, {**limits, "cpu": "300m"}), b=needs({"cpu": "100m"}, {**limits, "cpu": "100m"})
    )
    assert [line.split(":")[0] for line in trace(plan(pair, swapped))] == ["b cpu", "a cpu"]


@pytest.mark.row("R-128")
def test_request_only_touches_shares_and_no_limit() -> None:
    changed = resized(WEB, c1=needs({"cpu": "150m", "memory": "64Mi"}, {"cpu": "200m", "memory": "128Mi"}))
    assert trace(plan(WEB, changed)) == ["pod shares=153", f"c1 cpu: shares=153 quota=20000 memory={128 * MI}"]


@pytest.mark.row("R-155")
def test_pod_level_worked_example() -> None:
    both = {"cpu": "200m", "memory": "200Mi"}
    before = placed(
        pod(
            container("c0", {"cpu": "100m", "memory": "100Mi"}, resize_policy=(RESTART_MEMORY,)),
            container("c1", resize_policy=(RESTART_CPU, RESTART_MEMORY)),
            resources=needs(both, both),
        )
    )
    more = {"cpu": "300m", "memory": "200Mi"}
    after = resized(before, level=needs(more, more))
    assert before.status.qos_class == "Guaranteed"
    assert restarts(after, actuated(before), {"c0", "c1"}, GATES) == ("c1",)
    assert trace(plan(before, after, running={"c0"})) == [
        "pod quota=30000",
        "pod shares=307",
        f"c0 cpu: shares=102 quota=30000 memory={200 * MI}",
        "record pod",
    ]


@pytest.mark.row("R-156", "R-157")
def test_own_limit_shields_a_container_from_the_pods() -> None:
    level = {"cpu": "400m", "memory": "256Mi"}
    before = placed(
        pod(
            container("own", {"cpu": "100m"}, {"cpu": "100m", "memory": "64Mi"}, resize_policy=(RESTART_CPU,)),
            resources=needs({"cpu": "200m", "memory": "128Mi"}, level),
        )
    )
    wider = resized(before, level=needs({"cpu": "300m", "memory": "128Mi"}, {**level, "cpu": "600m"}))
    assert restarts(wider, actuated(before), {"own"}, GATES) == ()
    assert trace(plan(before, wider)) == ["pod quota=60000", "pod shares=307", "record pod"]


@pytest.mark.row("R-125", "R-126", "R-127")
@pytest.mark.parametrize(
    ("changed", "restart"),
    [
        (needs({"cpu": "100m"}, {"cpu": "300m", "memory": "128Mi"}), ()),
        (needs({"cpu": "100m"}, {"cpu": "200m", "memory": "256Mi"}), ("c1",)),
        (needs({"cpu": "100m"}, {"cpu": "300m", "memory": "256Mi"}), ("c1",)),
    ],
)
def test_restart_policy_is_per_resource(changed: object, restart: tuple[str, ...]) -> None:
    limits = {"cpu": "200m", "memory": "128Mi"}
    before = placed(
        pod(container("c1", {"cpu": "100m"}, limits, resize_policy=(RESTART_MEMORY,)), container("c2", {}, limits))
    )
    assert restarts(resized(before, c1=changed), actuated(before), {"c1", "c2"}, GATES) == restart  # type: ignore[arg-type]  # states of the table


def test_pod_is_not_lowered_while_a_container_to_be_restarted_still_runs() -> None:
    limits = {"cpu": "200m", "memory": "128Mi"}
    before = placed(pod(container("c1", {}, limits, resize_policy=(RESTART_MEMORY,))))
    after = resized(before, c1=needs({}, {"cpu": "200m", "memory": "64Mi"}))
    assert plan(before, after) == ()
    assert trace(plan(before, after, running=set())) == [f"check pod<{64 * MI}", f"pod memory={64 * MI}"]


@pytest.mark.row("R-168")
def test_pod_cgroup_follows_although_the_container_is_down() -> None:
    raised = resized(WEB, c1=needs({"cpu": "100m", "memory": "64Mi"}, {"cpu": "200m", "memory": "256Mi"}))
    assert trace(plan(WEB, raised, running=set())) == [f"pod memory={256 * MI}"]


@pytest.mark.row("R-160")
def test_pod_limit_alone_is_checked_too() -> None:
    own = {"cpu": "100m", "memory": "64Mi"}
    before = placed(pod(container("c1", {}, own), resources=needs({"memory": "100Mi"}, {"memory": "256Mi"})))
    after = resized(before, level=needs({"memory": "100Mi"}, {"memory": "128Mi"}))
    assert trace(plan(before, after)) == [f"check pod<{128 * MI}", f"pod memory={128 * MI}", "record pod"]


@pytest.mark.row("R-136")
def test_first_limit_is_a_decrease() -> None:
    before = placed(pod(container("c1", {"cpu": "100m", "memory": "64Mi"})))
    after = resized(before, c1=SMALL)
    assert trace(plan(before, after)) == [
        f"check pod<{128 * MI} c1<{128 * MI}",
        f"c1 memory: shares=102 quota=0 memory={128 * MI}",
        f"pod memory={128 * MI}",
        f"c1 cpu: shares=102 quota=20000 memory={128 * MI}",
        "pod quota=20000",
    ]


@pytest.mark.row("R-134")
def test_pod_stays_unlimited_while_one_container_is() -> None:
    before = placed(pod(container("a", {"cpu": "100m"}, {"memory": "64Mi"}), container("b", {"cpu": "100m"})))
    after = resized(before, a=needs({"cpu": "100m"}, {"memory": "128Mi"}))
    assert trace(plan(before, after)) == [f"a memory: shares=102 quota=0 memory={128 * MI}"]


def test_container_without_request_keeps_the_shares_of_its_limit() -> None:
    before = placed(pod(container("c1", None, {"cpu": "200m"}), container("c2", {"cpu": "10m"})))
    after = resized(before, c1=needs(None, {"cpu": "400m"}))
    assert trace(plan(before, after))[0].startswith("c1 cpu: shares=409")


def test_unrecorded_container_is_told_one_resource_at_a_time() -> None:  # actuated file lost
    lost = steps(WEB, PodResources({}), {"c1"}, settled(WEB), MACHINE)
    assert trace(lost) == [
        f"check c1<{128 * MI}",
        f"c1 memory: shares=0 quota=0 memory={128 * MI}",
        f"c1 cpu: shares=102 quota=20000 memory={128 * MI}",
    ]
    assert in_progress(WEB, PodResources({}), {"c1"}, GATES)


@pytest.mark.row("R-164", "R-165")
def test_init_containers_and_sidecars() -> None:
    before = placed(pod(container("c1"), init=(container("i1", {"cpu": "100m"}), sidecar("s1", {"cpu": "100m"}))))
    both = resized(before, i1=needs({"cpu": "200m"}), s1=needs({"cpu": "200m"}))
    assert in_progress(both, actuated(before), {"i1"}, GATES)
    assert in_progress(both, actuated(before), {"s1"}, GATES)
    assert not in_progress(both, actuated(before), {"c1"}, GATES)
    no_init = FeatureGates({"InPlacePodVerticalScalingInitContainers": False})
    assert not in_progress(both, actuated(before), {"i1"}, no_init)


def test_weight_decides_on_v2_where_shares_are_lossy() -> None:
    config = pod_config(WEB, MACHINE)
    now = PodValues(shares=79, weight=4, quota=config.quota, period=config.period, memory=config.memory)
    assert steps(WEB, actuated(WEB), {"c1"}, now, MACHINE) == ()


def test_limits_finer_than_a_page_come_to_rest() -> None:
    odd = placed(pod(container("c1", {}, {"memory": "100000001"})))
    now = PodValues(shares=2, quota=None, period=100_000, memory=100_000_001 // 4096 * 4096)
    assert steps(odd, actuated(odd), {"c1"}, now, MACHINE) == ()
