"""The objects that a pod or a persistent volume refers to by name."""

from collections.abc import Iterator

from podfit.api.core.v1.persistentvolumes.types import PersistentVolume
from podfit.api.core.v1.pods.aggregate import with_ephemeral
from podfit.api.core.v1.pods.static_pods import is_mirror
from podfit.api.core.v1.pods.types import Pod, PodSpec
from podfit.api.core.v1.pods.volumes import Volume, VolumeProjection
from podfit.decide.pod.volume_claims import claim_of

_KUBELET_SECRETS = ("secret_ref", "node_publish_secret_ref", "node_stage_secret_ref", "node_expand_secret_ref")
"""Fields of volume sources that name a secret which the kubelet reads; the controllers' secrets are not among them."""


def secrets_of(spec: PodSpec) -> set[str]:
    names = {ref.name for ref in spec.image_pull_secrets}
    for volume in spec.volumes:
        names |= set(_volume_secrets(volume))
    for container in with_ephemeral(spec):
        names |= {source.secret_ref.name for source in container.env_from if source.secret_ref}
        keys = (variable.value_from.secret_key_ref for variable in container.env if variable.value_from)
        names |= {key.name for key in keys if key}
    return names - {""}


def config_maps_of(spec: PodSpec) -> set[str]:
    names = set()
    for volume in spec.volumes:
        if volume.config_map:
            names.add(volume.config_map.name)
        if volume.projected:
            names |= {source.config_map.name for source in volume.projected.sources if source.config_map}
    for container in with_ephemeral(spec):
        names |= {source.config_map_ref.name for source in container.env_from if source.config_map_ref}
        keys = (variable.value_from.config_map_key_ref for variable in container.env if variable.value_from)
        names |= {key.name for key in keys if key}
    return names - {""}


def claims_of(pod: Pod) -> set[str]:
    return {claim_of(volume, pod) for volume in pod.spec.volumes} - {""}


def accounts_of(spec: PodSpec) -> set[str]:
    return {spec.service_account_name} - {""}


def referred_by(spec: PodSpec) -> str:
    """The first kind of API object that a pod refers to, in upstream's order and words; empty when there is none."""
    kinds = (
        ("serviceaccounts", bool(spec.service_account_name)),
        ("secrets", bool(secrets_of(spec))),
        ("configmaps", bool(config_maps_of(spec))),
        ("resourceclaims", bool(spec.resource_claims)),
    )
    found = (kind for kind, there in kinds if there)
    return next(found, "") or next(filter(None, map(_referred_by_volume, spec.volumes)), "")


def _referred_by_volume(volume: Volume) -> str:
    if volume.csi:
        return "csidrivers (via CSI volumes)"
    if volume.glusterfs:
        return "endpoints (via glusterFS volumes)"
    if volume.persistent_volume_claim:
        return "persistentvolumeclaims"
    if volume.ephemeral:
        return "persistentvolumeclaims (via ephemeral volumes)"
    return next(filter(None, map(_projected, volume.projected.sources if volume.projected else ())), "")


def _projected(source: VolumeProjection) -> str:
    if source.service_account_token:
        return "serviceaccounts (via projected volumes)"
    if source.cluster_trust_bundle:
        return "clustertrustbundles"
    return "podcertificates" if source.pod_certificate else ""


def readable_by_node(pod: Pod, resource: str) -> set[str]:
    """The objects of a resource that a pod makes readable for the kubelet it is bound to.

    A mirror pod gives nothing: its node made it itself.
    """
    if is_mirror(pod):
        return set()
    match resource:
        case "secrets":
            return secrets_of(pod.spec)
        case "configmaps":
            return config_maps_of(pod.spec)
        case "persistentvolumeclaims":
            return claims_of(pod)
        case "serviceaccounts":
            return accounts_of(pod.spec)
    return set()


def volume_secrets(volume: PersistentVolume) -> set[tuple[str, str]]:
    """Namespace and name of the secrets that mounting a bound volume needs; by default they are beside its claim."""
    if volume.spec.claim_ref is None:
        return set()
    beside = volume.spec.claim_ref.namespace
    found = set()
    for name in volume.spec.__struct_fields__:
        source = getattr(volume.spec, name)
        for field in _KUBELET_SECRETS:
            if ref := getattr(source, field, None):
                found.add((getattr(ref, "namespace", "") or beside, ref.name))
        if secret := getattr(source, "secret_name", ""):
            found.add((source.secret_namespace or beside, secret))
    return {(namespace, name) for namespace, name in found if name}


def _volume_secrets(volume: Volume) -> Iterator[str]:
    for name in volume.__struct_fields__:
        source = getattr(volume, name)
        for field in _KUBELET_SECRETS:
            if ref := getattr(source, field, None):
                yield ref.name
        if secret := getattr(source, "secret_name", ""):
            yield secret
    for projection in volume.projected.sources if volume.projected else ():
        if projection.secret:
            yield projection.secret.name
