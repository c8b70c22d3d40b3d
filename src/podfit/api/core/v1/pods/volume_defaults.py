"""Defaults of volume sources. The remote storage kinds are only stored, yet clients compare what they read back."""

import re

from podfit.api.core.v1.persistentvolumes.claims import (
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimTemplate,
    VolumeResourceRequirements,
)
from podfit.api.core.v1.pods.volumes import (
    ConfigMapVolumeSource,
    DownwardAPIProjection,
    DownwardAPIVolumeFile,
    DownwardAPIVolumeSource,
    EmptyDirVolumeSource,
    EphemeralVolumeSource,
    ImageVolumeSource,
    ProjectedVolumeSource,
    SecretVolumeSource,
    ServiceAccountTokenProjection,
    Volume,
    VolumeProjection,
)
from podfit.api.core.v1.references import ObjectFieldSelector
from podfit.api.core.v1.storage_sources import (
    AzureDiskVolumeSource,
    HostPathVolumeSource,
    ISCSIVolumeSource,
    RBDVolumeSource,
    ScaleIOVolumeSource,
)
from podfit.api.meta.defaulting import change, fill, inside, rounded
from podfit.core.quantity import ZERO

_FILE_MODE = 0o644
_PART = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*+(?<!-))"
_DOMAIN = re.compile(rf"(?:{_PART}(?:\.{_PART})*+|\[[a-fA-F0-9:]++\])(?::[0-9]++)?", re.ASCII)
_IMAGE = re.compile(
    r"(?P<path>[a-z0-9]++(?:(?:\.|__?|-++)[a-z0-9]++)*+(?:/[a-z0-9]++(?:(?:\.|__?|-++)[a-z0-9]++)*+)*+)"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?(?P<digest>@(?:sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128}))?",
    re.ASCII,
)
_LONGEST_NAME = 255
_IDENTIFIER = re.compile(r"[a-f0-9]{64}")
_NO_SOURCE = Volume()


def pull_policy(image: str) -> str:
    """Always for `:latest` and for an image without tag and digest; not for what is no name of an image, as upstream,
    whose parser then has no tag."""
    parts = _parts(image)
    if parts is None:
        return "IfNotPresent"
    tag, digest = parts["tag"], parts["digest"]
    return "Always" if tag == "latest" or (not tag and not digest) else "IfNotPresent"


def _parts(image: str) -> re.Match[str] | None:
    """By the grammar of distribution's references."""
    first, slash, rest = image.partition("/")
    has_domain = bool(slash) and (any(letter in first for letter in ".:") or first == "localhost" or not _is_low(first))
    if has_domain and not _DOMAIN.fullmatch(first):
        return None
    found = _IMAGE.fullmatch(rest if has_domain else image)
    domain = first if has_domain else "docker.io"
    if found is None or _IDENTIFIER.fullmatch(image) or len(domain) + 1 + len(found["path"]) > _LONGEST_NAME:
        return None
    return found


def _is_low(text: str) -> bool:
    return text == text.lower()


def field_ref(ref: ObjectFieldSelector) -> ObjectFieldSelector:
    return fill(ref, api_version="v1")


def default_volume(volume: Volume) -> Volume:
    if change(volume, name="") == _NO_SOURCE:
        return change(volume, empty_dir=EmptyDirVolumeSource())
    return inside(
        volume,
        azure_disk=default_azure_disk,
        config_map=_files,
        downward_api=_downward,
        empty_dir=_empty_dir,
        ephemeral=_ephemeral,
        host_path=default_host_path,
        image=_image,
        iscsi=_iscsi,
        projected=_projected,
        rbd=_rbd,
        scale_io=_scale_io,
        secret=_files,
    )


def default_azure_disk(source: AzureDiskVolumeSource) -> AzureDiskVolumeSource:
    return fill(source, caching_mode="ReadWrite", kind="Shared", fs_type="ext4", read_only=False)


def _files(source: ConfigMapVolumeSource | SecretVolumeSource) -> ConfigMapVolumeSource | SecretVolumeSource:
    return fill(source, default_mode=_FILE_MODE)


def _downward(source: DownwardAPIVolumeSource) -> DownwardAPIVolumeSource:
    return inside(fill(source, default_mode=_FILE_MODE), items=_downward_file)


def _downward_file(item: DownwardAPIVolumeFile) -> DownwardAPIVolumeFile:
    return inside(item, field_ref=field_ref, resource_field_ref=lambda ref: fill(ref, divisor=ZERO))


def _empty_dir(source: EmptyDirVolumeSource) -> EmptyDirVolumeSource:
    return inside(source, size_limit=lambda size: size.rounded_to_milli())


def _ephemeral(source: EphemeralVolumeSource) -> EphemeralVolumeSource:
    return inside(source, volume_claim_template=_claim_template)


def _claim_template(template: PersistentVolumeClaimTemplate) -> PersistentVolumeClaimTemplate:
    return inside(template, spec=default_claim)


def default_claim(spec: PersistentVolumeClaimSpec) -> PersistentVolumeClaimSpec:
    return inside(fill(spec, volume_mode="Filesystem"), resources=_claim_resources)


def _claim_resources(resources: VolumeResourceRequirements) -> VolumeResourceRequirements:
    return inside(resources, limits=rounded, requests=rounded)


def default_host_path(source: HostPathVolumeSource) -> HostPathVolumeSource:
    return fill(source, type="")


def _image(source: ImageVolumeSource) -> ImageVolumeSource:
    return fill(source, pull_policy=pull_policy(source.reference))


def _iscsi(source: ISCSIVolumeSource) -> ISCSIVolumeSource:
    return fill(source, iscsi_interface="default")


def _projected(source: ProjectedVolumeSource) -> ProjectedVolumeSource:
    return inside(fill(source, default_mode=_FILE_MODE), sources=_projection)


def _projection(source: VolumeProjection) -> VolumeProjection:
    return inside(source, downward_api=_downward_items, service_account_token=_token)


def _downward_items(source: DownwardAPIProjection) -> DownwardAPIProjection:
    return inside(source, items=_downward_file)


def _token(source: ServiceAccountTokenProjection) -> ServiceAccountTokenProjection:
    return fill(source, expiration_seconds=3600)


def _rbd(source: RBDVolumeSource) -> RBDVolumeSource:
    return fill(source, pool="rbd", user="admin", keyring="/etc/ceph/keyring")


def _scale_io(source: ScaleIOVolumeSource) -> ScaleIOVolumeSource:
    return fill(source, storage_mode="ThinProvisioned", fs_type="xfs")
