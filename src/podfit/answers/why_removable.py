"""Explains whether a node could go: what keeps it, by which rule, and where its pods would run instead.

The rules are those of upstream's cluster autoscaler with its defaults (`decide.capacity.removal`); there need not be
an autoscaler in the cluster.
"""

from datetime import datetime

import msgspec

from podfit.answers.removal_facts import RemovalFacts
from podfit.answers.scheduling import claim_lookup, node_views
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.owners import controller_of
from podfit.decide.capacity.drain import DrainContext
from podfit.decide.capacity.removal import Obstacle, Removal, Surroundings, Templates, removal
from podfit.decide.capacity.utilization import THRESHOLD

REMOVABLE, NOT_REMOVABLE, NOT_KNOWN = "removable", "not removable", "not known"


class KeptBy(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One thing that keeps the node; `pod` is empty of what the node itself is."""

    reason: str
    because: str
    pod: str = ""


class MovedPod(msgspec.Struct, frozen=True):
    pod: str
    to: str


class NodeUtilization(msgspec.Struct, frozen=True):
    """Shares of what the node has for pods: 0.5 is half."""

    cpu: float
    memory: float
    threshold: float = THRESHOLD


class RemovableWhy(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`verdict` is removable, not removable or not known; of the last `missing` says what was not to be read.

    `moves` are the pods that have a place elsewhere, in the order in which they are to be evicted; `daemon_set_pods`
    end with the node.
    """

    node: str
    verdict: str
    utilization: NodeUtilization | None = None
    kept_by: tuple[KeptBy, ...] = ()
    moves: tuple[MovedPod, ...] = ()
    daemon_set_pods: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        return self.verdict == REMOVABLE


def why_removable(facts: RemovalFacts, now: datetime) -> RemovableWhy:
    """With something missing the answer is that it is not known, beside what keeps the node as far as was read."""
    found = _removal(facts, now)
    verdict = NOT_KNOWN if facts.missing else NOT_REMOVABLE if found.obstacles else REMOVABLE
    share = found.share
    return RemovableWhy(
        node=facts.node.metadata.name,
        verdict=verdict,
        utilization=None if share is None else NodeUtilization(share.cpu, share.memory),
        kept_by=tuple(map(_kept_by, found.obstacles)),
        moves=tuple(MovedPod(_full_name(move.pod), move.node) for move in found.moves),
        daemon_set_pods=tuple(map(_full_name, found.plan.daemon_set)),
        missing=facts.missing,
        notes=("disruption budgets let its pods go only one after another",) if found.one_by_one else (),
    )


def _removal(facts: RemovalFacts, now: datetime) -> Removal:
    cluster, gates = facts.cluster, facts.age.gates
    context = DrainContext(
        now=now,
        budgets=facts.budgets.known,
        controllers={key: controller.spec.replicas for key, controller in facts.controllers.items()},
    )
    around = Surroundings(
        views=node_views(cluster, gates),
        namespaces=cluster.labels,
        claims=claim_lookup(cluster),
        default_spread=cluster.selectors.default_spread,
        gates=gates,
    )
    return removal(facts.node, facts.pods, context, None if facts.missing else around, _templates(facts))


def _templates(facts: RemovalFacts) -> Templates:
    owned = ((pod, controller_of(pod.metadata)) for pod in facts.pods)
    keys = ((pod, (owner.kind, pod.metadata.namespace, owner.name)) for pod, owner in owned if owner is not None)
    return {
        (pod.metadata.namespace, pod.metadata.name): facts.controllers[key].spec.template.spec
        for pod, key in keys
        if key in facts.controllers
    }


def _kept_by(obstacle: Obstacle) -> KeptBy:
    return KeptBy(obstacle.reason, obstacle.text, _full_name(obstacle.pod) if obstacle.pod is not None else "")


def _full_name(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"
