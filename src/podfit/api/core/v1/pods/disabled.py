"""Fields that are dropped from a new pod because their feature gate is off."""

from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.pods.volumes import ProjectedVolumeSource, Volume, VolumeProjection
from podfit.api.meta.defaulting import change, inside


def without_disabled(pod: Pod) -> Pod:
    """The same pod without trust bundles and certificates in its projected volumes."""
    if not any(map(_asks, pod.spec.volumes)):
        return pod
    return inside(pod, spec=lambda spec: inside(spec, volumes=_volume))


def _asks(volume: Volume) -> bool:
    sources = volume.projected.sources if volume.projected is not None else ()
    return any(source.cluster_trust_bundle is not None or source.pod_certificate is not None for source in sources)


def _volume(volume: Volume) -> Volume:
    return inside(volume, projected=_projected)


def _projected(source: ProjectedVolumeSource) -> ProjectedVolumeSource:
    return inside(source, sources=_projection)


def _projection(projection: VolumeProjection) -> VolumeProjection:
    return change(projection, cluster_trust_bundle=None, pod_certificate=None)
