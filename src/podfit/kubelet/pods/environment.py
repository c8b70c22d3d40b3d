"""A container's environment, in the order that gives later definitions the last word.

    where the API server is, envFrom, then env; within env a later variable may use an earlier one as $(NAME), and $$
    stands for one $
"""

import re
from collections.abc import Mapping, Sequence

from podfit.api.base import ResourceList
from podfit.api.core.containers import Container, EnvFromSource, EnvVar
from podfit.api.core.pods import Pod
from podfit.kubelet.pods.fields import Unsupported, field_value, resource_value
from podfit.kubelet.pods.lookup import Lookup

NONE: Mapping[str, str] = {}
_REFERENCE = re.compile(r"\$(\$|\(([^()]*)\))")


def expand(text: str, values: Mapping[str, str]) -> str:
    """Replace $(NAME) by its value; a name that is not known stays as it is written."""

    def replaced(match: re.Match[str]) -> str:
        if match[1] == "$":
            return "$"
        return values.get(match[2], match[0])

    return _REFERENCE.sub(replaced, text)


def expand_all(texts: Sequence[str], values: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(expand(text, values) for text in texts)


async def environment(
    pod: Pod, container: Container, *, lookup: Lookup, allocatable: ResourceList, services: Mapping[str, str] = NONE,
) -> dict[str, str]:
    """`pod` is the allocated one with addresses in its status; `services` are the variables by which services are
    found. Raises Missing, Unsupported, ApiError.
    """
    values = dict(services)
    namespace = pod.metadata.namespace
    for origin in container.env_from:
        for name, data in (await _all_of(namespace, origin, lookup)).items():
            values[origin.prefix + name] = data.decode(errors="replace")
    for variable in container.env:
        value = await _value(pod, container, variable, values, lookup=lookup, allocatable=allocatable)
        if value is not None:
            values[variable.name] = value
    return values


async def _all_of(namespace: str, origin: EnvFromSource, lookup: Lookup) -> Mapping[str, bytes]:
    if (config := origin.config_map_ref) is not None:
        return await lookup.read("configmap", namespace, config.name, optional=bool(config.optional))
    if (secret := origin.secret_ref) is not None:
        return await lookup.read("secret", namespace, secret.name, optional=bool(secret.optional))
    return {}


async def _value(
    pod: Pod, container: Container, variable: EnvVar, values: Mapping[str, str], *, lookup: Lookup,
    allocatable: ResourceList,
) -> str | None:
    origin = variable.value_from
    if origin is None:
        return expand(variable.value, values)
    if origin.field_ref is not None:
        return field_value(pod, origin.field_ref.field_path)
    if origin.resource_field_ref is not None:
        return resource_value(pod, container, origin.resource_field_ref, allocatable)
    namespace = pod.metadata.namespace
    if origin.config_map_key_ref is not None:
        ref = origin.config_map_key_ref
        return await lookup.key("configmap", namespace, ref.name, ref.key, optional=bool(ref.optional))
    if origin.secret_key_ref is not None:
        secret = origin.secret_key_ref
        return await lookup.key("secret", namespace, secret.name, secret.key, optional=bool(secret.optional))
    raise Unsupported(f"environment variable {variable.name}: this source is not supported")
