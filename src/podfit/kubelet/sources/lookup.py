"""ConfigMaps and Secrets of the pods' namespaces, read when a container or a volume needs them.

They are fetched each time a container starts, which is rare, and for the volumes of a pod once a minute; a copy kept up
to date would need the right to watch every secret of the cluster. Volumes that are refreshed take what was read for
another pod shortly before, because every pod of a namespace has the same authorities mounted.
"""

from collections.abc import Mapping
from typing import Literal

from podfit.api.core.v1.config.types import ConfigMap, Secret
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.core.errors import ApiError

Source = Literal["configmap", "secret"]
NOT_FOUND = 404
RECENT_SECONDS = 30.0


class Missing(Exception):
    """A ConfigMap, a Secret or a key that is not there; the text is upstream's."""


class Lookup:
    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._recent: dict[tuple[Source, str, str], tuple[float, Mapping[str, bytes]]] = {}

    async def read(
        self, source: Source, namespace: str, name: str, *, optional: bool = False, recent: bool = False
    ) -> Mapping[str, bytes]:
        """Every key with its bytes, or with `recent` as they were RECENT_SECONDS ago. An optional object that does not
        exist is empty; else raises Missing.
        """
        now, key = self._clock.monotonic(), (source, namespace, name)
        if recent and key in self._recent and now - self._recent[key][0] <= RECENT_SECONDS:
            return self._recent[key][1]
        self._recent = {
            source_key: known for source_key, known in self._recent.items() if now - known[0] <= RECENT_SECONDS
        }
        try:
            data = await self._fetch(source, namespace, name)
        except ApiError as error:
            if error.code != NOT_FOUND:
                raise
            if optional:
                return {}
            raise Missing(f'{source} "{name}" not found') from error
        self._recent[key] = now, data
        return data

    async def _fetch(self, source: Source, namespace: str, name: str) -> Mapping[str, bytes]:
        if source == "secret":
            return (await self._client.get(Secret, name, namespace)).data
        found = await self._client.get(ConfigMap, name, namespace)
        return {**{key: text.encode() for key, text in found.data.items()}, **found.binary_data}

    async def key(self, source: Source, namespace: str, name: str, key: str, *, optional: bool) -> str | None:
        """One value; None when it may be missing and is."""
        data = await self.read(source, namespace, name, optional=optional)
        if key in data:
            return data[key].decode(errors="replace")
        if optional:
            return None
        kind = "Secret" if source == "secret" else "ConfigMap"
        raise Missing(f"couldn't find key {key} in {kind} {namespace}/{name}")
