"""Rules of a resize that no recorded case reaches."""

from typing import Any

import msgspec
import pytest

from podfit.api.core.v1.pods.containers import Container, ContainerResizePolicy, ResourceClaim, ResourceRequirements
from podfit.api.core.v1.pods.types import NodeAllocatableResourceClaimStatus, Pod, PodOS, PodResourceClaim, PodStatus
from podfit.api.defaults import apply_defaults
from podfit.core.features import DEFAULT_GATES, FeatureGates
from podfit.decide.pod.qos import qos_class
from podfit.decide.resize.validation import prepare_resize, validate_resize
from support.pods import amounts, container, needs, pod, running, sidecar, with_status

RESTART = (ContainerResizePolicy(resource_name="cpu", restart_policy="RestartContainer"),)
NO_INIT = FeatureGates({"InPlacePodVerticalScalingInitContainers": False})
NO_LEVEL = FeatureGates({"InPlacePodLevelResourcesVerticalScaling": False})
ONLY = "spec: Forbidden: only cpu and memory resources are mutable"


def stored(*containers: Container, **more: Any) -> Pod:
    given = apply_defaults(pod(*containers, **more))
    return with_status(given, qos_class=qos_class(given))


def resized(old: Pod, cpu: str, *, of: str = "containers", index: int = 0) -> Pod:
    """`old` with another CPU request in one container."""
    every = list(getattr(old.spec, of))
    every[index] = msgspec.structs.replace(
        every[index], resources=msgspec.structs.replace(every[index].resources, requests=amounts({"cpu": cpu}))
    )
    return msgspec.structs.replace(old, spec=msgspec.structs.replace(old.spec, **{of: tuple(every)}))


def verdict(new: Pod, old: Pod, gates: FeatureGates = DEFAULT_GATES) -> list[str]:
    return [str(error) for error in validate_resize(prepare_resize(new, old, gates), old, gates)]


BURSTABLE = stored(container("a", {"cpu": "1"}))


@pytest.mark.row("R-008", "R-009")
def test_only_resources_are_taken_from_what_was_sent() -> None:
    """R-008, R-009."""
    new = resized(BURSTABLE, "2")
    other = msgspec.structs.replace(new.spec.containers[0], image="evil:1")
    new = msgspec.structs.replace(
        new,
        metadata=msgspec.structs.replace(new.metadata, labels={"x": "y"}, finalizers=("a/b",), generation=99),
        spec=msgspec.structs.replace(new.spec, containers=(other,), host_network=True),
        status=PodStatus(phase="Failed"),
    )
    prepared = prepare_resize(new, BURSTABLE, DEFAULT_GATES)
    assert prepared.metadata == msgspec.structs.replace(BURSTABLE.metadata, generation=2)
    assert prepared.status == BURSTABLE.status
    assert prepared.spec == resized(BURSTABLE, "2").spec


@pytest.mark.row("R-009", "R-010")
def test_a_numerically_equal_value_changes_nothing() -> None:
    """R-009, R-010."""
    prepared = prepare_resize(resized(BURSTABLE, "1000m"), BURSTABLE, DEFAULT_GATES)
    assert prepared.metadata.generation == BURSTABLE.metadata.generation
    assert prepared == BURSTABLE


@pytest.mark.row("R-026", "R-027", "R-031", "R-047")
@pytest.mark.parametrize(
    ("old", "text"),
    [
        (
            stored(container("a", {"cpu": "1"}), annotations={"kubernetes.io/config.mirror": "x"}, node_name="n"),
            "[]: Forbidden: static pods cannot be resized",
        ),
        (
            stored(container("a", {"cpu": "1"}), os=PodOS(name="windows")),
            "[]: Forbidden: windows pods cannot be resized",
        ),
        (
            with_status(BURSTABLE, container_statuses=(running("a"),)),
            "spec: Forbidden: Pod running on node without support for resize",
        ),
        (
            with_status(BURSTABLE, node_allocatable_resource_claim_statuses=(NodeAllocatableResourceClaimStatus(),)),
            "spec: Forbidden: pods with node allocatable resource claims cannot be resized",
        ),
    ],
    ids=["R-026", "R-027", "R-031", "R-047"],
)
def test_pods_that_cannot_be_resized(old: Pod, text: str) -> None:
    assert verdict(resized(old, "2"), old) == [text]


@pytest.mark.row("R-031", "R-032")
def test_the_first_running_container_speaks_for_the_node() -> None:
    """R-031, R-032: reported resources may be empty, but not absent."""
    empty = with_status(BURSTABLE, container_statuses=(running("b", ResourceRequirements()), running("a")))
    assert verdict(resized(empty, "2"), empty) == []


@pytest.mark.row("R-046")
def test_pq3_a_container_with_claims_cannot_be_resized() -> None:
    """R-046."""
    resources = ResourceRequirements(requests=amounts({"cpu": "1"}), claims=(ResourceClaim(name="gpu"),))
    claims = (PodResourceClaim(name="gpu", resource_claim_name="x"),)
    old = stored(msgspec.structs.replace(container("a"), resources=resources), resource_claims=claims)
    assert verdict(resized(old, "2"), old) == [ONLY]


@pytest.mark.row("R-041", "R-042")
def test_init_containers() -> None:
    """R-041, R-042; sidecars need no gate."""
    plain = stored(container("a"), init=(container("i", {"cpu": "1"}), sidecar("s", {"cpu": "1"})))
    assert verdict(resized(plain, "2", of="init_containers"), plain) == []
    assert verdict(resized(plain, "2", of="init_containers"), plain, NO_INIT) == [
        "spec: Forbidden: resources for non-sidecar init containers are immutable"
    ]
    assert verdict(resized(plain, "2", of="init_containers", index=1), plain, NO_INIT) == []
    restarting = stored(container("a"), init=(container("i", {"cpu": "1"}, resize_policy=RESTART),))
    (text,) = verdict(resized(restarting, "2", of="init_containers"), restarting)
    why = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
    assert text == f"spec.initContainers[0]: Forbidden: {why}"


@pytest.mark.row("R-024")
def test_stored_restart_policies_that_are_refused_today_are_tolerated() -> None:
    """R-024."""
    old = stored(container("a", {"cpu": "1"}), init=(container("i", resize_policy=RESTART),))
    assert verdict(resized(old, "2"), old) == []


@pytest.mark.row("R-058")
def test_pod_level_resources_need_their_gate() -> None:
    """R-058."""
    old = stored(container("a", {"cpu": "1"}), resources=needs({"cpu": "2"}))
    (text,) = verdict(resized(old, "1500m"), old, NO_LEVEL)
    assert text.startswith("[]: Forbidden: resize of pods with pod-level resources is forbidden when")


@pytest.mark.row("R-014", "R-015")
@pytest.mark.parametrize("phase", ["Pending", "Running", "Succeeded", "Failed"])
def test_any_phase_will_do(phase: str) -> None:
    """R-014, R-015."""
    old = with_status(BURSTABLE, phase=phase)
    assert verdict(resized(old, "2"), old) == []
