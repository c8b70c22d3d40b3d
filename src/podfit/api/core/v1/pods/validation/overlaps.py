"""Files of a volume that lie in each other's way."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from podfit.api.core.v1.pods.volumes import (
    DownwardAPIVolumeFile,
    KeyToPath,
    ProjectedVolumeSource,
    ServiceAccountTokenProjection,
    Volume,
    VolumeProjection,
)

_Placed = KeyToPath | DownwardAPIVolumeFile | ServiceAccountTokenProjection
_NO_SOURCE = VolumeProjection()
_MOST = 32  # collisions of one volume that are told


class _File(NamedTuple):
    """`source` is what of a projected volume it comes from."""

    path: str
    source: str = ""

    def __str__(self) -> str:
        return f'"{self.path}" ({self.source})' if self.source else f'"{self.path}"'


def overlapping_files(volumes: Sequence[Volume]) -> Iterator[str]:
    for volume in volumes:
        config, secret, downward = volume.config_map, volume.secret, volume.downward_api
        if config is not None and config.items:
            yield from _told(volume.name, f'(ConfigMap "{config.name}")', _files(config.items))
        if secret is not None and secret.items:
            yield from _told(volume.name, f'(Secret "{secret.secret_name}")', _files(secret.items))
        if downward is not None and downward.items:
            yield from _told(volume.name, "(DownwardAPI)", _files(downward.items))
        if volume.projected is not None and not _plain(volume.projected):
            yield from _projected(volume.name, volume.projected)


def _files(items: Iterable[_Placed], source: str = "") -> list[_File]:
    return [_File(item.path.rstrip("/"), source) for item in items]


def _projected(name: str, source: ProjectedVolumeSource) -> Iterator[str]:
    files: list[_File] = []
    for projection in source.sources:
        if projection == _NO_SOURCE:
            yield f'volume "{name}" (Projected) has no sources provided'
        files += _of_projection(projection)
    yield from _told(name, "(Projected)", files)


def _plain(source: ProjectedVolumeSource) -> bool:
    """Whether it is what most pods have, the volume of their service account: three sources of a file each, no two of
    one name."""
    paths = set()
    for projection in source.sources:
        token, config, downward = projection.service_account_token, projection.config_map, projection.downward_api
        placed = (
            token
            or (config.items[0] if config is not None and len(config.items) == 1 else None)
            or (downward.items[0] if downward is not None and len(downward.items) == 1 else None)
        )
        if placed is None or "/" in placed.path:
            return False
        paths.add(placed.path)
    return len(paths) == len(source.sources)


def _of_projection(projection: VolumeProjection) -> list[_File]:
    config, secret, downward = projection.config_map, projection.secret, projection.downward_api
    if config is not None and config.items:
        return _files(config.items, f'ConfigMap "{config.name}"')
    if secret is not None and secret.items:
        return _files(secret.items, f'Secret "{secret.name}"')
    if downward is not None and downward.items:
        return _files(downward.items, "DownwardAPI")
    token = projection.service_account_token
    return [] if token is None else _files([token], "ServiceAccountToken")


def _told(name: str, kind: str, files: Iterable[_File]) -> Iterator[str]:
    """Each file with those before it that are the same, above it or beneath it; in time linear in the paths."""
    files = tuple(files)
    if len({file.path for file in files}) == len(files) and not any("/" in file.path for file in files):
        return
    at: dict[str, list[_File]] = {}
    beneath: dict[str, list[_File]] = {}
    told = 0
    for file in files:
        above = _above(file.path)
        others = [*at.get(file.path, ()), *(other for folder in above for other in at.get(folder, ()))]
        others += beneath.get(file.path, ())
        for other in others[: _MOST - told]:
            told += 1
            yield f'volume "{name}" {kind}: overlapping paths: {file} with {other}'
        _keep(at, file.path, file)
        for folder in above:
            _keep(beneath, folder, file)


def _above(path: str) -> list[str]:
    parts = path.split("/")[:_MOST]
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def _keep(places: dict[str, list[_File]], path: str, file: _File) -> None:
    kept = places.setdefault(path, [])
    if len(kept) < _MOST:
        kept.append(file)
