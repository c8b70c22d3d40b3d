"""Revisions of a deployment: which replica set is new, which are old, and the new one's template.

The replica set with the deployment's present template is the new one, all others are old. Revisions are numbers in an
annotation: the new one's is one more than the highest of the old. A rollback is a template that there was before, so
its replica set becomes the new one, gets a new number and remembers those it had.
"""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from podfit.api.apps.v1.deployments import Deployment, ReplicaSet, ReplicaSetSpec
from podfit.api.core.v1.pods.templates import PodTemplateSpec
from podfit.api.meta.owners import reference_to
from podfit.api.meta.v1.types import LabelSelector, ObjectMeta
from podfit.decide.workload.deployment.sizes import max_surge, wanted
from podfit.decide.workload.hashes import content_hash
from podfit.decide.workload.pods import labelled

HASH = "pod-template-hash"
_PREFIX = "deployment.kubernetes.io/"
REVISION, HISTORY = f"{_PREFIX}revision", f"{_PREFIX}revision-history"
DESIRED, MOST = f"{_PREFIX}desired-replicas", f"{_PREFIX}max-replicas"
_NOT_COPIED = (
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    HISTORY,
    DESIRED,
    MOST,
    "deprecated.deployment.rollback.to",
)
_LONGEST_HISTORY = 2000  # characters
_LARGEST = 2**63


class Sets(msgspec.Struct, frozen=True):
    """The replica sets of a deployment. `new` is not among `old`; it may not be there yet."""

    new: ReplicaSet | None
    old: tuple[ReplicaSet, ...]

    @property
    def all(self) -> tuple[ReplicaSet, ...]:
        return self.old if self.new is None else (*self.old, self.new)

    def with_new(self, new: ReplicaSet) -> "Sets":
        return replace(self, new=new)


def sorted_out(deployment: Deployment, sets: Sequence[ReplicaSet]) -> Sets:
    """The oldest one of the present template is the new one."""
    new = next((replica_set for replica_set in sorted(sets, key=age) if same_template(deployment, replica_set)), None)
    return Sets(
        new, tuple(replica_set for replica_set in sets if new is None or replica_set.metadata.uid != new.metadata.uid)
    )


def age(obj: ReplicaSet) -> tuple[str, str]:
    """Sorts by creation, then name."""
    return obj.metadata.creation_timestamp or "", obj.metadata.name


def same_template(deployment: Deployment, replicas: ReplicaSet) -> bool:
    """But for the hash among the labels."""
    return _unhashed(deployment.spec.template) == _unhashed(replicas.spec.template)


def _unhashed(template: PodTemplateSpec) -> PodTemplateSpec:
    labels = {key: value for key, value in template.metadata.labels.items() if key != HASH}
    return replace(template, metadata=replace(template.metadata, labels=labels))


def revision_of(annotations: Mapping[str, str]) -> int | None:
    """0 without one, None for what is no number."""
    text = annotations.get(REVISION, "")
    if not text:
        return 0
    if not (text.isascii() and text.isdecimal() and len(text) <= 19):
        return None
    return int(text) if int(text) < _LARGEST else None


def next_revision(sets: Sets) -> int:
    return max((revision_of(replica_set.metadata.annotations) or 0 for replica_set in sets.old), default=0) + 1


def made(deployment: Deployment) -> ReplicaSet:
    """The replica set of the present template, without its size and annotations."""
    meta, spec = deployment.metadata, deployment.spec
    digest = content_hash(spec.template, deployment.status.collision_count)
    selector = spec.selector or LabelSelector()
    template = labelled(spec.template, {HASH: digest})
    return ReplicaSet(
        metadata=ObjectMeta(
            name=f"{meta.name}-{digest}",
            namespace=meta.namespace,
            labels=template.metadata.labels,
            owner_references=(reference_to(deployment),),
        ),
        spec=ReplicaSetSpec(
            replicas=0,
            min_ready_seconds=spec.min_ready_seconds,
            selector=replace(selector, match_labels={**selector.match_labels, HASH: digest}),
            template=template,
        ),
    )


def annotated(deployment: Deployment, replicas: ReplicaSet, revision: int, *, exists: bool) -> ReplicaSet:
    """The replica set with the deployment's annotations and its own: the revision and those before, and when it is new
    the sizes."""
    before = replicas.metadata.annotations
    after = {**before, **_copied(deployment.metadata.annotations)}
    last = revision_of(before)
    if last is None:
        return _with(replicas, after)
    if last < revision:
        after[REVISION] = str(revision)
        if REVISION in before:
            after[HISTORY] = _history(before.get(HISTORY, ""), before[REVISION])
    if not exists:
        after |= sizes(deployment)
    return _with(replicas, after)


def sizes(deployment: Deployment) -> dict[str, str]:
    """The annotations by which a change of the deployment's size is told from a rollout."""
    size = wanted(deployment)
    return {DESIRED: str(size), MOST: str(size + max_surge(deployment))}


def sized(deployment: Deployment, replicas: ReplicaSet, size: int) -> ReplicaSet:
    """The replica set with so many pods, and told the deployment's size."""
    changed = _with(replicas, {**replicas.metadata.annotations, **sizes(deployment)})
    return changed if changed.spec.replicas == size else replace(changed, spec=replace(changed.spec, replicas=size))


def numbered(deployment: Deployment, revision: str) -> Deployment:
    """Its own revision is that of its new replica set."""
    meta = deployment.metadata
    if meta.annotations.get(REVISION) == revision:
        return deployment
    return replace(deployment, metadata=replace(meta, annotations={**meta.annotations, REVISION: revision}))


def _with(replicas: ReplicaSet, annotations: dict[str, str]) -> ReplicaSet:
    meta = replicas.metadata
    return (
        replicas
        if meta.annotations == annotations
        else replace(replicas, metadata=replace(meta, annotations=annotations))
    )


def _copied(annotations: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in annotations.items() if key not in _NOT_COPIED}


def _history(before: str, last: str) -> str:
    """The history with the last revision; the oldest go when it becomes too long."""
    numbers = [*filter(None, before.split(",")), last]
    while len(numbers) > 1 and len(",".join(numbers)) > _LONGEST_HISTORY:
        del numbers[0]
    return ",".join(numbers)


def cleanable(deployment: Deployment, old: Sequence[ReplicaSet]) -> list[ReplicaSet]:
    """Old replica sets beyond the limit of history, of which nothing runs."""
    limit = deployment.spec.revision_history_limit
    if limit is None or limit >= 2**31 - 1:
        return []
    staying = [replica_set for replica_set in old if not replica_set.metadata.deletion_timestamp]
    staying.sort(key=lambda replica_set: (revision_of(replica_set.metadata.annotations) or 0, age(replica_set)))
    too_many = staying[: max(0, len(staying) - limit)]
    return [
        replica_set
        for replica_set in too_many
        if not replica_set.status.replicas
        and not replica_set.spec.replicas
        and replica_set.metadata.generation <= replica_set.status.observed_generation
    ]
