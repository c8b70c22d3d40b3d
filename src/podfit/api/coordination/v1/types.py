"""coordination.k8s.io/v1: a Lease is how a node shows that it lives."""

from podfit.api.meta.base import MicroTime, Object, Struct, always
from podfit.api.meta.v1.types import ObjectMeta


class LeaseSpec(Struct):
    acquire_time: MicroTime | None = None
    holder_identity: str = ""
    lease_duration_seconds: int | None = None
    lease_transitions: int | None = None
    preferred_holder: str = ""
    renew_time: MicroTime | None = None
    strategy: str = ""


class Lease(Object):
    kind: str = always(default="Lease")
    api_version: str = always(default="coordination.k8s.io/v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    spec: LeaseSpec = always(default=LeaseSpec())
