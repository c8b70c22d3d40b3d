"""Projected volumes: several sources whose files share one directory.

Trust bundles and certificates of pods are sources of features that are off: a pod loses them when it is made.
"""

from podfit.api.core.v1.pods.validation.volume_files import downward_file, key_to_path, mode, unreserved_path
from podfit.api.core.v1.pods.volumes import (
    ConfigMapProjection,
    DownwardAPIProjection,
    ProjectedVolumeSource,
    SecretProjection,
    ServiceAccountTokenProjection,
    VolumeProjection,
)
from podfit.api.meta.verdict_cache import passed
from podfit.core.fields import FieldError, forbidden, invalid, required

_CONFLICT = "conflicting duplicate paths"
_SOURCES = ("secret", "config_map", "downward_api", "service_account_token")


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
    errors += _downward(projection.downward_api, f"{path}.downwardAPI", volume, taken)
    errors += _token(projection.service_account_token, f"{path}.serviceAccountToken", volume)
    if sum(getattr(projection, name) is not None for name in _SOURCES) > 1:
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


def _downward(source: DownwardAPIProjection | None, path: str, volume: str, taken: set[str]) -> list[FieldError]:
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
