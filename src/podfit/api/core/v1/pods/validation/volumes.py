"""Volumes of a pod. Sources outside of the node are in `volume_sources`."""

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

from msgspec.structs import replace

from podfit.api.core.v1.persistentvolumes.claim_validation import claim_template
from podfit.api.core.v1.pods.validation.volume_files import (
    downward_file,
    key_to_path,
    keys_to_paths,
    local_path,
    mode,
    no_parents,
    unreserved_path,
)
from podfit.api.core.v1.pods.validation.volume_sources import REMOTE, needed
from podfit.api.core.v1.pods.volumes import (
    ConfigMapProjection,
    ConfigMapVolumeSource,
    DownwardAPIProjection,
    DownwardAPIVolumeSource,
    EmptyDirVolumeSource,
    EphemeralVolumeSource,
    GitRepoVolumeSource,
    ImageVolumeSource,
    PersistentVolumeClaimVolumeSource,
    ProjectedVolumeSource,
    SecretProjection,
    SecretVolumeSource,
    ServiceAccountTokenProjection,
    Volume,
    VolumeProjection,
)
from podfit.api.core.v1.storage_sources import HostPathVolumeSource, ISCSIVolumeSource
from podfit.api.meta.validation import names
from podfit.api.meta.verdict_cache import PassedValues, passed
from podfit.core.fields import FieldError, duplicate, forbidden, invalid, required, unsupported
from podfit.core.quantity import ZERO

_CONFLICT = "conflicting duplicate paths"
_PROJECTED = ("secret", "config_map", "downward_api", "service_account_token")


@passed
def validate_projected(source: ProjectedVolumeSource, path: str) -> list[FieldError]:
    errors = mode(source.default_mode, f"{path}.defaultMode")
    taken: set[str] = set()
    for index, projection in enumerate(source.sources):
        errors += _projection(projection, path, index, taken)
    return errors


def _projection(projection: VolumeProjection, volume: str, index: int, taken: set[str]) -> list[FieldError]:
    """`taken` are the files of the sources before, which those of this one join."""
    path = f"{volume}.sources[{index}]"
    errors = _keys(projection.secret, f"{path}.secret", volume, taken)
    errors += _keys(projection.config_map, f"{path}.configMap", volume, taken)
    errors += _projected_downward(projection.downward_api, f"{path}.downwardAPI", volume, taken)
    errors += _token(projection.service_account_token, f"{path}.serviceAccountToken", volume)
    if sum(getattr(projection, name) is not None for name in _PROJECTED) > 1:
        errors.append(forbidden(path, "may not specify more than 1 volume type per source"))
    return errors


def _take(file: str, shown: str, volume: str, taken: set[str]) -> list[FieldError]:
    if file in taken:
        return [invalid(volume, shown, _CONFLICT)]
    taken.add(file)
    return []


def _keys(
    source: ConfigMapProjection | SecretProjection | None, path: str, volume: str, taken: set[str]
) -> list[FieldError]:
    if source is None:
        return []
    errors = [] if source.name else [required(f"{path}.name")]
    for index, item in enumerate(source.items):
        errors += key_to_path(item, f"{path}.items[{index}]")
        errors += _take(item.path, source.name, volume, taken) if item.path else []
    return errors


def _projected_downward(
    source: DownwardAPIProjection | None, path: str, volume: str, taken: set[str]
) -> list[FieldError]:
    errors = []
    for item in source.items if source else ():
        errors += downward_file(item, path)
        errors += _take(item.path, item.path, volume, taken) if item.path else []
    return errors


def _token(source: ServiceAccountTokenProjection | None, path: str, volume: str) -> list[FieldError]:
    if source is None:
        return []
    errors = []
    seconds, where = source.expiration_seconds or 0, f"{path}.expirationSeconds"
    if seconds < 600:
        errors.append(invalid(where, seconds, "may not specify a duration less than 10 minutes"))
    if seconds > 2**32:
        errors.append(invalid(where, seconds, "may not specify a duration larger than 2^32 seconds"))
    where = f"{volume}.path"
    return errors + (unreserved_path(source.path, where) if source.path else [required(where)])


