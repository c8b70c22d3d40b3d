"""The table of APIServices: who serves which group version, whether it is available, and the proxy to it.

An APIService with a service makes a group version the business of another component. Each is asked for its resources
when it is registered, when what is behind its service changes, and regularly: one that does not answer is not
available, which its condition says, and its requests get 503 at once.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from podfit.api.apiregistration.v1.types import APIService, APIServiceCondition, APIServiceStatus
from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.services.types import Endpoints, Service
from podfit.api.discovery.v1.types import EndpointSlice
from podfit.api.meta.resource_info import ResourceInfo
from podfit.api.registry import info_for
from podfit.apiserver.context import Context
from podfit.apiserver.extensions.aggregation import discovery
from podfit.apiserver.extensions.aggregation.remote import Remotes, Unavailable
from podfit.apiserver.housekeeping.extension_authentication import FrontProxy
from podfit.apiserver.registry.change_watch import refresh_on_change
from podfit.apiserver.registry.stored import Stored
from podfit.core.errors import ApiError
from podfit.core.times import format_time
from podfit.net.wire import Identity, Request, Response
from podfit.store.protocol import StoreError, StoreUnavailable

if TYPE_CHECKING:
    from podfit.apiserver.extensions.backend_addresses import Reached, Unreached
    from podfit.apiserver.extensions.backends import Backends

KINDS = (Service, EndpointSlice, Endpoints, Pod)


class Neighbours:
    """`moved` is called with a namespace in which something was written."""

    def __init__(self, context: Context, moved: Callable[[str], Awaitable[None]]) -> None:
        self._context, self._moved = context, moved
        self._tasks: dict[str, list[asyncio.Task[object]]] = {}

    def follow(self, namespaces: set[str]) -> None:
        """These, and no others, from now on."""
        for gone in [known for known in self._tasks if known not in namespaces]:
            for task in self._tasks.pop(gone):
                task.cancel()
        for new in sorted(namespaces - self._tasks.keys()):
            after, look = self._context.store.revision, partial(self._moved, new)
            watches = (
                refresh_on_change(
                    self._context.store, self._context.clock, info_for(kind), look, after=after, namespace=new
                )
                for kind in KINDS
            )
            run = self._context.supervisor.run
            self._tasks[new] = [run(watch, name=f"neighbours in {new}") for watch in watches]


log = logging.getLogger(__name__)

CHECK_SECONDS = 30.0
AVAILABLE = "Available"


class Aggregation:
    """`start` before the first request, `stop` after the last. `local` are the kinds that this server serves."""

    def __init__(
        self,
        context: Context,
        local: Callable[[], tuple[ResourceInfo, ...]],
        backends: "Callable[[], Backends]",
        front_proxy: FrontProxy | None = None,
    ) -> None:
        self._context = context
        self._backends, self._front_proxy = backends, front_proxy
        self._local = local
        self._info = info_for(APIService)
        self._remote: dict[str, APIService] = {}
        self._lists: dict[str, discovery.Listed] = {}
        self._places: dict[str, Reached | Unreached | None] = {}
        self._lock = asyncio.Lock()

    async def start(self, *, ask: bool = True) -> None:
        """Know what is registered. Without `ask` nobody is asked whether it answers, until `refresh`."""
        revision = self._context.store.revision
        if ask:
            await self.refresh()
        else:
            await self._read()
        following = refresh_on_change(
            self._context.store, self._context.clock, self._info, self.refresh, after=revision
        )
        self._context.supervisor.run(following, name="table of APIServices")
        self._context.supervisor.run(self._repeat(), name="availability of APIServices")

    @cached_property
    def _remotes(self) -> "Remotes":
        """Loaded for the first that is registered, as its neighbours are: mostly there is none."""
        return Remotes(self._context, self._backends(), self._front_proxy)

    @cached_property
    def _neighbours(self) -> "Neighbours":
        return Neighbours(self._context, self._moved)

    def find(self, path: str) -> APIService | None:
        """Who else serves this path."""
        if not self._remote:
            return None
        parts = path.split("/")  # "", "apis", group, version
        if len(parts) < 4 or parts[1] != "apis":
            return None
        found = self._remote.get(f"{parts[3]}.{parts[2]}")
        return found if found is not None and not self._is_local(parts[2]) else None

    def _is_local(self, group: str) -> bool:
        return any(info.group == group for info in self._local())

    def groups(self) -> dict[str, list[APIService]]:
        """The groups that only others serve."""
        return discovery.by_group(
            service for service in self._remote.values() if not self._is_local(service.spec.group)
        )

    @property
    def lists(self) -> discovery.Lists:
        return self._lists

    async def proxy(self, registered: APIService, request: Request, identity: Identity) -> Response:
        """What the other component answers to this user. Raises 503 while it is not available, 504 when it takes too
        long."""
        if registered.metadata.name not in self._lists:
            raise _unavailable()
        try:
            return await self._remotes.answer(registered, request, identity)
        except TimeoutError:
            raise _too_late() from None
        except OSError as error:
            log.warning("backend did not answer apiservice=%s error=%s", registered.metadata.name, error)
            raise _unavailable() from None

    async def refresh(self) -> None:
        """Look at what is registered, and whether it answers."""
        async with self._lock:
            await self._read()
            if self._remote or "_neighbours" in vars(self):
                self._neighbours.follow(set(map(_namespace, self._remote.values())))
            await asyncio.gather(*map(self._check, self._remote.values()))

    async def _read(self) -> None:
        found = await self._context.all(APIService)
        self._remote = {
            api_service.metadata.name: api_service for api_service in found if api_service.spec.service is not None
        }
        self._lists = {name: listed for name, listed in self._lists.items() if name in self._remote}
        self._places = {name: place for name, place in self._places.items() if name in self._remote}

    async def _moved(self, namespace: str) -> None:
        """Ask those whose backend is somewhere else than when they were asked."""
        async with self._lock:
            near = [service for service in self._remote.values() if _namespace(service) == namespace]
            for service in near:
                if await self._remotes.place(service) != self._places.get(service.metadata.name):
                    await self._check(service)

    async def _check(self, registered: APIService) -> None:
        name, reason, message = registered.metadata.name, "Passed", "all checks passed"
        place = self._places[name] = await self._remotes.place(registered)
        try:
            self._lists[name] = await self._remotes.resources(registered, place)
        except Unavailable as failure:
            self._lists.pop(name, None)
            reason, message = failure.reason, str(failure)
        await self._tell(registered, reason, message)

    async def _tell(self, registered: APIService, reason: str, message: str) -> None:
        """Write the condition, where it is another than before."""
        status = "True" if reason == "Passed" else "False"
        old = next((condition for condition in registered.status.conditions if condition.type == AVAILABLE), None)
        if old is not None and (old.status, old.reason, old.message) == (status, reason, message):
            return
        now = format_time(self._context.clock.now())
        since = old.last_transition_time if old is not None and old.status == status else now
        new = APIServiceCondition(
            type=AVAILABLE, status=status, reason=reason, message=message, last_transition_time=since
        )
        kept = tuple(condition for condition in registered.status.conditions if condition.type != AVAILABLE)
        objects = Stored[APIService](self._context.store, self._info)
        expected = int(registered.metadata.resource_version)
        try:
            told = replace(registered, status=APIServiceStatus(conditions=(*kept, new)))
            await objects.update(told, expected=expected)
        except ApiError as error:  # written or deleted meanwhile, so there will be another look
            log.info("availability not written apiservice=%s reason=%s", registered.metadata.name, error)
        except StoreUnavailable as error:  # such as a full disk, on which a server starts all the same
            log.warning("availability not written apiservice=%s reason=%s", registered.metadata.name, error)

    async def _repeat(self) -> None:
        while True:
            await self._context.clock.sleep(CHECK_SECONDS)
            try:
                await self.refresh()
            except StoreError as error:
                log.warning("availability not looked at reason=%s", error)


def _namespace(registered: APIService) -> str:
    service = registered.spec.service
    assert service is not None
    return service.namespace


def _too_late() -> ApiError:
    """Upstream's answer when a request takes longer than it may."""
    return ApiError(504, "Timeout", "request did not complete within the allotted timeout", {"retryAfterSeconds": 1})


def _unavailable() -> ApiError:
    text = "the server is currently unable to handle the request"
    return ApiError(503, "ServiceUnavailable", text, {"retryAfterSeconds": 1})
