"""Claims and volumes in any number, for `support.doubling`: what scheduler and controllers walk for one pod or claim.

A pod may have 5,000 values, of which a volume with a claim takes four. Of claims and volumes there are as many as a
tenant makes.
"""

from collections.abc import Mapping
from typing import Any

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.persistentvolumes.types import PersistentVolume
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta import codec
from podfit.api.storage.v1.types import StorageClass
from podfit.apiserver.request.documents import MOST_OF_POD
from podfit.controllers.volumes import VolumeProtection
from podfit.decide.placement.view import NodeInfo
from podfit.decide.placement.volumes import BOUND, NO_PROVISIONER, WAITS, ClaimLookup, objection, volume_rules
from podfit.decide.workload.unbound_claims import unbound
from support.clock import FakeClock
from support.shapes import Shape, Work

MOST_VOLUMES = MOST_OF_POD // 4
MANY = 2_000
"""Volumes of a cluster."""
STORAGE = codec.convert(
    {"metadata": {"name": "late"}, "provisioner": NO_PROVISIONER, "volumeBindingMode": WAITS}, StorageClass
)


def _pod(size: int) -> Pod:
    mounted = [{"name": f"v{n}", "persistentVolumeClaim": {"claimName": f"c{n}"}} for n in range(size)]
    spec = {"containers": [{"name": "c", "image": "x"}], "volumes": mounted}
    return codec.convert({"metadata": {"name": "a", "namespace": "b", "uid": "u"}, "spec": spec}, Pod)


def _ephemeral(size: int) -> Pod:
    """Claims of its own, which are another's."""
    template = {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}
    spec = {"volumes": [{"name": f"v{n}", "ephemeral": template} for n in range(size)]}
    return codec.convert({"metadata": {"name": "a", "namespace": "b", "uid": "u"}, "spec": spec}, Pod)


def _claim(name: str, *, bound: str = "", owner: str = "") -> PersistentVolumeClaim:
    meta: dict[str, Any] = {"name": name, "namespace": "b", "uid": name, "annotations": {BOUND: "yes"} if bound else {}}
    if owner:
        named = {"apiVersion": "v1", "kind": "Pod", "name": owner, "uid": "u", "controller": True}
        meta["ownerReferences"] = [named]
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "late",
        "volumeName": bound,
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return codec.convert({"metadata": meta, "spec": spec}, PersistentVolumeClaim)


def _volumes(size: int, *, phase: str = "Available") -> list[PersistentVolume]:
    """All are for one host, and none of them has what a claim asks for."""
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n"]}]}
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "late",
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
    }
    return [
        codec.convert({"metadata": {"name": f"pv{n}"}, "spec": spec, "status": {"phase": phase}}, PersistentVolume)
        for n in range(size)
    ]


def _lookup(claims: list[PersistentVolumeClaim], volumes: list[PersistentVolume]) -> ClaimLookup:
    by_name = {claim.metadata.name: claim for claim in claims}
    volume_of = {volume.metadata.name: volume for volume in volumes}
    return ClaimLookup(
        claim=lambda _, name: by_name.get(name),
        storage_class=lambda _: STORAGE,
        volume=volume_of.get,
        volumes=lambda: volumes,
    )


def _bound(size: int) -> Work:
    pod, claims = _pod(size), _lookup([_claim(f"c{n}", bound=f"pv{n}") for n in range(size)], [])
    return lambda: objection(pod, claims)


def _own(size: int) -> Work:
    pod = _ephemeral(size)
    claims = _lookup([_claim(f"a-v{n}", bound=f"pv{n}", owner="a") for n in range(size)], [])
    return lambda: objection(pod, claims)


def _rules(phase: str) -> Any:
    def make(size: int) -> Work:
        pod, claims = _pod(size), _lookup([_claim(f"c{n}") for n in range(size)], _volumes(MANY, phase=phase))
        return lambda: volume_rules(pod, claims)

    return make


def _one_claim(size: int) -> Work:
    """Mounted so many times."""
    spec = {"volumes": [{"name": f"v{n}", "persistentVolumeClaim": {"claimName": "c0"}} for n in range(size)]}
    pod = codec.convert({"metadata": {"name": "a", "namespace": "b"}, "spec": spec}, Pod)
    claims = _lookup([_claim("c0")], _volumes(MANY))
    return lambda: volume_rules(pod, claims)


def _refused(size: int) -> Work:
    pod, claims = _pod(size), _lookup([_claim(f"c{n}") for n in range(size)], _volumes(size))
    rules = volume_rules(pod, claims)
    assert rules is not None
    node = NodeInfo(codec.convert({"metadata": {"name": "n", "labels": {"kubernetes.io/hostname": "n"}}}, Node))
    return lambda: rules.refuse(node)


def _of_all(size: int) -> Work:
    claim, volumes = _claim("c"), _volumes(size, phase="Bound")
    return lambda: unbound(claim, volumes, None, None)


class _Pods:
    """The client and the informer of a namespace in which no pod mounts the claim."""

    def __init__(self, pods: list[Pod]) -> None:
        self.items = pods

    def of(self, _: object) -> "_Pods":
        return self

    def by_index(self, *_: object) -> list[Pod]:
        return self.items

    def add_index(self, *_: object) -> None: ...

    def add_handler(self, **_: object) -> None: ...

    async def list(self, *_: object) -> "_Pods":
        return self


def _users(size: int) -> Work:
    pods: Any = _Pods([_pod(MOST_VOLUMES)] * size)
    protection = VolumeProtection(pods, PersistentVolumeClaim, informers=pods, clock=FakeClock())
    claim = _claim("c")
    return lambda: protection._in_use(claim)


CLAIMS: Mapping[str, tuple[Shape, ...]] = {
    "decide.placement.volumes:objection": (
        Shape("bound claims", MOST_VOLUMES, _bound),
        Shape("claims of its own", MOST_VOLUMES, _own),
    ),
    "decide.placement.volumes:volume_rules": (
        Shape("claims of free volumes", MOST_VOLUMES, _rules("Available")),
        Shape("claims of taken volumes", MOST_VOLUMES, _rules("Bound")),
        Shape("one claim many times", MOST_VOLUMES, _one_claim),
    ),
    "decide.placement.volumes:VolumeRules.refuse": (Shape("claims and volumes", MOST_VOLUMES, _refused),),
    "decide.workload.unbound_claims:unbound": (Shape("volumes", 50_000, _of_all),),
    "controllers.volumes:VolumeProtection": (Shape("pods", 1_000, _users),),
}
