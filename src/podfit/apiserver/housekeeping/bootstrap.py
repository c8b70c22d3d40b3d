"""Bootstrap objects: namespaces, priority classes, and the default roles.

Made when missing, at every start, before the server says that it is ready. A default role or binding that lacks rules
or subjects of this version gets them, unless its annotation `rbac.authorization.kubernetes.io/autoupdate` is `false`;
what an administrator added stays. Roles that grant `pods` do not grant `pods/resize` (R-012, R-013): only a wildcard or
a rule of one's own does.
"""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from podfit.api.core.v1.namespaces.types import Namespace
from podfit.api.defaults import apply_defaults
from podfit.api.meta.base import Object
from podfit.api.meta.v1.types import ObjectMeta
from podfit.api.rbac.v1.types import ClusterRole, ClusterRoleBinding, Role, RoleBinding
from podfit.api.registry import info_for
from podfit.api.scheduling.v1.types import PriorityClass
from podfit.apiserver.authz import default_roles
from podfit.apiserver.context import Context
from podfit.apiserver.registry.stored import Changed, Stored
from podfit.apiserver.registry.strategies.table import strategy_of
from podfit.core.errors import ApiError
from podfit.core.times import format_time
from podfit.decide.aggregated_roles import with_missing_rules, with_missing_subjects

NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
RETIRED = "system:podfit:controllers"  # gave every controller all rights, before each became somebody
CRITICAL = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def initial_objects() -> Iterator[Object]:
    for name in NAMESPACES:
        yield Namespace(metadata=ObjectMeta(name=name))
    for name, value in CRITICAL.items():
        yield PriorityClass(metadata=ObjectMeta(name=name), value=value, description="Used for system critical pods.")
    yield from default_roles.cluster_roles()
    yield from default_roles.cluster_role_bindings()
    yield from default_roles.roles()
    yield from default_roles.role_bindings()


async def bootstrap(context: Context) -> None:
    """All at once, so that a store that groups its writes makes them durable together."""
    kinds = (Namespace, PriorityClass, ClusterRole, ClusterRoleBinding, Role, RoleBinding)
    there: dict[tuple[type, str, str], Object] = {_id(obj): obj for kind in kinds for obj in await context.all(kind)}
    await asyncio.gather(*(_settle(context, obj, there.get(_id(obj))) for obj in initial_objects()))
    for kind in (ClusterRoleBinding, ClusterRole):
        if retired := there.get((kind, "", RETIRED)):
            with suppress(Changed, ApiError):  # another server that starts beside this one has done it
                revision = int(retired.metadata.resource_version)
                await Stored[Object](context.store, info_for(kind)).delete("", RETIRED, expected=revision)


def _id(obj: Object) -> tuple[type, str, str]:
    return type(obj), obj.metadata.namespace, obj.metadata.name


async def _settle(context: Context, wanted: Object, current: Object | None) -> None:
    if current is None:
        await _create(context, wanted)
        return
    updated = _updated(wanted, current)
    if updated != current:
        revision = int(current.metadata.resource_version)
        with suppress(Changed):  # another server that starts beside this one has done it
            await Stored[Object](context.store, info_for(type(wanted))).update(updated, expected=revision)


def _updated(wanted: Any, current: Any) -> Any:
    if current.metadata.annotations.get(default_roles.AUTO_UPDATE) == "false":
        return current
    match current:
        case ClusterRole(aggregation_rule=rule) if rule is not None:
            return current  # its rules are gathered
        case ClusterRole() | Role():
            return replace(current, rules=with_missing_rules(current.rules or (), wanted.rules or ()))
        case ClusterRoleBinding() | RoleBinding():
            return replace(current, subjects=with_missing_subjects(current.subjects, wanted.subjects))
    return current


async def _create(context: Context, wanted: Object) -> None:
    info = info_for(type(wanted))
    meta = replace(wanted.metadata, uid=context.random.uuid(), creation_timestamp=format_time(context.clock.now()))
    made = apply_defaults(replace(wanted, metadata=meta), context.gates)
    made = strategy_of(info.type).prepare_create(info, made, context.gates)
    try:
        await Stored[Object](context.store, info).create(made)
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise
