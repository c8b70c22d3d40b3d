"""Scores of feasible nodes: upstream's default plugins, each 0 to 100, weighted and summed.

Arithmetic is in whole numbers where upstream's is, since a rounding decides between nodes that are nearly equal.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from podfit.api.core.v1.pods.aggregate import all_containers
from podfit.api.core.v1.pods.types import Pod
from podfit.decide.placement.fit_score import LEAST_ALLOCATED, FitScoring, fit_score
from podfit.decide.placement.node_filters import term_matches, tolerated
from podfit.decide.placement.soft_spread import MOST, spread_evenly
from podfit.decide.placement.terms import term
from podfit.decide.placement.view import NamespaceLabels, NodeInfo, Resident, amounts

DEFAULT_WEIGHTS: Mapping[str, int] = MappingProxyType(
    {
        "NodeResourcesFit": 1,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
    }
)
"""Upstream's default plugins that score, and what each counts for."""
_SMALL_IMAGE, _LARGE_IMAGE = 23 << 20, 1000 << 20  # bytes; below no gain, above no more gain
_HARD_AFFINITY = 1  # what a required affinity of a pod that runs is worth to one that it speaks of


def scores(
    subject: Resident,
    fitting: Sequence[NodeInfo],
    views: Sequence[NodeInfo],
    namespaces: NamespaceLabels,
    weights: Mapping[str, int] = DEFAULT_WEIGHTS,
    *,
    fit: FitScoring = LEAST_ALLOCATED,
) -> list[int]:
    """One number for each of the `fitting` nodes; `views` are all nodes, for what depends on the whole. `weights` names
    every plugin; one that weighs 0 is not asked."""
    pod = subject.pod
    plugins: dict[str, Callable[[], list[int]]] = {
        "NodeResourcesFit": lambda: [fit_score(subject, view, fit) for view in fitting],
        "NodeResourcesBalancedAllocation": lambda: [balance(subject, view) for view in fitting],
        "ImageLocality": lambda: image_scores(pod, fitting, views),
        "TaintToleration": lambda: _inverted([soft_taints(pod, view) for view in fitting]),
        "NodeAffinity": lambda: _relative([node_preference(pod, view) for view in fitting]),
        "PodTopologySpread": lambda: spread_evenly(subject, fitting, views),
        "InterPodAffinity": lambda: inter_pod_affinity(pod, fitting, views, namespaces),
    }
    parts = [(weights[name], plugin()) for name, plugin in plugins.items() if weights[name]]
    return [sum(weight * part[index] for weight, part in parts) for index in range(len(fitting))]


def balance(subject: Resident, view: NodeInfo) -> int:
    """How much the pod evens out the use of CPU and memory; a pod that asks for nothing changes nothing."""
    if not any(subject.requests.values()):
        return 0
    (cpu, memory), (more_cpu, more_memory) = view.used, amounts(subject.requests)
    change = _evenness((cpu + more_cpu, memory + more_memory), view.capacity) - _evenness(view.used, view.capacity)
    return MOST // 2 + (MOST // 2 + change) // 2


def image_scores(pod: Pod, fitting: Sequence[NodeInfo], views: Sequence[NodeInfo]) -> list[int]:
    names = image_names(pod)
    held = holders(names, views)
    return [image_locality(names, view, held, len(views)) for view in fitting]


def image_names(pod: Pod) -> tuple[str, ...]:
    """The image of each container, with a tag."""
    return tuple(_normalized(container.image) for container in all_containers(pod.spec))


def holders(names: Sequence[str], views: Iterable[NodeInfo]) -> Counter[str]:
    """On how many nodes each of these images is."""
    wanted, counts = set(names), Counter[str]()
    for view in views:
        counts.update(wanted.intersection(name for image in view.node.status.images for name in image.names))
    return counts


