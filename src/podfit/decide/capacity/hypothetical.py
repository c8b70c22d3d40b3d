"""The hypothetical cluster: nodes as they are, and nodes and pods that could be there.

Whether a pod fits is the scheduler's own decision (`decide.placement`); what is decided here is only what has to be
asked again. A pod that has no rules about others, and that nobody has a rule about, is judged by each node alone, and a
node that refused one like it refuses it still: nodes only get fuller.
"""

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from podfit.api.core.v1.pods.types import Pod
from podfit.core.features import DEFAULT_GATES, FeatureGates
from podfit.decide.placement.default_spread import HOSTNAME
from podfit.decide.placement.equivalence import has_pod_rules, is_selected_by_others, kind_of
from podfit.decide.placement.place import NO_NAMESPACES, pre_filter, refuse, refuse_alone
from podfit.decide.placement.view import NamespaceLabels, NodeInfo, Refusal, Resident
from podfit.decide.placement.volumes import NO_CLAIMS, ClaimLookup, claims_of, objection, volume_rules


class HypotheticalCluster:
    """Nodes in the order in which they came, those that are there first; changed by `add` and `put` alone."""

    def __init__(
        self,
        views: Iterable[NodeInfo] = (),
        *,
        namespaces: NamespaceLabels = NO_NAMESPACES,
        claims: ClaimLookup = NO_CLAIMS,
        gates: FeatureGates = DEFAULT_GATES,
    ) -> None:
        self.views = list(views)
        self._namespaces, self._claims, self._gates = namespaces, claims, gates
        self._choosy = [resident for view in self.views for resident in view.choosy]
        self._refused: dict[bytes, dict[int, Refusal]] = {}
        self._spoken_of: dict[tuple[str, frozenset[tuple[str, str]]], tuple[int, bool]] = {}
        self._refused_up_to: dict[bytes, int] = {}

    def copy(self) -> "HypotheticalCluster":
        """The same nodes and pods, to be changed apart from these."""
        return HypotheticalCluster(self.views, namespaces=self._namespaces, claims=self._claims, gates=self._gates)

    def newcomer(self, pod: Pod) -> Resident:
        """The pod as it waits for a node."""
        return Resident.of(pod, gates=self._gates, placed=False)

    def add(self, template: NodeInfo, name: str) -> int:
        """A new node like the template, with the pods that it carries; answers its index."""
        labels = {**template.node.metadata.labels, HOSTNAME: name}
        node = replace(template.node, metadata=replace(template.node.metadata, name=name, labels=labels, uid=name))
        view = NodeInfo.of(node, (_moved(resident, name) for resident in template.residents))
        self._choosy.extend(view.choosy)
        self.views.append(view)
        return len(self.views) - 1

    def put(self, newcomer: Resident, index: int) -> None:
        """The pod runs there from now on."""
        there = _moved(newcomer, self.views[index].name)
        if there.is_choosy:
            self._choosy.append(there)
        self.views[index] = self.views[index].plus(there)

    def first_fit(self, newcomer: Resident) -> int | None:
        """The first node that takes the pod. Nodes that refused one like it are not asked again, nor looked through."""
        ask = self.asker(newcomer)
        if not self._is_judged_alone(newcomer):
            return next((index for index in range(len(self.views)) if ask(index) is None), None)
        kind = kind_of(newcomer)
        start = self._refused_up_to.get(kind, 0)
        index = next((index for index in range(start, len(self.views)) if ask(index) is None), None)
        self._refused_up_to[kind] = len(self.views) if index is None else index
        return index

    def asker(self, newcomer: Resident) -> Callable[[int], Refusal | None]:
        """Asks nodes by index, as the cluster stands now, why they refuse the pod."""
        if not self._is_judged_alone(newcomer):
            return self._ask_all(newcomer)
        known = self._refused.setdefault(kind_of(newcomer), {})

        def ask(index: int) -> Refusal | None:
            if index not in known:
                refusal = refuse_alone(newcomer, self.views[index])
                if refusal is None:
                    return None
                known[index] = refusal
            return known[index]

        return ask

    def _is_judged_alone(self, newcomer: Resident) -> bool:
        pod = newcomer.pod
        if claims_of(pod) or has_pod_rules(newcomer):
            return False
        key = pod.metadata.namespace, frozenset(pod.metadata.labels.items())
        asked, selected = self._spoken_of.get(key, (0, False))  # who came since then is asked, nobody twice
        selected = selected or is_selected_by_others(newcomer, self._choosy[asked:], self._namespaces)
        self._spoken_of[key] = len(self._choosy), selected
        return not selected

    def _ask_all(self, newcomer: Resident) -> Callable[[int], Refusal | None]:
        pod, namespaces = newcomer.pod, self._namespaces
        if problem := objection(pod, self._claims):
            missing = Refusal("VolumeBinding", (problem,), final=True)
            return lambda _: missing
        surroundings, volumes = pre_filter(newcomer, self.views, namespaces), volume_rules(pod, self._claims)
        return lambda index: refuse(newcomer, self.views[index], self.views, surroundings, namespaces, volumes)


def _moved(resident: Resident, node: str) -> Resident:
    return replace(resident, pod=replace(resident.pod, spec=replace(resident.pod.spec, node_name=node)))
