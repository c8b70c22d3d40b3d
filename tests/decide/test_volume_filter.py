"""Which nodes a pod's volumes allow, as upstream's VolumeBinding: of claims that are bound, or bound later."""

from typing import Any

import pytest

from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.persistentvolumes.types import PersistentVolume
from podfit.api.meta.codec import convert
from podfit.api.storage.v1.types import StorageClass
from podfit.decide.placement.place import Placed, place
from podfit.decide.placement.view import Resident
from podfit.decide.placement.volumes import ClaimLookup, volume_rules
from support.placing import ZONE, a_node, a_pod

ELSEWHERE = "node(s) didn't match PersistentVolume's node affinity"
NOTHING = "node(s) didn't find available persistent volumes to bind"
LOST = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
LATER = {"volumeBindingMode": "WaitForFirstConsumer"}
CLASSES: dict[str, StorageClass] = {
    "local": convert({**LATER, "provisioner": "kubernetes.io/no-provisioner"}, StorageClass),
    "made": convert({**LATER, "provisioner": "x/y"}, StorageClass),
    "made-in-x": convert(
        {
            **LATER,
            "provisioner": "x/y",
            "allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": ["x"]}]}],
        },
        StorageClass,
    ),
}


def claim(
    name: str, size: str = "1Gi", *, storage: str = "local", bound: str = "", node: str = ""
) -> PersistentVolumeClaim:
    annotations = {"pv.kubernetes.io/bind-completed": "yes"} if bound else {}
    annotations |= {"volume.kubernetes.io/selected-node": node} if node else {}
    return convert(
        {
            "metadata": {"name": name, "namespace": "default", "uid": name, "annotations": annotations},
            "spec": {
                "volumeName": bound,
                "storageClassName": storage,
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": size}},
            },
        },
        PersistentVolumeClaim,
    )


def volume(name: str, zone: str, size: str = "1Gi", *, of: str = "", **more: Any) -> PersistentVolume:
    """In a zone; `of` is the claim that it is meant for."""
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
    return convert(
        {
            "metadata": {"name": name, **more},
            "spec": {
                "storageClassName": "local",
                "accessModes": ["ReadWriteOnce"],
                "capacity": {"storage": size},
                "claimRef": {"namespace": "default", "name": of} if of else None,
                "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
            },
            "status": {"phase": "Available"},
        },
        PersistentVolume,
    )


def pod(*names: str) -> Resident:
    return a_pod(volumes=[{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names])


def lookup(claims: list[PersistentVolumeClaim], volumes: list[PersistentVolume], *, known: bool = True) -> ClaimLookup:
    by_name = {claim.metadata.name: claim for claim in claims}
    volumes_by_name = {volume.metadata.name: volume for volume in volumes}
    return ClaimLookup(
        lambda _, name: by_name.get(name), CLASSES.get, volumes_by_name.get, volumes_by_name.values, knows_volumes=known
    )


GOING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("claims", "volumes", "in_x", "in_y"),
    [
        # bound: where the volume is
        ([claim("a", bound="v")], [volume("v", "x")], (), (ELSEWHERE,)),
        ([claim("a", bound="v")], [], (LOST,), (LOST,)),
        # bound later, to one that is there: the class, the size and who it is meant for count
        ([claim("a")], [volume("v", "x")], (), (NOTHING,)),
        ([claim("a", "2Gi")], [volume("v", "x")], (NOTHING,), (NOTHING,)),
        ([claim("a")], [volume("v", "x", of="a"), volume("w", "y", of="b")], (), (NOTHING,)),
        ([claim("a")], [volume("v", "x", **GOING)], (NOTHING,), (NOTHING,)),
        ([claim("a", node="elsewhere")], [volume("v", "x")], (NOTHING,), (NOTHING,)),
        # one volume is for one claim; the smaller claim does not take the volume that only the larger could use
        ([claim("a"), claim("b")], [volume("v", "x")], (NOTHING,), (NOTHING,)),
        ([claim("a"), claim("b")], [volume("v", "x"), volume("w", "x")], (), (NOTHING,)),
        ([claim("a", "5Gi"), claim("b")], [volume("v", "x", "9Gi"), volume("w", "x", "2Gi")], (), (NOTHING,)),
        ([claim("a", "5Gi"), claim("b")], [volume("v", "x", "9Gi"), volume("w", "y", "2Gi")], (NOTHING,), (NOTHING,)),
        # made on demand, where its class may; or one that is there
        ([claim("a", storage="made")], [], (), ()),
        ([claim("a", storage="made-in-x")], [], (), (NOTHING,)),
        # all reasons are told
        ([claim("a", bound="v"), claim("b")], [volume("v", "x", of="a")], (NOTHING,), (ELSEWHERE, NOTHING)),
        ([claim("a", bound="gone"), claim("b")], [], (NOTHING, LOST), (NOTHING, LOST)),
    ],
)
def test_where_volumes_allow_a_pod(
    claims: list[PersistentVolumeClaim], volumes: list[PersistentVolume], in_x: tuple[str, ...], in_y: tuple[str, ...]
) -> None:
    subject = pod(*(claim.metadata.name for claim in claims))
    rules = volume_rules(subject.pod, lookup(claims, volumes))
    assert rules is not None
    for zone, expected in (("x", in_x), ("y", in_y)):
        refusal = rules.refuse(a_node("n", zone=zone))
        assert (refusal.reasons if refusal else ()) == expected
        assert refusal is None or refusal.final


def test_volumes_that_may_not_be_read_stand_in_nobodys_way() -> None:
    claims = [claim("a", bound="v"), claim("b")]
    assert place(pod("a", "b"), [a_node("n", zone="y")], claims=lookup(claims, [], known=False)) == Placed("n")


def test_a_pod_goes_where_its_volume_is() -> None:
    views = [a_node("a", zone="x"), a_node("b", zone="y", cpu="1")]
    assert place(pod("c"), views, claims=lookup([claim("c")], [volume("v", "y")])) == Placed("b")