def image_locality(names: Sequence[str], view: NodeInfo, held: Mapping[str, int], nodes: int) -> int:
    """Bytes of the pod's images that are here already, each by the share of nodes that have it, so that it spreads."""
    here = {name: image.size_bytes for image in view.node.status.images for name in image.names}
    total = sum(here[name] * held[name] // nodes for name in names if name in here)
    top = _LARGE_IMAGE * len(names)
    return MOST * (min(max(total, _SMALL_IMAGE), top) - _SMALL_IMAGE) // (top - _SMALL_IMAGE)


def inter_pod_affinity(
    pod: Pod, fitting: Sequence[NodeInfo], views: Sequence[NodeInfo], namespaces: NamespaceLabels
) -> list[int]:
    """Preferences between pods, the newcomer's and those of the pods that run, spread from lowest to highest."""
    worth = Counter[tuple[str, str]]()
    ours = preferences(pod)
    for view in views:
        for key, weight, matches in ours:
            if key in view.labels:
                alike = sum(matches(resident.pod, namespaces) for resident in view.residents)
                worth[key, view.labels[key]] += weight * alike
        for resident in view.choosy:
            for key, weight, matches in preferences(resident.pod, placed=True):
                if key in view.labels and matches(pod, namespaces):
                    worth[key, view.labels[key]] += weight
    sums = [sum(worth[pair] for pair in view.labels.items()) for view in fitting] if worth else [0] * len(fitting)
    least, most = min(sums), max(sums)
    return [MOST * (total - least) // (most - least) if most > least else 0 for total in sums]


Preference = tuple[str, int, Callable[[Pod, NamespaceLabels], bool]]


def preferences(pod: Pod, *, placed: bool = False) -> list[Preference]:
    affinity, found = pod.spec.affinity, list[Preference]()
    if affinity is None:
        return found
    if affinity.pod_affinity:
        for weighted in affinity.pod_affinity.preferred_during_scheduling_ignored_during_execution:
            wanted = term(pod, weighted.pod_affinity_term)
            found.append((wanted.topology_key, weighted.weight, wanted.matches))
        for required in affinity.pod_affinity.required_during_scheduling_ignored_during_execution if placed else ():
            wanted = term(pod, required)
            found.append((wanted.topology_key, _HARD_AFFINITY, wanted.matches))
    if affinity.pod_anti_affinity:
        for weighted in affinity.pod_anti_affinity.preferred_during_scheduling_ignored_during_execution:
            unwanted = term(pod, weighted.pod_affinity_term)
            found.append((unwanted.topology_key, -weighted.weight, unwanted.matches))
    return found


def soft_taints(pod: Pod, view: NodeInfo) -> int:
    soft = [taint for taint in view.node.spec.taints if taint.effect == "PreferNoSchedule"]
    tolerations = [toleration for toleration in pod.spec.tolerations if toleration.effect in ("", "PreferNoSchedule")]
    return sum(not tolerated(tolerations, taint) for taint in soft)


def node_preference(pod: Pod, view: NodeInfo) -> int:
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    terms = affinity.preferred_during_scheduling_ignored_during_execution if affinity else ()
    return sum(term.weight for term in terms if term_matches(term.preference, view.node))


def local_score(
    subject: Resident,
    view: NodeInfo,
    names: Sequence[str],
    held: Mapping[str, int],
    nodes: int,
    weights: Mapping[str, int],
    *,
    fit: FitScoring,
) -> int:
    """What a node is worth by itself, whatever the others are: room, balance and images, weighted."""
    total = 0
    if weight := weights["NodeResourcesFit"]:
        total += weight * fit_score(subject, view, fit)
    if weight := weights["NodeResourcesBalancedAllocation"]:
        total += weight * balance(subject, view)
    if weight := weights["ImageLocality"]:
        total += weight * image_locality(names, view, held, nodes)
    return total


def relative(count: int, most: int) -> int:
    """A count as a share of the largest."""
    return MOST * count // most if most else count


def _relative(counts: list[int]) -> list[int]:
    most = max(counts)
    return [relative(count, most) for count in counts]


def _inverted(counts: list[int]) -> list[int]:
    return [MOST - share for share in _relative(counts)]


def _evenness(used: tuple[int, int], capacity: tuple[int, int]) -> int:
    """`MOST` where a node has only one of the two."""
    if not all(capacity):
        return MOST
    return int((1 - abs(min(used[0] / capacity[0], 1.0) - min(used[1] / capacity[1], 1.0)) / 2) * MOST)


def _normalized(image: str) -> str:
    """`latest` is what an image without a tag means."""
    return image if ":" in image.rsplit("/", 1)[-1] else f"{image}:latest"
