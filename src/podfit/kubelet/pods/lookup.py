"""ConfigMaps and Secrets of the pods' namespaces, read when a container or a volume needs them.

They are fetched each time: a container starts rarely, volumes are refreshed once a minute, and a copy kept up to date
would need the right to watch every secret of the cluster.
"""

from collections.abc import Mapping
from typing import Literal

import msgspec

from podfit.api.core.config import ConfigMap, Secret
from podfit.client.rest import Client
from podfit.core.errors import ApiError

Source = Literal["configmap", "secret"]
NOT_FOUND = 404


class Missing(Exception):
    """A ConfigMap, a Secret or a key that is not there; the text is upstream's."""


class Lookup(msgspec.Struct, frozen=True):
    client: Client

    async def read(self, source: Source, namespace: str, name: str, *, optional: bool = False) -> Mapping[str, bytes]:
        """Every key with its bytes. An optional object that does not exist is empty; else raises Missing."""
        try:
            if source == "secret":
                return (await self.client.get(Secret, name, namespace)).data
            found = await self.client.get(ConfigMap, name, namespace)
        except ApiError as error:
            if error.code != NOT_FOUND:
                raise
            if optional:
                return {}
            raise Missing(f'{source} "{name}" not found') from error
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
