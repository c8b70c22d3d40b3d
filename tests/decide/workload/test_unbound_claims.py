"""What becomes of a claim without a volume."""

from typing import Any

import pytest

from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.persistentvolumes.types import PersistentVolume
from podfit.api.meta.codec import convert
from podfit.api.storage.v1.types import StorageClass
from podfit.decide.placement.volumes import SELECTED_NODE
from podfit.decide.workload.unbound_claims import Binds, Waits, unbound
from podfit.decide.workload.volume_binding import PROVISIONER


def claim(*, named: str = "", storage: str = "fast", node: str = "") -> PersistentVolumeClaim:
    marks = {SELECTED_NODE: node} if node else {}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    whole = {**spec, "storageClassName": storage, **({"volumeName": named} if named else {})}
    return convert(
        {"metadata": {"name": "c", "namespace": "d", "uid": "u", "annotations": marks}, "spec": whole},
        PersistentVolumeClaim,
    )


def volume(name: str, taken_by: str = "", storage: str = "fast") -> PersistentVolume:
    spec: dict[str, Any] = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage,
    }
    if taken_by:
        spec["claimRef"] = {"namespace": "d", "name": taken_by, "uid": "u"}
    return convert({"metadata": {"name": name}, "spec": spec, "status": {"phase": "Available"}}, PersistentVolume)


def storage_class(provisioner: str = "example.com/p", mode: str = "Immediate") -> StorageClass:
    return convert({"metadata": {"name": "fast"}, "provisioner": provisioner, "volumeBindingMode": mode}, StorageClass)


LATER = storage_class(mode="WaitForFirstConsumer")
NOBODY = storage_class("kubernetes.io/no-provisioner")


@pytest.mark.parametrize(
    ("asked", "volumes", "storage", "bound"),
    [
        (claim(), [volume("a")], NOBODY, "a"),
        (claim(), [volume("a"), volume("b", "c")], NOBODY, "b"),  # it is meant for the claim
        (claim(), [volume("b", "c")], LATER, "b"),
        (claim(named="a"), [volume("b"), volume("a")], LATER, "a"),
    ],
)
def test_it_gets_a_volume(
    asked: PersistentVolumeClaim, volumes: list[PersistentVolume], storage: StorageClass, bound: str
) -> None:
    outcome = unbound(asked, volumes, storage, None)
    assert isinstance(outcome, Binds)
    assert outcome.volume.metadata.name == bound


@pytest.mark.parametrize(
    ("asked", "volumes", "storage", "told"),
    [
        (claim(named="a"), [], NOBODY, None),
        (claim(named="a"), [volume("a", "other")], NOBODY, None),
        (claim(), [volume("a")], LATER, ("Normal", "WaitForFirstConsumer")),
        (claim(), [], NOBODY, ("Warning", "ProvisioningFailed")),
        (claim(), [], None, ("Warning", "ProvisioningFailed")),
        (claim(storage=""), [], None, ("Normal", "FailedBinding")),
        (claim(), [], storage_class(), ("Normal", "ExternalProvisioning")),
    ],
)
def test_it_waits(
    asked: PersistentVolumeClaim,
    volumes: list[PersistentVolume],
    storage: StorageClass | None,
    told: tuple[str, str] | None,
) -> None:
    outcome = unbound(asked, volumes, storage, None)
    assert isinstance(outcome, Waits)
    assert (outcome.told and (outcome.told.type, outcome.told.reason)) == told


def test_a_provisioner_is_asked_once_for_the_node_that_was_selected() -> None:
    asked = claim(node="n1")
    for first in (True, False):
        outcome = unbound(asked, [], LATER, None)
        assert isinstance(outcome, Waits)
        assert (outcome.ask is not None) is first
        asked = outcome.ask or asked
    assert asked.metadata.annotations[PROVISIONER] == "example.com/p"


@pytest.mark.parametrize(
    ("storage", "text"),
    [
        (NOBODY, "no volume plugin matched name: kubernetes.io/no-provisioner"),
        (None, 'storageclass.storage.k8s.io "fast" not found'),
    ],
)
def test_why_nobody_provides_a_volume(storage: StorageClass | None, text: str) -> None:
    outcome = unbound(claim(), [], storage, None)
    assert isinstance(outcome, Waits)
    assert outcome.told is not None
    assert outcome.told.message == text
