"""The environment of a container, in the order in which later definitions win.

    where the API server is, envFrom, then env; within env a later variable may use an earlier one as $(NAME), and $$
    stands for one $

Command and arguments are expanded with it. All of it has one budget (`decide.pod.environment`), and the loop gets its
turn after every YIELD_BYTES.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from podfit.api.core.v1.pods.containers import Container, EnvFromSource, EnvVar
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.decide.pod.environment import Budget, check_string
from podfit.kubelet.sources.downward import Unsupported, field_value, resource_value
from podfit.kubelet.sources.lookup import Lookup

NONE: Mapping[str, str] = {}
YIELD_BYTES = 128 * 1024
STRING_COST = 256  # in bytes: as long as it takes to look up a short value


class ExpandedCommand(msgspec.Struct, frozen=True):
    """What a container is started with, expanded."""

    environment: Mapping[str, str]
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()


class _Room:
    """A budget that lets others have the event loop from time to time."""

    def __init__(self) -> None:
        self.budget = Budget()
        self._yielded = self._strings = 0

    async def yield_if_due(self) -> None:
        self._strings += 1
        if self.budget.used - self._yielded + STRING_COST * self._strings > YIELD_BYTES:
            self._yielded, self._strings = self.budget.used, 0
            await asyncio.sleep(0)

    async def expand_all(self, what: str, texts: Sequence[str], values: Mapping[str, str]) -> tuple[str, ...]:
        expanded = []
        for number, text in enumerate(texts):
            expanded.append(self.budget.expand(f"{what}[{number}]", text, values))
            await self.yield_if_due()
        return tuple(expanded)


async def words(
    pod: Pod, container: Container, *, lookup: Lookup, allocatable: ResourceList, services: Mapping[str, str] = NONE
) -> ExpandedCommand:
    """`pod` is the allocated one with addresses in its status; `services` are the variables by which services are
    found. Raises Missing, Unsupported, TooLarge, ApiError.
    """
    room, values = _Room(), {}
    for name, text in services.items():
        values[name] = room.budget.take(_named(name), text, name=name)
    for origin in container.env_from:
        for name, data in _counted(await _all_of(pod.metadata.namespace, origin, lookup)):
            full = origin.prefix + name
            values[full] = room.budget.take(_named(full), data.decode(errors="replace"), name=full)
            await room.yield_if_due()
        await asyncio.sleep(0)
    for variable in container.env:
        value = await _value(pod, container, variable, values, room.budget, lookup=lookup, allocatable=allocatable)
        if value is not None:
            values[variable.name] = value
        await room.yield_if_due()
    return ExpandedCommand(
        values,
        await room.expand_all("command", container.command, values),
        await room.expand_all("args", container.args, values),
    )


def _named(name: str) -> str:
    return f"environment variable {name}"


def _counted(data: Mapping[str, bytes]) -> Iterable[tuple[str, bytes]]:
    """Refuses a value before it is decoded."""
    for name, value in data.items():
        check_string(_named(name), len(value))
        yield name, value


async def _all_of(namespace: str, origin: EnvFromSource, lookup: Lookup) -> Mapping[str, bytes]:
    if (config := origin.config_map_ref) is not None:
        return await lookup.read("configmap", namespace, config.name, optional=bool(config.optional))
    if (secret := origin.secret_ref) is not None:
        return await lookup.read("secret", namespace, secret.name, optional=bool(secret.optional))
    return {}


async def _value(
    pod: Pod,
    container: Container,
    variable: EnvVar,
    values: Mapping[str, str],
    budget: Budget,
    *,
    lookup: Lookup,
    allocatable: ResourceList,
) -> str | None:
    what = _named(variable.name)
    if variable.value_from is None:
        return budget.expand(what, variable.value, values, name=variable.name)
    value = await _looked_up(pod, container, variable, lookup=lookup, allocatable=allocatable)
    return None if value is None else budget.take(what, value, name=variable.name)


async def _looked_up(
    pod: Pod, container: Container, variable: EnvVar, *, lookup: Lookup, allocatable: ResourceList
) -> str | None:
    origin, namespace = variable.value_from, pod.metadata.namespace
    if origin is not None and origin.field_ref is not None:
        return field_value(pod, origin.field_ref.field_path)
    if origin is not None and origin.resource_field_ref is not None:
        return resource_value(pod, container, origin.resource_field_ref, allocatable)
    if origin is not None and origin.config_map_key_ref is not None:
        ref = origin.config_map_key_ref
        return await lookup.key("configmap", namespace, ref.name, ref.key, optional=bool(ref.optional))
    if origin is not None and origin.secret_key_ref is not None:
        secret = origin.secret_key_ref
        return await lookup.key("secret", namespace, secret.name, secret.key, optional=bool(secret.optional))
    raise Unsupported(f"environment variable {variable.name}: this source is not supported")
