"""The contents of ConfigMap, Secret, downward API and projected volumes: paths, bytes and modes."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

import msgspec

from podfit.api.core.v1.pods.aggregate import all_containers
from podfit.api.core.v1.pods.types import Pod, PodSpec
from podfit.api.core.v1.pods.volumes import (
    DownwardAPIVolumeFile,
    KeyToPath,
    ProjectedVolumeSource,
    ServiceAccountTokenProjection,
    Volume,
)
from podfit.api.meta.base import ResourceList
from podfit.kubelet.sources.downward import Unsupported, field_value, resource_value
from podfit.kubelet.sources.lookup import Lookup, Missing, Source
from podfit.kubelet.volumes.atomic import File, FileOwner
from podfit.kubelet.volumes.tokens import Tokens

DEFAULT_MODE = 0o644
VOLUME_BYTES, VOLUME_FILES = 32 << 20, 10_000


class Allowance:
    """How much may still be written."""

    def __init__(self, size: int, files: int, what: str) -> None:
        self._most, self._what = (size, files), what
        self._size = self._files = 0

    def take(self, file: File) -> None:
        """Raises Unsupported. A file of two names counts twice: it is written twice."""
        self._size, self._files = self._size + len(file.data), self._files + 1
        if self._size > self._most[0] or self._files > self._most[1]:
            raise Unsupported(f"the {self._what} take more than {self._most[0]} bytes or {self._most[1]} files")


class Files:
    """What a volume is going to hold; bounded while it is put together."""

    def __init__(self) -> None:
        self.found: dict[str, File] = {}
        self._room = Allowance(VOLUME_BYTES, VOLUME_FILES, "files of the volume")

    def add(self, path: str, file: File) -> None:
        self._room.take(file)
        self.found[path] = file

    def add_all(self, files: Mapping[str, File]) -> None:
        for path, file in files.items():
            self.add(path, file)


class Payloads(msgspec.Struct, frozen=True):
    """`allocatable` stands in for a limit that a container does not have."""

    lookup: Lookup
    allocatable: ResourceList
    tokens: Tokens

    async def of(self, pod: Pod, volume: Volume, *, recent: bool = False) -> dict[str, File] | None:
        """None when the volume is of another kind; `recent` as in Lookup. Raises Missing, Unsupported, ApiError."""
        read = partial(self.lookup.read, namespace=pod.metadata.namespace, recent=recent)
        if (config := volume.config_map) is not None:
            data = await read("configmap", name=config.name, optional=bool(config.optional))
            return _files("configmap", data, config.items, config.default_mode, optional=bool(config.optional))
        if (secret := volume.secret) is not None:
            data = await read("secret", name=secret.secret_name, optional=bool(secret.optional))
            return _files("secret", data, secret.items, secret.default_mode, optional=bool(secret.optional))
        if volume.downward_api is not None:
            return self._downward(pod, volume.downward_api.items, volume.downward_api.default_mode)
        if volume.projected is not None:
            return await self._projected(pod, volume.projected, read)
        return None

    async def _projected(
        self, pod: Pod, volume: ProjectedVolumeSource, read: Callable[..., Awaitable[Mapping[str, bytes]]]
    ) -> dict[str, File]:
        """Later sources win where paths meet."""
        files = Files()
        mode = volume.default_mode
        for source in volume.sources:
            if source.config_map is not None:
                optional = bool(source.config_map.optional)
                data = await read("configmap", name=source.config_map.name, optional=optional)
                files.add_all(_files("configmap", data, source.config_map.items, mode, optional=optional))
            elif source.secret is not None:
                optional = bool(source.secret.optional)
                data = await read("secret", name=source.secret.name, optional=optional)
                files.add_all(_files("secret", data, source.secret.items, mode, optional=optional))
            elif source.downward_api is not None:
                files.add_all(self._downward(pod, source.downward_api.items, mode))
            elif source.service_account_token is not None:
                files.add(source.service_account_token.path, await self._token(pod, source.service_account_token, mode))
            else:
                raise Unsupported("podfit projects configMap, secret, downwardAPI and serviceAccountToken sources only")
            await asyncio.sleep(0)
        return files.found

    async def _token(self, pod: Pod, wanted: ServiceAccountTokenProjection, default_mode: int | None) -> File:
        """For its user alone where all containers have the same one, for the group of the pod's files as well."""
        text = await self.tokens.token(pod, wanted)
        security = pod.spec.security_context
        user, group = common_user(pod.spec), security.fs_group if security else None
        if user is None and group is None:
            return File(text.encode(), _mode(None, default_mode))
        return File(text.encode(), 0o600 if group is None else 0o640, FileOwner(user, group))

    def _downward(self, pod: Pod, items: Sequence[DownwardAPIVolumeFile], default_mode: int | None) -> dict[str, File]:
        files = Files()
        for item in items:
            if item.field_ref is not None:
                text = field_value(pod, item.field_ref.field_path)
            elif item.resource_field_ref is not None:
                text = resource_value(pod, pod.spec.containers[0], item.resource_field_ref, self.allocatable)
            else:
                raise Unsupported(f"{item.path}: neither fieldRef nor resourceFieldRef is given")
            files.add(item.path, File(text.encode(), _mode(item.mode, default_mode)))
        return files.found


def common_user(spec: PodSpec) -> int | None:
    """The user that every container says it runs as; None when one says nothing or they differ."""
    of_pod = spec.security_context.run_as_user if spec.security_context else None
    users = {
        container.security_context.run_as_user
        if container.security_context is not None and container.security_context.run_as_user is not None
        else of_pod
        for container in all_containers(spec)
    }
    return users.pop() if len(users) == 1 else None


def _files(
    source: Source, data: Mapping[str, bytes], items: Sequence[KeyToPath], default_mode: int | None, *, optional: bool
) -> dict[str, File]:
    files = Files()
    if not items:
        mode = _mode(None, default_mode)
        for key, value in data.items():
            files.add(key, File(value, mode))
        return files.found
    for item in items:
        if item.key in data:
            files.add(item.path, File(data[item.key], _mode(item.mode, default_mode)))
        elif not optional:
            kind = "config" if source == "configmap" else source
            raise Missing(f"{source} references non-existent {kind} key: {item.key}")
    return files.found


def _mode(own: int | None, default: int | None) -> int:
    return own if own is not None else default if default is not None else DEFAULT_MODE
