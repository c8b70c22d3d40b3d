"""The controllers that a VPA may name, decoded only as far as selectors and owners."""

from typing import Any, Protocol

import msgspec

from podfit.api.meta.resource_info import ResourceInfo
from podfit.api.meta.selectors import is_usable
from podfit.api.meta.v1.types import LabelSelector, OwnerReference
from podfit.client.resource import Resource, dynamic
from podfit.core.selectors import Requirement, Selector, from_map
from podfit.decide.workload.kinds import WORKLOADS, selection

NOTHING = Selector((Requirement("", "In"),))
"""Selects no pod."""


class Meta(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    owner_references: tuple[OwnerReference, ...] = ()


class Workload(Protocol):
    @property
    def metadata(self) -> Meta: ...

    def selector(self) -> Selector:
        """ValueError for one that cannot be matched."""

    def wanted(self) -> int | None:
        """How many pods it is to have; None when it does not say."""


class _SelectedSpec(msgspec.Struct, frozen=True):
    selector: LabelSelector | None = None
    replicas: int | None = None


class Selecting(msgspec.Struct, frozen=True):
    """Deployment, ReplicaSet, StatefulSet, Job."""

    metadata: Meta = Meta()
    spec: _SelectedSpec = _SelectedSpec()

    def selector(self) -> Selector:
        found = selection(self.spec.selector)
        if not is_usable(self.spec.selector):
            raise ValueError("its selector cannot be matched")
        return NOTHING if found is None else Selector(found)

    def wanted(self) -> int | None:
        return self.spec.replicas


class _Ready(msgspec.Struct, frozen=True, rename="camel"):
    number_ready: int = 0


class OnNodes(Selecting, frozen=True):
    """DaemonSet: as many as are ready."""

    status: _Ready = _Ready()

    def wanted(self) -> int | None:
        return self.status.number_ready


class _MappedSpec(msgspec.Struct, frozen=True):
    selector: dict[str, str] = msgspec.field(default_factory=dict)
    replicas: int | None = None


class Mapping(msgspec.Struct, frozen=True):
    """ReplicationController."""

    metadata: Meta = Meta()
    spec: _MappedSpec = _MappedSpec()

    def selector(self) -> Selector:
        return Selector(selection(self.spec.selector) or ())

    def wanted(self) -> int | None:
        return self.spec.replicas


class _Labels(msgspec.Struct, frozen=True):
    labels: dict[str, str] = msgspec.field(default_factory=dict)


class _Template(msgspec.Struct, frozen=True):
    metadata: _Labels = _Labels()


class _JobSpec(msgspec.Struct, frozen=True):
    template: _Template = _Template()


class _JobTemplate(msgspec.Struct, frozen=True):
    spec: _JobSpec = _JobSpec()


class _CronSpec(msgspec.Struct, frozen=True, rename="camel"):
    job_template: _JobTemplate = _JobTemplate()


class Repeating(msgspec.Struct, frozen=True):
    """CronJob: its pods bear the labels of its template."""

    metadata: Meta = Meta()
    spec: _CronSpec = _CronSpec()

    def selector(self) -> Selector:
        return from_map(self.spec.job_template.spec.template.metadata.labels)

    def wanted(self) -> int | None:
        return None


class WellKnown(msgspec.Struct, frozen=True):
    """`read_as` has of a kind what is asked here: there may be a hundred thousand of them."""

    kind: str
    api_version: str
    resource: str
    read_as: type[Any] = Selecting

    def followed(self) -> Resource[Any]:
        return Resource(self.info(), self.read_as)

    def info(self) -> ResourceInfo:
        group, _, version = self.api_version.rpartition("/")
        return dynamic(group, version, self.resource).info


_READ_AS: dict[str, type[Any]] = {"DaemonSet": OnNodes, "CronJob": Repeating, "ReplicationController": Mapping}
WELL_KNOWN = tuple(
    WellKnown(known.kind, known.api_version, known.resource, _READ_AS.get(known.kind, Selecting)) for known in WORKLOADS
)
