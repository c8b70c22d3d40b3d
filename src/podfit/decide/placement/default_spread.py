"""Default topology spread: the constraints of a pod that names none, over the pods of its workload.

Upstream's PodTopologySpread with `defaultingType` System, or List with constraints of a profile's own. Whose pods are
counted follows from what selects the pod: its Services, and the ReplicaSet, ReplicationController or StatefulSet that
controls it. A pod that nothing selects is spread by nothing.
"""

from collections.abc import Iterable, Mapping

import msgspec

from podfit.api.core.v1.pods.affinity import TopologySpreadConstraint
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.owners import ObjectIdentity, controller_named
from podfit.core.selectors import Requirement

HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
SYSTEM_CONSTRAINTS = (
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable="ScheduleAnyway"),
    TopologySpreadConstraint(max_skew=5, topology_key=ZONE, when_unsatisfiable="ScheduleAnyway"),
)
SPREADING_OWNERS = (("apps", "ReplicaSet"), ("apps", "StatefulSet"), ("", "ReplicationController"))
"""Controllers whose selector says which pods belong together: group and kind."""


class SpreadDefaulting(msgspec.Struct, frozen=True):
    """The defaulting of a profile. `of_system`: a node that lacks the label of one constraint is still scored by the
    others."""

    constraints: tuple[TopologySpreadConstraint, ...] = SYSTEM_CONSTRAINTS
    of_system: bool = True


SYSTEM_DEFAULTING = SpreadDefaulting()


class DefaultSpread(msgspec.Struct, frozen=True):
    """What holds for one pod: its profile's constraints, and the selector of its workload."""

    defaulting: SpreadDefaulting
    selector: tuple[Requirement, ...]


def owner_of(pod: Pod) -> ObjectIdentity | None:
    """The controller that says which pods belong together; None for a pod that has no such one."""
    owner = controller_named(pod.metadata)
    return owner if owner is not None and (owner.group, owner.kind) in SPREADING_OWNERS else None


def selects(selector: Mapping[str, str], pod: Pod) -> bool:
    """Whether a Service with this selector selects the pod; one without a selector selects nothing."""
    return bool(selector) and selector.items() <= pod.metadata.labels.items()


def default_selector(services: Iterable[Mapping[str, str]], owner: Iterable[Requirement]) -> tuple[Requirement, ...]:
    """All of it holds for pods of the same workload: the selectors of the pod's `services`, and of its `owner`.

    In an order of its own, so that the same pods are asked about by equal selectors.
    """
    equal = {Requirement(key, "In", (value,)) for selector in services for key, value in selector.items()}
    return tuple(sorted(equal.union(owner), key=lambda wanted: (wanted.key, wanted.operator, wanted.values)))


def default_spread(
    pod: Pod, defaulting: SpreadDefaulting, services: Iterable[Mapping[str, str]], owner: Iterable[Requirement]
) -> DefaultSpread | None:
    """None for a pod that names constraints, or that nothing selects. `services` are those that select it."""
    services, owner = tuple(services), tuple(owner)
    if pod.spec.topology_spread_constraints or not defaulting.constraints or not (services or owner):
        return None
    selector = default_selector(services, owner)
    return DefaultSpread(defaulting, selector) if selector else None