_HOST_PATH_TYPES = ("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
ONE_TYPE = "may not specify more than 1 volume type"
NO_TYPE = "must specify a volume type"
_SOURCES = (
    ("empty_dir", "emptyDir"),
    ("host_path", "hostPath"),
    ("git_repo", "gitRepo"),
    ("gce_persistent_disk", "gcePersistentDisk"),
    ("aws_elastic_block_store", "awsElasticBlockStore"),
    ("secret", "secret"),
    ("nfs", "nfs"),
    ("iscsi", "iscsi"),
    ("glusterfs", "glusterfs"),
    ("flocker", "flocker"),
    ("persistent_volume_claim", "persistentVolumeClaim"),
    ("rbd", "rbd"),
    ("cinder", "cinder"),
    ("cephfs", "cephfs"),
    ("quobyte", "quobyte"),
    ("downward_api", "downwardAPI"),
    ("fc", "fc"),
    ("flex_volume", "flexVolume"),
    ("config_map", "configMap"),
    ("azure_file", "azureFile"),
    ("vsphere_volume", "vsphereVolume"),
    ("photon_persistent_disk", "photonPersistentDisk"),
    ("portworx_volume", "portworxVolume"),
    ("azure_disk", "azureDisk"),
    ("storageos", "storageos"),
    ("projected", "projected"),
    ("scale_io", "scaleIO"),
    ("csi", "csi"),
    ("ephemeral", "ephemeral"),
    ("image", "image"),
)
"""Each source's attribute and its name in JSON, in the order of upstream's errors."""
_NAMES = tuple(name for _, name in _SOURCES)
_sources_of = attrgetter(*(attribute for attribute, _ in _SOURCES))
REFUSED_AS = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
"""How upstream spells a source that is one too many, where that differs."""
CHECKED_AS = {"gcePersistentDisk": "persistentDisk"}
"""How upstream spells a source that it looks into, where that differs."""
_INITIATOR_LENGTH = 64
_TOO_LONG = (
    "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is "
    "specified."
)


def validate_volumes(
    volumes: tuple[Volume, ...], path: str, *, pod: str = ""
) -> tuple[dict[str, Volume], list[FieldError]]:
    """Those that are in order, by name, and what is wrong with the others; `pod` is the name of the pod, if it has
    one."""
    errors: list[FieldError] = []
    known: dict[str, Volume] = {}
    made = {f"{pod}-{volume.name}" for volume in volumes if pod and volume.ephemeral is not None}
    for index, volume in enumerate(volumes):
        where = f"{path}[{index}]"
        found = _source(volume, where, pod)
        if not volume.name:
            found.append(required(f"{where}.name"))
        else:
            found += [invalid(f"{where}.name", volume.name, text) for text in names.dns_label(volume.name)]
        if volume.name in known:
            found.append(duplicate(f"{where}.name", volume.name))
        if not found:
            known[volume.name] = volume
        errors += found
        claim = volume.persistent_volume_claim
        if claim is not None and claim.claim_name in made:
            text = "must not reference a PVC that gets created for an ephemeral volume"
            errors.append(invalid(f"{where}.persistentVolumeClaim.claimName", claim.claim_name, text))
    return known, errors


def _source(volume: Volume, path: str, pod: str) -> list[FieldError]:
    """Exactly one; a second one is refused, and not looked into."""
    nameless = replace(volume, name="") if volume.iscsi is None and volume.ephemeral is None else None
    start = volume.name[:_START]
    if nameless is not None and _passed.holds(start, nameless):
        return []
    errors = _one_source(volume, path, pod)
    if nameless is not None and not errors:
        _passed.keep(start, nameless)
    return errors


_START = 12
"""Letters of a name by which a volume that passed is found: names that are generated begin alike."""
_passed = PassedValues(256, longest=2048)


def _one_source(volume: Volume, path: str, pod: str) -> list[FieldError]:
    given = [pair for pair in zip(_NAMES, _sources_of(volume), strict=True) if pair[1] is not None]
    if not given:
        return [required(path, NO_TYPE)]
    (name, first), *more = given
    errors = check_source(first, f"{path}.{CHECKED_AS.get(name, name)}") + _with_name(volume, first, path, pod)
    for name, source in more:
        errors.append(forbidden(f"{path}.{REFUSED_AS.get(name, name)}", ONE_TYPE))
        if isinstance(source, ISCSIVolumeSource):
            errors += _with_name(volume, source, path, pod)
    return errors


def _with_name(volume: Volume, source: Any, path: str, pod: str) -> list[FieldError]:
    """What follows from the volume's name and its source together."""
    where = f"{path}.name"
    if isinstance(source, ISCSIVolumeSource) and source.initiator_name:
        return initiator_length(volume.name, source.target_portal, where, of_pod=True)
    if isinstance(source, EphemeralVolumeSource) and pod and volume.name:
        claim = f"{pod}-{volume.name}"
        return [invalid(where, volume.name, f'PVC name "{claim}": {text}') for text in names.dns_subdomain(claim)]
    return []


def initiator_length(name: str, portal: str, path: str, *, of_pod: bool) -> list[FieldError]:
    too_long = len(f"{name}:{portal}".encode()) > _INITIATOR_LENGTH
    return [invalid(path, name if of_pod else portal, _TOO_LONG)] if too_long else []


def check_source(source: Any, path: str) -> list[FieldError]:
    check = _CHECKS.get(type(source))
    return check(source, path) if check else []


def _config_map(source: ConfigMapVolumeSource, path: str) -> list[FieldError]:
    errors = [] if source.name else [required(f"{path}.name")]
    return errors + mode(source.default_mode, f"{path}.defaultMode") + keys_to_paths(source.items, f"{path}.items")


def _secret(source: SecretVolumeSource, path: str) -> list[FieldError]:
    errors = [] if source.secret_name else [required(f"{path}.secretName")]
    return errors + mode(source.default_mode, f"{path}.defaultMode") + keys_to_paths(source.items, f"{path}.items")


def _empty_dir(source: EmptyDirVolumeSource, path: str) -> list[FieldError]:
    if source.size_limit is not None and source.size_limit < ZERO:
        return [forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")]
    return []


def _host_path(source: HostPathVolumeSource, path: str) -> list[FieldError]:
    if not source.path:
        return [required(f"{path}.path")]
    errors = no_parents(source.path, f"{path}.path")
    if (source.type or "") not in _HOST_PATH_TYPES:
        errors.append(unsupported(f"{path}.type", source.type, _HOST_PATH_TYPES))
    return errors


def _git_repo(source: GitRepoVolumeSource, path: str) -> list[FieldError]:
    return needed(source, path, "repository") + local_path(source.directory, f"{path}.directory")


def _downward(source: DownwardAPIVolumeSource, path: str) -> list[FieldError]:
    errors = mode(source.default_mode, f"{path}.defaultMode")
    return errors + [error for item in source.items for error in downward_file(item, path)]


def _claim(source: PersistentVolumeClaimVolumeSource, path: str) -> list[FieldError]:
    return needed(source, path, "claim_name")


def _image(source: ImageVolumeSource, path: str) -> list[FieldError]:
    errors = needed(source, path, "reference")
    if source.pull_policy not in _PULL_POLICIES:
        errors.append(unsupported(f"{path}.pullPolicy", source.pull_policy, _PULL_POLICIES))
    return errors


def _ephemeral(source: EphemeralVolumeSource, path: str) -> list[FieldError]:
    where = f"{path}.volumeClaimTemplate"
    template = source.volume_claim_template
    return [required(where)] if template is None else claim_template(template, where)


_CHECKS: Mapping[type, Callable[[Any, str], list[FieldError]]] = {
    **REMOTE,
    ConfigMapVolumeSource: _config_map,
    DownwardAPIVolumeSource: _downward,
    EmptyDirVolumeSource: _empty_dir,
    EphemeralVolumeSource: _ephemeral,
    GitRepoVolumeSource: _git_repo,
    HostPathVolumeSource: _host_path,
    ImageVolumeSource: _image,
    PersistentVolumeClaimVolumeSource: _claim,
    ProjectedVolumeSource: validate_projected,
    SecretVolumeSource: _secret,
}
