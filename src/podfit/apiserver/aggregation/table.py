"""Who serves which group version, whether it answers, and requests passed on to it.

An APIService with a service makes a group version the business of another component. The service is found by the
resolver that whoever composes the server gave it, as webhooks' are. Each is asked regularly for its resources: one that
does not answer is not available, which its condition says, and its requests get 503 at once.
"""

import asyncio
import logging
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from podfit.api.admissionregistration import ServiceReference
from podfit.api.apiregistration import APIService, APIServiceCondition, APIServiceStatus
from podfit.api.registry import ResourceInfo, info_for
from podfit.apiserver.aggregation import pages
from podfit.apiserver.context import Context
from podfit.apiserver.following import follow
from podfit.apiserver.stored import Stored
from podfit.core.errors import ApiError
from podfit.core.times import format_time
from podfit.net.wire import Handler, Identity, Request, Response
from podfit.store.protocol import StoreError

log = logging.getLogger(__name__)

CHECK_SECONDS, ANSWER_SECONDS = 30.0, 5.0
AVAILABLE = "Available"
AGGREGATOR = Identity("system:kube-aggregator", ("system:masters",))
_DROPPED = ("authorization", "connection", "host", "content-length", "transfer-encoding", "accept-encoding")
_DROPPED_KINDS = ("impersonate-", "x-remote-")


class Aggregation:
    """`start` before the first request, `stop` after the last. `local` are the kinds that this server serves."""

    def __init__(self, context: Context, local: Callable[[], tuple[ResourceInfo, ...]]) -> None:
        self._context = context
        self._local = local
        self._info = info_for(APIService)
        self._remote: dict[str, APIService] = {}
        self._lists: dict[str, pages.Listed] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._lock = asyncio.Lock()

    async def start(self) -> None:
        revision = self._context.store.revision
        await self.refresh()
        following = follow(self._context, self._info, self.refresh, after=revision)
        self._tasks = [asyncio.create_task(following), asyncio.create_task(self._repeat())]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

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
        return pages.by_group(each for each in self._remote.values() if not self._is_local(each.spec.group))

    @property
    def lists(self) -> pages.Lists:
        return self._lists

    async def proxy(self, registered: APIService, request: Request, identity: Identity) -> Response:
        """What the other component answers to this user. Raises 503 while it is not available."""
        handler = self._handler(registered) if registered.metadata.name in self._lists else None
        if handler is None:
            raise _unavailable()
        try:
            return await handler(_passed_on(request, identity))
        except OSError as error:
            log.warning("backend did not answer apiservice=%s error=%s", registered.metadata.name, error)
            raise _unavailable() from None

    def _handler(self, registered: APIService) -> Handler | None:
        service = registered.spec.service
        assert service is not None
        return self._context.services(
            ServiceReference(namespace=service.namespace, name=service.name, port=service.port)
        )

    async def refresh(self) -> None:
        """Look at what is registered, and whether it answers."""
        async with self._lock:
            found = await self._context.all(APIService)
            self._remote = {each.metadata.name: each for each in found if each.spec.service is not None}
            self._lists = {name: listed for name, listed in self._lists.items() if name in self._remote}
            await asyncio.gather(*map(self._check, self._remote.values()))

    async def _check(self, registered: APIService) -> None:
        name, reason, message = registered.metadata.name, "Passed", "all checks passed"
        try:
            self._lists[name] = await self._resources(registered)
        except _Failed as failure:
            self._lists.pop(name, None)
            reason, message = failure.reason, str(failure)
        await self._tell(registered, reason, message)

    async def _resources(self, registered: APIService) -> pages.Listed:
        """The resources of a group version. Raises _Failed."""
        spec = registered.spec
        assert spec.service is not None
        handler = self._handler(registered)
        if handler is None:
            where = f'service/{spec.service.name} in "{spec.service.namespace}"'
            raise _Failed("ServiceNotFound", f"{where} is not present")
        path = f"/apis/{spec.group}/{spec.version}"
        request = _passed_on(Request("GET", path, headers={"accept": "application/json"}), AGGREGATOR)
        try:
            from podfit.apiserver.admission.webhook_client import within

            response = await within(self._context.clock, ANSWER_SECONDS, handler(request))
            body = await within(self._context.clock, ANSWER_SECONDS, response.read())
            listed = msgspec.json.decode(body, type=pages.Listed) if response.status == 200 else None
        except (OSError, TimeoutError, ApiError, msgspec.DecodeError) as error:
            raise _Failed("FailedDiscoveryCheck", f"failing or missing response from {path}: {error}") from None
        if listed is None or listed.kind != "APIResourceList":
            text = f"failing or missing response from {path}: bad status from {path}: {response.status}"
            raise _Failed("FailedDiscoveryCheck", text)
        return listed

    async def _tell(self, registered: APIService, reason: str, message: str) -> None:
        """Write the condition, where it is another than before."""
        status = "True" if reason == "Passed" else "False"
        old = next((each for each in registered.status.conditions if each.type == AVAILABLE), None)
        if old is not None and (old.status, old.reason, old.message) == (status, reason, message):
            return
        now = format_time(self._context.clock.now())
        since = old.last_transition_time if old is not None and old.status == status else now
        new = APIServiceCondition(
            type=AVAILABLE, status=status, reason=reason, message=message, last_transition_time=since
        )
        kept = tuple(each for each in registered.status.conditions if each.type != AVAILABLE)
        objects = Stored[APIService](self._context.store, self._info)
        expected = int(registered.metadata.resource_version)
        try:
            told = replace(registered, status=APIServiceStatus(conditions=(*kept, new)))
            await objects.update(told, expected=expected)
        except ApiError as error:  # written or deleted meanwhile, so there will be another look
            log.info("availability not written apiservice=%s reason=%s", registered.metadata.name, error)

    async def _repeat(self) -> None:
        while True:
            await self._context.clock.sleep(CHECK_SECONDS)
            try:
                await self.refresh()
            except StoreError as error:
                log.warning("availability not looked at reason=%s", error)


class _Failed(Exception):
    """A backend is not available."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def _unavailable() -> ApiError:
    text = "the server is currently unable to handle the request"
    return ApiError(503, "ServiceUnavailable", text, {"retryAfterSeconds": 1})


def _passed_on(request: Request, identity: Identity) -> Request:
    """The request without what proves who the user is, and with the name of the user instead."""
    kept = {
        name: value
        for name, value in request.headers.items()
        if name not in _DROPPED and not name.startswith(_DROPPED_KINDS)
    }
    kept |= {"x-remote-user": identity.user, "x-remote-group": ",".join(identity.groups)}
    kept |= {f"x-remote-extra-{key}": ",".join(values) for key, values in identity.extra.items()}
    return Request(request.method, request.path, request.query, kept, request.body, identity=identity)
