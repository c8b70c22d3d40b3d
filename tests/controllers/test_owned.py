"""Whose an object is, as every controller asks it: of the same namespace, kind, name and UID, and of nobody else."""

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podfit.api.apps.v1.daemonsets import ControllerRevision, DaemonSet
from podfit.api.apps.v1.deployments import Deployment, ReplicaSet
from podfit.api.apps.v1.statefulsets import StatefulSet
from podfit.api.batch.v1.types import CronJob, Job
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.replication.types import ReplicationController
from podfit.api.meta.codec import convert
from podfit.api.meta.owners import controller_named, identity_of, is_controlled_by
from podfit.api.meta.v1.types import ObjectMeta, OwnerReference
from podfit.client.informer import Informer
from podfit.client.rest import Client
from podfit.controllers.owners import Owned
from support.clock import FakeClock

OWNING = [
    (Deployment, ReplicaSet),
    (ReplicaSet, Pod),
    (ReplicationController, Pod),
    (StatefulSet, Pod),
    (StatefulSet, ControllerRevision),
    (DaemonSet, Pod),
    (DaemonSet, ControllerRevision),
    (Job, Pod),
    (CronJob, Job),
]


class _Nobody:
    random: Any = None


def owner_of_kind(kind: type[Any]) -> Any:
    return convert({"metadata": {"name": "w", "namespace": "shop", "uid": "u"}}, kind)


def reference(owned_by: type[Any], **changed: str) -> dict[str, Any]:
    owner = owner_of_kind(owned_by)
    return {"apiVersion": owner.api_version, "kind": owner.kind, "name": "w", "uid": "u", "controller": True} | changed


def child(kind: type[Any], name: str, namespace: str, owner: dict[str, Any]) -> Any:
    meta = {"name": name, "namespace": namespace, "uid": name, "resourceVersion": "1", "ownerReferences": [owner]}
    return convert({"metadata": meta}, kind)


@pytest.mark.parametrize(("kind", "of"), OWNING, ids=lambda kind: kind.__name__)
def test_a_controller_has_no_child_but_its_own(kind: type[Any], of: type[Any]) -> None:
    informer = Informer[Any](cast(Client, _Nobody()), of, clock=FakeClock())
    owned = Owned[Any](cast(Client, _Nobody()), of, informer)
    children = {
        "mine": child(of, "mine", "shop", reference(kind)),
        "of an older version": child(of, "older", "shop", reference(kind, apiVersion=_older(kind))),
        "elsewhere": child(of, "elsewhere", "mallory", reference(kind)),
        "of another kind": child(of, "kind", "shop", reference(kind, kind="Rack")),
        "of another group": child(of, "group", "shop", reference(kind, apiVersion="example.org/v1")),
        "of another name": child(of, "name", "shop", reference(kind, name="v")),
        "of the one before": child(of, "before", "shop", reference(kind, uid="t")),
        "not controlled": child(of, "dependent", "shop", reference(kind) | {"controller": False}),
    }
    for obj in children.values():
        informer._changed(obj)
    assert [obj.metadata.name for obj in owned.of(owner_of_kind(kind))] == ["mine", "older"]


def _older(kind: type[Any]) -> str:
    group = owner_of_kind(kind).api_version.rpartition("/")[0]
    return f"{group}/v1beta1".removeprefix("/")


@given(
    st.builds(
        OwnerReference,
        api_version=st.sampled_from(["apps/v1", "v1", "batch/v1", "apps/v1beta1"]),
        kind=st.sampled_from(["ReplicaSet", "Deployment", "Node"]),
        name=st.sampled_from(["w", "v"]),
        uid=st.sampled_from(["u", "t"]),
        controller=st.sampled_from([True, False, None]),
    ),
    st.sampled_from(["shop", "mallory", ""]),
    st.sampled_from([ReplicaSet, Deployment, Node]),
)
def test_a_reference_names_one_object_only(reference: OwnerReference, namespace: str, kind: type[Any]) -> None:
    """A cluster-scoped owner is named from anywhere, one of a namespace only from there."""
    where = "" if kind is Node else "shop"
    owner = convert({"metadata": {"name": "w", "namespace": where, "uid": "u"}}, kind)
    meta = ObjectMeta(name="x", namespace=namespace, owner_references=(reference,))
    group = owner.api_version.rpartition("/")[0]
    exact = (reference.api_version.rpartition("/")[0], reference.kind, reference.name, reference.uid)
    wanted = bool(reference.controller) and exact == (group, owner.kind, "w", "u") and where in ("", namespace)
    assert is_controlled_by(meta, identity_of(owner)) == wanted
    if wanted and where:
        assert controller_named(meta) == identity_of(owner)
