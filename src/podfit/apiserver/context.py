"""`Context`: the store, the clock, the feature gates and typed reads, shared by all parts of the API server."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar, cast

import msgspec

from podfit.api.admissionregistration.v1.types import ServiceReference
from podfit.api.meta.base import Object
from podfit.api.meta.resource_info import ResourceInfo
from podfit.api.registry import info_for
from podfit.apiserver.registry import stored
from podfit.apiserver.registry.bounded_checks import BoundedChecks
from podfit.apiserver.registry.converting_store import in_version
from podfit.apiserver.registry.list_cache import ListCache
from podfit.apiserver.registry.pending_allocations import PendingAllocations
from podfit.apiserver.registry.service_allocation import ServiceRanges
from podfit.apiserver.request.legacy_options import OFF, Legacy
from podfit.apiserver.request.reinvocations import Reinvocations
from podfit.apiserver.request.repeated_specs import RepeatedSpecs
from podfit.core.clock import Clock
from podfit.core.features import FeatureGates
from podfit.core.randomness import Random
from podfit.net.supervisor import Supervisor
from podfit.net.system import SystemRandom
from podfit.net.wire import Handler, Identity, Request, Response
from podfit.store.decoded_cache import Remembered
from podfit.store.protocol import Store

T = TypeVar("T", bound=Object)
R = TypeVar("R")
MOST_DERIVED = 1024  # results kept, one for each namespace that is asked about

NodeConnection = Callable[[str], Callable[[Request], Awaitable[Response]] | None]
"""From a node's name to a way to ask its kubelet; None when there is no such node here."""
KUBELET_CLIENT = Identity("kube-apiserver-kubelet-client")
"""As whom kubelets are asked."""


def unreached(_: str) -> None:
    """The `NodeConnection` of a server that reaches no kubelet."""


Services = Callable[[ServiceReference], Handler | None]
"""From a service that a webhook names to who answers for it; None when there is no such service here."""


Components = Mapping[str, Callable[[], Awaitable[str]]]
"""Parts of the control plane beside server and store, each with a way to ask why it does not work; empty: it does."""


class _Derived(msgspec.Struct, frozen=True):
    """`keys` is what the keys of the kind begin with. The result is of the store's `stamp` for them, or of these
    `revisions` where the store gives none."""

    keys: str
    stamp: int | None
    revisions: tuple[int, ...] | None
    result: Any


@dataclass(frozen=True, slots=True)
class Context:
    store: Store
    clock: Clock
    gates: FeatureGates
    kubelet: NodeConnection
    legacy: Legacy = OFF
    services: Services = lambda _: None
    controlled_resources: frozenset[str] = frozenset()
    """Resources whose controllers run beside this server in its process."""
    own_nodes: bool = False
    """Whether its nodes are podfit's: then a pod's creator is told what they do not do. Other kubelets may do it."""
    routes_services: bool = False
    """Whether a proxy of podfit runs beside it: then addresses of Services lead to their pods."""
    lists: ListCache = field(default_factory=ListCache)
    ranges: ServiceRanges = ServiceRanges()  # noqa: RUF009  (frozen)
    random: Random = SystemRandom()  # noqa: RUF009  (it has no state)
    """Of uids, generated names, and addresses and ports of services."""
    pending_allocations: PendingAllocations = field(default_factory=PendingAllocations)
    converted: Remembered = field(default_factory=Remembered)
    """Stored values in the versions in which they were asked for."""
    pod_specs: RepeatedSpecs = field(default_factory=RepeatedSpecs)
    checks: BoundedChecks = field(default_factory=BoundedChecks)
    clients_clock: Clock | None = None
    """What measures the seconds that a client on a connection asks a watch to last; without one, `clock`. They are the
    client's own seconds, also where a test moves the cluster's time."""
    supervisor: Supervisor = field(default_factory=partial(Supervisor, "API server"))
    """Owns what runs beside the requests; whoever composes the server watches it."""
    components: Components = field(default_factory=dict)
    _derived: dict[Any, _Derived] = field(default_factory=dict, init=False, compare=False)

    async def find(self, kind: type[T], name: str, namespace: str = "") -> T | None:
        info = info_for(kind)
        record = await self.store.get(stored.key(info, namespace, name))
        found: T | None = stored.decoded(info, record) if record else None
        return found

    async def derived(self, kind: type[T], namespace: str, make: Callable[[list[T]], R]) -> R:
        """What `make` gives for everything of a kind, made anew only when an object of it was written since."""
        key = kind, make, namespace
        known = self._derived.get(key)
        if known is not None and known.stamp is not None and known.stamp == self.store.stamp(known.keys):
            result: R = known.result
            return result
        info = info_for(kind)
        keys = stored.of_kind(info)
        stamp = self.store.stamp(keys)
        page = await self.store.list(stored.prefix(info, namespace))
        revisions = None if stamp is not None else tuple([record.mod_revision for record in page.records])
        if known is None or stamp is not None or known.revisions != revisions:
            if len(self._derived) >= MOST_DERIVED:
                self._derived.clear()
            found = make([cast(T, stored.decoded(info, record)) for record in page.records])
            known = self._derived[key] = _Derived(keys, stamp, revisions, found)
        made: R = known.result
        return made

    def settings(self, kind: type[T], namespace: str = "") -> Awaitable[tuple[T, ...]]:
        """All of a kind that every write asks for and that is seldom written: it is looked up once for as long."""
        return self.derived(kind, namespace, tuple)

    def in_version(self, info: ResourceInfo | None) -> "Context":
        """The context in which all objects of the kind are of this version."""
        if info is None or info.conversion is None:
            return self
        return replace(self, store=in_version(self.store, info, info.conversion, self.converted))

    async def all(self, kind: type[T], namespace: str = "") -> list[T]:
        info = info_for(kind)
        page = await self.store.list(stored.prefix(info, namespace))
        return [cast(T, stored.decoded(info, record)) for record in page.records]


class Attributes(msgspec.Struct, frozen=True, kw_only=True):
    """One write, or connection, as admission sees it."""

    operation: str  # CREATE, UPDATE, DELETE, CONNECT
    info: ResourceInfo
    subresource: str
    namespace: str
    name: str
    identity: Identity
    dry_run: bool
    old: Any = None
    url_name: str = ""  # the name in the URL, which a POST to a collection does not have
    generated: bool = False  # whether the name was made from `generateName`
    reinvocations: Reinvocations = msgspec.field(default_factory=Reinvocations)
