"""The identity of a stateful pod: name, labels, host name, claims."""

import re

from msgspec.structs import replace

from podfit.api.apps.v1.statefulsets import StatefulSet
from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.pods.templates import PodTemplateSpec
from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.pods.volumes import PersistentVolumeClaimVolumeSource, Volume
from podfit.api.meta.v1.types import LabelSelector, ObjectMeta
from podfit.decide.workload.history import HASH
from podfit.decide.workload.kinds import replicas
from podfit.decide.workload.pods import from_template

NAME, INDEX = "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"
_NUMBERED = re.compile(r"(.*)-([0-9]{1,10})", re.DOTALL)


def ordinal(pod: Pod) -> int:
    """The number in its name; -1 without one."""
    found = _NUMBERED.fullmatch(pod.metadata.name)
    return int(found[2]) if found else -1


def is_member(owner: StatefulSet, pod: Pod) -> bool:
    """Whether it has the name of one of the set's pods."""
    found = _NUMBERED.fullmatch(pod.metadata.name)
    return found is not None and found[1] == owner.metadata.name


def first(owner: StatefulSet) -> int:
    return owner.spec.ordinals.start if owner.spec.ordinals is not None else 0


def size(owner: StatefulSet) -> int:
    return replicas(owner.spec.replicas)


def is_wanted(owner: StatefulSet, pod: Pod) -> bool:
    return first(owner) <= ordinal(pod) < first(owner) + size(owner)


def made(owner: StatefulSet, template: PodTemplateSpec, revision: str, number: int) -> Pod:
    """The pod of this number from the template of this revision."""
    name = f"{owner.metadata.name}-{number}"
    pod = from_template(template, owner)
    meta = replace(pod.metadata, name=name, namespace=owner.metadata.namespace)
    meta = replace(meta, labels={**meta.labels, **_labels(name, number), HASH: revision})
    spec = replace(pod.spec, hostname=name, subdomain=owner.spec.service_name, volumes=_volumes(owner, pod, number))
    return replace(pod, metadata=meta, spec=spec)


def _labels(name: str, number: int) -> dict[str, str]:
    return {NAME: name, INDEX: str(number)}


def claim_name(owner: StatefulSet, template: PersistentVolumeClaim, number: int) -> str:
    return f"{template.metadata.name}-{owner.metadata.name}-{number}"


def _volumes(owner: StatefulSet, pod: Pod, number: int) -> tuple[Volume, ...]:
    """Its claims, and the template's volumes of other names."""
    own = {
        template.metadata.name: Volume(
            name=template.metadata.name,
            persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name=claim_name(owner, template, number)),
        )
        for template in owner.spec.volume_claim_templates
    }
    return (*own.values(), *(volume for volume in pod.spec.volumes if volume.name not in own))


def claims_of(owner: StatefulSet, number: int) -> list[PersistentVolumeClaim]:
    """The claims of the pod of this number, as they are made."""
    labels = (owner.spec.selector or LabelSelector()).match_labels
    return [
        replace(
            template,
            metadata=ObjectMeta(
                name=claim_name(owner, template, number),
                namespace=owner.metadata.namespace,
                labels={**template.metadata.labels, **labels},
                annotations=template.metadata.annotations,
                finalizers=template.metadata.finalizers,
            ),
        )
        for template in owner.spec.volume_claim_templates
    ]


def relabelled(pod: Pod) -> Pod | None:
    """The pod with the labels of its name, where somebody took them; None when it has them."""
    labels = _labels(pod.metadata.name, ordinal(pod))
    if labels.items() <= pod.metadata.labels.items():
        return None
    return replace(pod, metadata=replace(pod.metadata, labels={**pod.metadata.labels, **labels}))
