"""Workload selectors: what selects a pod, followed by informers, for the constraints that spread it by default.

Services are kept under one of the labels that they select by, so a pod is compared with few of them.
"""

from collections.abc import Iterator, Mapping, Sequence

from podfit.api.apps.v1.deployments import ReplicaSet
from podfit.api.apps.v1.statefulsets import StatefulSet
from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.replication.types import ReplicationController
from podfit.api.core.v1.services.types import Service
from podfit.api.meta.owners import ObjectIdentity, identity_of
from podfit.client.informer import Informer
from podfit.client.informers import Informers
from podfit.core.selectors import Requirement
from podfit.decide.placement.default_spread import DefaultSpread, SpreadDefaulting, default_spread, owner_of, selects
from podfit.decide.workload.kinds import selection

_Label = tuple[str, str, str]
"""Namespace, key, value."""
Followed = Informer[Service] | Informer[ReplicaSet] | Informer[StatefulSet] | Informer[ReplicationController]


class WorkloadSelectors:
    def __init__(self, informers: Informers) -> None:
        self._services: dict[_Label, dict[str, Mapping[str, str]]] = {}
        self._owners: dict[ObjectIdentity, tuple[Requirement, ...]] = {}
        services = informers.of(Service)
        services.add_handler(add=self.service_set, update=self.service_updated, delete=self.service_deleted)
        sets = informers.of(ReplicaSet)
        sets.add_handler(add=self.owner_set, update=lambda _, new: self.owner_set(new), delete=self.owner_deleted)
        stateful = informers.of(StatefulSet)
        stateful.add_handler(add=self.owner_set, update=lambda _, new: self.owner_set(new), delete=self.owner_deleted)
        controllers = informers.of(ReplicationController)
        controllers.add_handler(
            add=self.owner_set, update=lambda _, new: self.owner_set(new), delete=self.owner_deleted
        )
        self.informers: Sequence[Followed] = (services, sets, stateful, controllers)

    def default_spread(self, pod: Pod, defaulting: SpreadDefaulting) -> DefaultSpread | None:
        """The spread as things are now; None for a pod that names constraints, or that nothing selects."""
        owner = owner_of(pod)
        return default_spread(
            pod, defaulting, self._selecting(pod), self._owners.get(owner, ()) if owner is not None else ()
        )

    def service_set(self, service: Service) -> None:
        if (label := _label(service)) is not None:
            self._services.setdefault(label, {})[service.metadata.name] = service.spec.selector

    def service_updated(self, old: Service, new: Service) -> None:
        if old.spec.selector != new.spec.selector:
            self.service_deleted(old)
            self.service_set(new)

    def service_deleted(self, service: Service) -> None:
        if (label := _label(service)) is not None:
            del self._services[label][service.metadata.name]
            if not self._services[label]:
                del self._services[label]

    def owner_set(self, owner: ReplicaSet | StatefulSet | ReplicationController) -> None:
        """Only a ReplicationController can select by something else later."""
        key = identity_of(owner)
        if isinstance(owner, ReplicationController) or key not in self._owners:
            self._owners[key] = selection(owner.spec.selector) or ()

    def owner_deleted(self, owner: ReplicaSet | StatefulSet | ReplicationController) -> None:
        self._owners.pop(identity_of(owner), None)

    def _selecting(self, pod: Pod) -> Iterator[Mapping[str, str]]:
        for label in pod.metadata.labels.items():
            for selector in self._services.get((pod.metadata.namespace, *label), {}).values():
                if selects(selector, pod):
                    yield selector


def _label(service: Service) -> _Label | None:
    """None for one that selects nothing."""
    first = min(service.spec.selector.items(), default=None)
    return None if first is None else (service.metadata.namespace, *first)
