"""Equivalence classes of pods: what one pod of a class is told of a node holds for the others.

That holds where a node is judged by itself. Rules between pods (affinity, spread) and nominations look further: such
pods are of no class, and are decided about one by one.
"""

from collections.abc import Iterable, Sequence

from podfit.api.meta import codec
from podfit.decide.placement.node_filters import needed_features
from podfit.decide.placement.pod_affinity import required_anti_affinity
from podfit.decide.placement.score import image_names, preferences
from podfit.decide.placement.spread import constraints
from podfit.decide.placement.view import NamespaceLabels, Resident


def has_pod_rules(subject: Resident) -> bool:
    """Whether the pod itself has rules about others that say where it may go, or near whom it would be."""
    return subject.is_choosy or bool(constraints(subject, "DoNotSchedule"))


def is_selected_by_others(subject: Resident, choosy: Iterable[Resident], namespaces: NamespaceLabels) -> bool:
    """Whether a pod that runs has a rule about this one."""
    pod = subject.pod
    for resident in choosy:
        if any(term.matches(pod, namespaces) for term in required_anti_affinity(resident.pod)):
            return True
        if any(matches(pod, namespaces) for _, _, matches in preferences(resident.pod, placed=True)):
            return True
    return False


def kind_of(subject: Resident) -> bytes:
    """Equal for pods of which each node is judged alike: all that filters and scores of one node read of a pod."""
    spec = subject.pod.spec
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    parts: Sequence[object] = (
        subject.requests,
        subject.weight,
        sorted(subject.ports),
        subject.priority,
        image_names(subject.pod),
        spec.tolerations,
        spec.node_selector,
        affinity,
        sorted(needed_features(subject.pod)),
    )
    return codec.encode(parts)
