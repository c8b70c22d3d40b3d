"""Asking who serves a group version: for what it serves, which tells whether it is there, and for what users want.

It is told who asks: by the identity where its handler is in this process, else by upstream's headers of a front proxy,
which it believes because of the certificate that is shown to it.
"""

import msgspec

from podfit.api.admissionregistration import ServiceReference
from podfit.api.apiregistration import APIService
from podfit.apiserver.aggregation import pages
from podfit.apiserver.backends import Backends, Trusted, joined, network_text, server_of
from podfit.apiserver.context import Context
from podfit.apiserver.housekeeping.extension import FrontProxy
from podfit.apiserver.within import within
from podfit.core.errors import ApiError
from podfit.decide.backends import Reached, Unreached
from podfit.net.wire import Handler, Identity, Request, Response

ANSWER_SECONDS = 5.0
AGGREGATOR = Identity("system:kube-aggregator", ("system:masters",))
_DROPPED = ("authorization", "connection", "host", "content-length", "transfer-encoding", "accept-encoding")
_DROPPED_KINDS = ("impersonate-", "x-remote-")
_OF_THE_CONNECTION = frozenset((
    "connection", "keep-alive", "transfer-encoding", "content-length", "content-encoding", "trailer", "upgrade",
))  # fmt: skip


class Unavailable(Exception):
    """A backend is not available, and the condition says why."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Remotes:
    """The backends of all APIServices with a service."""

    def __init__(self, context: Context, backends: Backends, front_proxy: FrontProxy | None) -> None:
        self._context, self._backends = context, backends
        self._proof = front_proxy.proof if front_proxy is not None else None

    async def place(self, registered: APIService) -> Reached | Unreached | None:
        """Where the backend is; None when it is in this process."""
        reference = reference_of(registered)
        return None if self._handler(reference) is not None else await self._backends.find(reference)

    async def answer(self, registered: APIService, request: Request, identity: Identity) -> Response:
        """What the backend answers to this user. Raises OSError."""
        reference, plain = reference_of(registered), _without_proof(request)
        if (handler := self._handler(reference)) is not None:
            return await handler(_in_process(plain, identity))
        spec = registered.spec
        trusted = Trusted(spec.ca_bundle, verify=not spec.insecure_skip_tls_verify)
        headers = remote_headers(identity)
        answer = await self._backends.send(reference, plain, trusted, proof=self._proof, more=headers)
        kept = {name: value for name, value in answer.headers.items() if name not in _OF_THE_CONNECTION}
        return Response(answer.status, kept, answer.body)

    async def resources(self, registered: APIService, place: Reached | Unreached | None) -> pages.Listed:
        """The resources of its group version. Raises Unavailable."""
        if isinstance(place, Unreached):
            raise Unavailable(place.reason, place.message)
        path = f"/apis/{registered.spec.group}/{registered.spec.version}"
        url = f"https://{joined(place.addresses[0])}{path}" if place is not None else path
        request = Request("GET", path, headers={"accept": "application/json"})
        try:
            response = await within(self._context.clock, ANSWER_SECONDS, self.answer(registered, request, AGGREGATOR))
            body = await within(self._context.clock, ANSWER_SECONDS, response.read())
            listed = msgspec.json.decode(body, type=pages.Listed) if response.status == 200 else None
        except (OSError, TimeoutError, ApiError, msgspec.DecodeError) as error:
            raise _failing(url, self._text(registered, error)) from None
        if listed is None or listed.kind != "APIResourceList":
            raise _failing(url, f"bad status from {url}: {response.status}")
        return listed

    def _text(self, registered: APIService, error: Exception) -> str:
        reference = reference_of(registered)
        return network_text(error, server_of(reference), self._backends.dialled(reference))

    def _handler(self, reference: ServiceReference) -> Handler | None:
        return self._context.services(reference)


def reference_of(registered: APIService) -> ServiceReference:
    service = registered.spec.service
    assert service is not None
    return ServiceReference(namespace=service.namespace, name=service.name, port=service.port)


def remote_headers(identity: Identity) -> tuple[tuple[str, str], ...]:
    """Who asks, a header for each value: backends do not look for commas."""
    extra = ((f"X-Remote-Extra-{_escaped(key)}", each) for key, values in identity.extra.items() for each in values)
    return ("X-Remote-User", identity.user), *(("X-Remote-Group", each) for each in identity.groups), *extra


def _failing(url: str, why: str) -> Unavailable:
    return Unavailable("FailedDiscoveryCheck", f"failing or missing response from {url}: {why}")


def _without_proof(request: Request) -> Request:
    """The request without what proves, or says, who the user is."""
    kept = {
        name: value
        for name, value in request.headers.items()
        if name not in _DROPPED and not name.startswith(_DROPPED_KINDS)
    }
    return Request(request.method, request.path, request.query, kept | {"accept-encoding": "identity"}, request.body)


def _in_process(plain: Request, identity: Identity) -> Request:
    named = {"x-remote-user": identity.user, "x-remote-group": ",".join(identity.groups)}
    named |= {f"x-remote-extra-{key}": ",".join(values) for key, values in identity.extra.items()}
    return Request(
        plain.method, plain.path, plain.query, {**plain.headers, **named}, plain.body, identity=identity)


def _escaped(key: str) -> str:
    """What a header's name has no letters for, upper case among it, in percent."""
    from urllib.parse import quote

    return quote(key, safe="!#$&'*+^`|")
