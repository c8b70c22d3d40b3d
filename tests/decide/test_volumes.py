"""Claims of pods, and RuntimeClasses: what they say about where and how a pod may run."""

from typing import Any

import pytest

from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.pods.types import Pod, PodSpec
from podfit.api.meta.codec import convert
from podfit.api.node.v1.types import RuntimeClass
from podfit.api.storage.v1.types import StorageClass
from podfit.core.quantity import Quantity
from podfit.decide.placement.volumes import UNBOUND, ClaimLookup, claim_in_use, objection
from podfit.decide.pod.runtime_class import Conflict, with_runtime_class

BOUND = {"pv.kubernetes.io/bind-completed": "yes"}


def pod(*volumes: dict[str, Any], phase: str = "Pending") -> Pod:
    spec = {"volumes": [{"name": f"v{index}", **volume} for index, volume in enumerate(volumes)]}
    return convert({"metadata": {"name": "p", "namespace": "n"}, "spec": spec, "status": {"phase": phase}}, Pod)


def claim(
    name: str = "c", *, phase: str = "Pending", volume: str = "", storage: str | None = None, **meta: Any
) -> PersistentVolumeClaim:
    body = {
        "metadata": {"name": name, "namespace": "n", **meta},
        "spec": {"volumeName": volume, "storageClassName": storage},
        "status": {"phase": phase},
    }
    return convert(body, PersistentVolumeClaim)


def known(*claims: PersistentVolumeClaim) -> ClaimLookup:
    by_name = {claim.metadata.name: claim for claim in claims}
    later = convert({"provisioner": "x/y", "volumeBindingMode": "WaitForFirstConsumer"}, StorageClass)
    return ClaimLookup(lambda _, name: by_name.get(name), {"later": later}.get)


MOUNTS = {"persistentVolumeClaim": {"claimName": "c"}}


@pytest.mark.parametrize(
    ("found", "text"),
    [
        ((), 'persistentvolumeclaim "c" not found'),
        ((claim(),), UNBOUND),
        ((claim(storage="other"),), UNBOUND),
        ((claim(storage="later"),), ""),
        ((claim(deletionTimestamp="2026-01-01T00:00:00Z"),), 'persistentvolumeclaim "c" is being deleted'),
        ((claim(phase="Lost", volume="v"),), 'persistentvolumeclaim "c" bound to non-existent persistentvolume "v"'),
        ((claim(volume="v"),), UNBOUND),  # chosen, but the binding is not complete
        ((claim(phase="Bound", volume="v", annotations=BOUND),), ""),
    ],
)
def test_what_claims_object_to(found: tuple[PersistentVolumeClaim, ...], text: str) -> None:
    assert objection(pod(MOUNTS), known(*found)) == text


def test_a_pod_names_its_own_claims_after_itself() -> None:
    own = pod({"ephemeral": {"volumeClaimTemplate": {}}})
    text = 'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-v0"'
    assert objection(own, known()) == text
    assert not objection(pod({"emptyDir": {}}), known())


def test_a_claim_that_only_has_the_name_of_the_pods_own_is_not_used() -> None:
    own = pod({"ephemeral": {"volumeClaimTemplate": {}}})
    text = "PVC n/p-v0 was not created for pod n/p (pod is not owner)"
    assert objection(own, known(claim("p-v0"))) == text
    assert not objection(pod({"persistentVolumeClaim": {"claimName": "p-v0"}}), known(claim("p-v0", storage="later")))


def test_a_claim_is_in_use_while_a_pod_runs() -> None:
    assert claim_in_use(claim(), [pod(MOUNTS, phase="Running")])
    assert not claim_in_use(claim(), [pod(MOUNTS, phase="Succeeded"), pod({"emptyDir": {}})])


def runtime(**body: Any) -> RuntimeClass:
    return convert({"metadata": {"name": "r"}, "handler": "h", **body}, RuntimeClass)


def test_a_runtime_class_adds_its_cost_and_its_nodes() -> None:
    given = runtime(
        overhead={"podFixed": {"cpu": "100m"}},
        scheduling={"nodeSelector": {"a": "b"}, "tolerations": [{"key": "k", "operator": "Exists"}]},
    )
    spec = with_runtime_class(PodSpec(), given)
    assert isinstance(spec, PodSpec)
    assert (spec.overhead, spec.node_selector) == ({"cpu": Quantity.parse("100m")}, {"a": "b"})
    assert [toleration.key for toleration in spec.tolerations] == ["k"]
    assert with_runtime_class(spec, given) is spec
    plain = PodSpec()
    assert with_runtime_class(plain, None) is plain


def test_a_pod_cannot_contradict_its_runtime_class() -> None:
    costs = runtime(overhead={"podFixed": {"cpu": "1"}})
    spec = PodSpec(overhead={"cpu": Quantity.parse("2")})
    assert isinstance(with_runtime_class(spec, costs), Conflict)
    assert isinstance(with_runtime_class(spec, None), Conflict)
    placed = with_runtime_class(PodSpec(node_selector={"a": "c"}), runtime(scheduling={"nodeSelector": {"a": "b"}}))
    assert placed == Conflict("conflict: runtimeClass.scheduling.nodeSelector[a] = b; pod.spec.nodeSelector[a] = c")
