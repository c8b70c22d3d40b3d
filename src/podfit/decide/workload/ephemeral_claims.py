"""Claims of generic ephemeral volumes: a pod that has such volumes owns a claim for each, named after both."""

from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.pods.volumes import Volume
from podfit.api.meta.owners import reference_to
from podfit.api.meta.v1.types import ObjectMeta
from podfit.decide.pod.volume_claims import claim_of


def ephemeral_volumes(pod: Pod) -> list[Volume]:
    return [volume for volume in pod.spec.volumes if volume.ephemeral is not None]


def claim_for(pod: Pod, volume: Volume) -> PersistentVolumeClaim:
    """The claim of one of the pod's ephemeral volumes, as it is made."""
    template = volume.ephemeral.volume_claim_template if volume.ephemeral is not None else None
    assert template is not None, "an ephemeral volume has a template, says the API server"
    return PersistentVolumeClaim(
        metadata=ObjectMeta(
            name=claim_of(volume, pod),
            namespace=pod.metadata.namespace,
            labels=template.metadata.labels,
            annotations=template.metadata.annotations,
            owner_references=(reference_to(pod),),
        ),
        spec=template.spec,
    )
