"""Controller revisions of stateful sets and daemon sets, so that a rollout can be undone.

A revision's data is a strategic merge patch that puts the template back; `kubectl rollout undo` sends it as it is.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from podfit.api.apps.v1.daemonsets import ControllerRevision, DaemonSet
from podfit.api.apps.v1.statefulsets import StatefulSet
from podfit.api.core.v1.pods.templates import PodTemplateSpec
from podfit.api.meta.codec import convert, to_dict
from podfit.api.meta.owners import reference_to
from podfit.api.meta.v1.types import ObjectMeta

HASH = "controller-revision-hash"
"""The label of a pod that names its revision."""
_PATCH = "$patch"


def data_of(template: PodTemplateSpec) -> dict[str, Any]:
    """The data with the keys of all objects in order, as Go writes a map: some clients compare bytes, as upstream's own
    tests.

    Whether a revision is that of a template is asked of the values: what an earlier podfit wrote is in another order.
    """
    data: dict[str, Any] = {"spec": {"template": {**to_dict(template), _PATCH: "replace"}}}
    ordered: dict[str, Any] = msgspec.to_builtins(data, order="sorted")
    return ordered


def template_in(revision: ControllerRevision) -> PodTemplateSpec:
    """Raises ValueError for data that is no template, as when somebody wrote it by hand."""
    spec = revision.data.get("spec", {}) if isinstance(revision.data, dict) else {}
    template = spec.get("template") if isinstance(spec, dict) else None
    if not isinstance(template, dict):
        raise ValueError(f"revision {revision.metadata.name} has no template")
    return convert({key: value for key, value in template.items() if key != _PATCH}, PodTemplateSpec)


def templates_in(revisions: Iterable[ControllerRevision], label: str = "") -> dict[str, PodTemplateSpec]:
    """Templates by the name of the revision, or by the value of one of its labels; what is no template is left out."""
    found = {}
    for revision in revisions:
        meta = revision.metadata
        try:
            found[meta.labels.get(label, "") if label else meta.name] = template_in(revision)
        except ValueError:
            continue
    return found


def in_order(revisions: Iterable[ControllerRevision]) -> list[ControllerRevision]:
    """Oldest first."""
    return sorted(
        revisions,
        key=lambda revision: (revision.revision, revision.metadata.creation_timestamp or "", revision.metadata.name),
    )


def next_number(revisions: Sequence[ControllerRevision]) -> int:
    return max((revision.revision for revision in revisions), default=0) + 1


def named(owner: StatefulSet | DaemonSet, digest: str, number: int, labels: Mapping[str, str]) -> ControllerRevision:
    """The revision of the owner's present template; `labels` beside those of its pods."""
    meta, template = owner.metadata, owner.spec.template
    return ControllerRevision(
        metadata=ObjectMeta(
            name=f"{meta.name}-{digest}",
            namespace=meta.namespace,
            labels={**template.metadata.labels, **labels},
            annotations=dict(meta.annotations),
            owner_references=(reference_to(owner),),
        ),
        data=data_of(template),
        revision=number,
    )


def superfluous_of_daemons(
    old: Sequence[ControllerRevision], limit: int | None, in_use: Iterable[str]
) -> list[ControllerRevision]:
    """The oldest of `old` beyond the limit that no pod has; `in_use` are hashes of pods, which stay but count."""
    kept = set(in_use)
    too_many = max(0, len(old) - (10 if limit is None else limit))
    return [revision for revision in in_order(old) if revision.metadata.labels.get(HASH, "") not in kept][:too_many]


def superfluous(
    revisions: Sequence[ControllerRevision], limit: int | None, in_use: Iterable[str]
) -> list[ControllerRevision]:
    """The oldest beyond the limit; `in_use` are names that stay and do not count."""
    kept = set(in_use)
    others = [
        controller_revision
        for controller_revision in in_order(revisions)
        if controller_revision.metadata.name not in kept
    ]
    return others[: max(0, len(others) - (10 if limit is None else limit))]
