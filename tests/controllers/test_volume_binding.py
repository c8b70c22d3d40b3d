"""Claims and volumes on a whole cluster: bound, provisioned where the pod goes, released and deleted."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podfit.api.core.v1.events.types import Event
from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.persistentvolumes.types import CLASS_ANNOTATION, PersistentVolume
from podfit.api.core.v1.pods.types import Pod
from podfit.api.storage.v1.types import StorageClass
from podfit.client.rest import MERGE_PATCH
from podfit.core.errors import ApiError
from podfit.decide.placement.volumes import SELECTED_NODE
from podfit.testing.cluster import Cluster

TWO = 2


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path, nodes=TWO)
    yield made
    made.close()


def claim(name: str = "data", *, size: str = "1Gi", **spec: Any) -> dict[str, Any]:
    whole = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": whole}


def pod(name: str = "db", claim_name: str = "data", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "busybox:1.36", "volumeMounts": [{"name": "v", "mountPath": "/data"}]}
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": claim_name}}
    whole = {"containers": [container], "volumes": [volume], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": whole}


def volume(name: str, size: str, **spec: Any) -> dict[str, Any]:
    whole = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/nowhere"},
        "storageClassName": "manual",
        **spec,
    }
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": whole}


def found(cluster: Cluster, name: str = "data") -> PersistentVolumeClaim:
    return cluster.run(cluster.client.get(PersistentVolumeClaim, name, "default"))


def volumes(cluster: Cluster) -> list[PersistentVolume]:
    return list(cluster.run(cluster.client.list(PersistentVolume)).items)


def test_the_class_local_is_the_default(cluster: Cluster) -> None:
    (found,) = cluster.run(cluster.client.list(StorageClass)).items
    assert (found.metadata.name, found.volume_binding_mode) == ("local", "WaitForFirstConsumer")
    assert found.metadata.annotations["storageclass.kubernetes.io/is-default-class"] == "true"


ASKS = {"volume.kubernetes.io/storage-provisioner": "podfit.dev/local", SELECTED_NODE: "simulated-1"}
"""What a claim says that the provisioner is to make a directory for; whoever makes the claim can write it."""


@pytest.mark.parametrize(
    ("annotations", "spec"),
    [
        ({}, {"storageClassName": "other"}),
        ({CLASS_ANNOTATION: "other"}, {}),
        ({CLASS_ANNOTATION: "other"}, {"storageClassName": "local"}),
        ({CLASS_ANNOTATION: "missing"}, {"storageClassName": "local"}),
        ({}, {"storageClassName": ""}),
    ],
)
def test_a_claim_of_another_class_gets_no_directory_whatever_it_says(
    cluster: Cluster, annotations: dict[str, str], spec: dict[str, str]
) -> None:
    """The quota of the class `local` is not for claims of other classes, nor are its volumes."""
    hard = {"local.storageclass.storage.k8s.io/persistentvolumeclaims": "0"}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard}}
    other = {"kind": "StorageClass", "metadata": {"name": "other"}, "provisioner": "example.org/other"}
    cluster.apply(quota, {"apiVersion": "storage.k8s.io/v1", **other})
    with pytest.raises(ApiError, match="exceeded quota"):
        cluster.apply(claim())
    made = claim(**spec)
    made["metadata"]["annotations"] = ASKS | annotations
    cluster.apply(made)
    cluster.clock.advance(10)
    assert (found(cluster).status.phase, volumes(cluster)) == ("Pending", [])


def test_a_claim_of_a_class_of_the_same_provisioner_gets_a_directory(cluster: Cluster) -> None:
    """Also when the claim is there before the class."""
    made = claim(storageClassName="mine")
    made["metadata"]["annotations"] = ASKS
    cluster.apply(made)
    cluster.clock.advance(5)
    assert found(cluster).status.phase == "Pending"
    mine = {"kind": "StorageClass", "metadata": {"name": "mine"}, "provisioner": "podfit.dev/local"}
    cluster.apply({"apiVersion": "storage.k8s.io/v1", **mine})
    cluster.clock.advance(10)
    assert found(cluster).status.phase == "Bound"


def test_a_directory_where_the_first_pod_goes_and_gone_with_the_claim(cluster: Cluster, tmp_path: Path) -> None:
    cluster.apply(claim())
    cluster.clock.advance(2)
    assert (found(cluster).status.phase, volumes(cluster)) == ("Pending", [])
    events = {event.reason for event in cluster.run(cluster.client.list(Event, "default")).items}
    assert "WaitForFirstConsumer" in events
    cluster.apply(pod())
    cluster.wait_for("db", phase="Running")
    bound, (made,) = found(cluster), volumes(cluster)
    assert (bound.status.phase, bound.spec.volume_name) == ("Bound", made.metadata.name)
    assert (made.status.phase, made.spec.persistent_volume_reclaim_policy) == ("Bound", "Delete")
    directory = tmp_path / "volumes" / made.metadata.name
    assert directory.is_dir()
    node = cluster.pod("db").pod.spec.node_name
    cluster.delete("db")
    cluster.clock.advance(40)
    other = next(candidate.metadata.name for candidate in cluster.nodes() if candidate.metadata.name != node)
    cluster.apply(pod("elsewhere", nodeSelector={"kubernetes.io/hostname": other}))
    cluster.clock.advance(2)
    said = next(
        condition for condition in cluster.pod("elsewhere").pod.status.conditions if condition.type == "PodScheduled"
    )
    assert "1 node(s) didn't match PersistentVolume's node affinity" in said.message
    cluster.delete("elsewhere")
    cluster.run(cluster.client.delete(PersistentVolumeClaim, "data", "default"))
    cluster.clock.advance(40)
    assert (volumes(cluster), directory.exists()) == ([], False)


def test_the_smallest_volume_that_will_do(cluster: Cluster) -> None:
    cluster.apply(volume("large", "5Gi"), volume("small", "512Mi"), volume("fits", "2Gi"))
    cluster.apply(claim(storageClassName="manual"))
    cluster.clock.advance(2)
    bound = found(cluster)
    assert (bound.status.phase, bound.spec.volume_name) == ("Bound", "fits")
    assert str(bound.status.capacity["storage"]) == "2Gi"
    phases = {volume.metadata.name: volume.status.phase for volume in volumes(cluster)}
    assert phases == {"large": "Available", "small": "Available", "fits": "Bound"}
    cluster.run(cluster.client.delete(PersistentVolumeClaim, "data", "default"))
    cluster.clock.advance(2)
    phases = {volume.metadata.name: volume.status.phase for volume in volumes(cluster)}
    assert phases["fits"] == "Released"  # what a hostPath holds is for people to look at


def test_a_claim_that_waits_gets_a_volume_that_comes(cluster: Cluster) -> None:
    cluster.apply(claim(storageClassName="manual"))
    cluster.clock.advance(2)
    assert found(cluster).status.phase == "Pending"
    cluster.apply(volume("late", "1Gi"))
    cluster.clock.advance(2)
    assert found(cluster).spec.volume_name == "late"


def test_a_claim_whose_volume_is_gone_is_lost(cluster: Cluster) -> None:
    cluster.apply(volume("taken", "1Gi"), claim(storageClassName="manual"))
    cluster.clock.advance(2)
    assert found(cluster).status.phase == "Bound"
    cluster.run(cluster.client.delete(PersistentVolume, "taken"))
    freed = {"metadata": {"finalizers": None}}
    cluster.run(cluster.client.patch(PersistentVolume, "taken", "", freed, content_type=MERGE_PATCH))
    cluster.clock.advance(2)
    assert found(cluster).status.phase == "Lost"
    events = {event.reason for event in cluster.run(cluster.client.list(Event, "default")).items}
    assert "ClaimLost" in events


def test_an_ephemeral_volume_has_a_claim_that_goes_with_its_pod(cluster: Cluster) -> None:
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}
    spec = {"volumes": [volume], "containers": [{"name": "c", "image": "i"}]}
    cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
    cluster.clock.advance(10)
    pod = cluster.run(cluster.client.get(Pod, "p", "default"))
    found = cluster.run(cluster.client.get(PersistentVolumeClaim, "p-scratch", "default"))
    assert (pod.status.phase, found.status.phase, found.metadata.labels) == ("Running", "Bound", {"a": "b"})
    (owner,) = found.metadata.owner_references
    assert (owner.kind, owner.uid, owner.controller, owner.block_owner_deletion) == (
        "Pod",
        pod.metadata.uid,
        True,
        True,
    )
    cluster.run(cluster.client.delete(Pod, "p", "default"))
    cluster.clock.advance(60)
    assert not cluster.run(cluster.client.list(PersistentVolumeClaim, "default")).items


def test_a_claim_of_the_right_name_that_is_another_s_is_told(cluster: Cluster) -> None:
    cluster.apply(claim("p-scratch"))
    template = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}
    spec = {"volumes": [volume], "containers": [{"name": "c", "image": "i"}]}
    cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
    cluster.clock.advance(1)
    events = cluster.run(cluster.client.list(Event, "default")).items
    text = "ephemeral volume scratch: PVC default/p-scratch was not created for pod default/p (pod is not owner)"
    assert text in [event.message for event in events if event.reason == "FailedBinding"]
    cluster.run(cluster.client.delete(PersistentVolumeClaim, "p-scratch", "default"))
    cluster.clock.advance(10)
    found = cluster.run(cluster.client.get(PersistentVolumeClaim, "p-scratch", "default"))
    assert [owner.name for owner in found.metadata.owner_references] == ["p"]
