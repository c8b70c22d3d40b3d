"""Requests to an aggregated API server: its discovery, which tells whether it is available, and users' requests.

It is told who asks: by the identity where its handler is in this process, else by upstream's headers of a front proxy,
which it believes because of the certificate that is shown to it.
"""

from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from podfit.api.admissionregistration.v1.types import ServiceReference
from podfit.api.apiregistration.v1.types import APIService
from podfit.apiserver.context import Context
from podfit.apiserver.extensions.aggregation import discovery
from podfit.apiserver.extensions.backend_addresses import Reached, Unreached
from podfit.apiserver.extensions.backends import Backends, Trusted, joined, network_text, server_of
from podfit.apiserver.extensions.deadline import with_deadline
from podfit.apiserver.housekeeping.extension_authentication import FrontProxy
from podfit.core.errors import ApiError
from podfit.net.streams import close
from podfit.net.wire import Handler, Headers, Identity, Request, Response

ANSWER_SECONDS = 5.0
DISCOVERY_BYTES = 3 * 2**20  # of the list of what a group version serves
AGGREGATOR = Identity("system:kube-aggregator", ("system:masters",))
REQUEST_SECONDS = 60.0  # for the head of an answer; upstream's bound of requests that are not streams
OF_THE_CONNECTION = frozenset(
    (
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "content-length",
        "upgrade",
    )
)
_DROPPED = OF_THE_CONNECTION | {"authorization", "host", "accept-encoding"}
_DROPPED_KINDS = ("impersonate-", "x-remote-")
REDIRECTED = "the backend attempted to redirect this request, which is not permitted"
SWITCHED = "the backend attempted to switch protocols, which is not supported"


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
        """What the backend answers to this user. Raises OSError, and TimeoutError when it does not begin to."""
        reference, plain = reference_of(registered), without_proof(request)
        if (handler := self._handler(reference)) is not None:
            return await handler(_in_process(plain, identity))
        spec = registered.spec
        trusted = Trusted(spec.ca_bundle, verify=not spec.insecure_skip_tls_verify)
        headers = remote_headers(identity)
        sent = self._backends.send(reference, plain, trusted, proof=self._proof, more=headers)
        answer = await with_deadline(self._context.clock, REQUEST_SECONDS, sent)
        if refusal := _refusal(answer):
            await _hang_up(answer)
            return Response(502, {"content-type": "text/plain; charset=utf-8"}, refusal.encode())
        return Response(answer.status, passed_on(answer.headers, OF_THE_CONNECTION), answer.body)

    async def resources(self, registered: APIService, place: Reached | Unreached | None) -> discovery.Listed:
        """The resources of its group version. Raises Unavailable."""
        if isinstance(place, Unreached):
            raise Unavailable(place.reason, place.message)
        path = f"/apis/{registered.spec.group}/{registered.spec.version}"
        url = f"https://{joined(place.addresses[0])}{path}" if place is not None else path
        request = Request("GET", path, headers={"accept": "application/json"})
        try:
            response = await with_deadline(
                self._context.clock, ANSWER_SECONDS, self.answer(registered, request, AGGREGATOR)
            )
            body = await with_deadline(self._context.clock, ANSWER_SECONDS, response.read(DISCOVERY_BYTES))
            listed = msgspec.json.decode(body, type=discovery.Listed) if response.status == 200 else None
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
    extra = ((f"X-Remote-Extra-{_escaped(key)}", value) for key, values in identity.extra.items() for value in values)
    return ("X-Remote-User", identity.user), *(("X-Remote-Group", group) for group in identity.groups), *extra


def _refusal(answer: Response) -> str:
    """Why an answer is not the client's; empty when it is."""
    if answer.status < 200:
        return SWITCHED
    if 300 <= answer.status < 400 and "location" in answer.headers:
        return REDIRECTED
    return ""


async def _hang_up(answer: Response) -> None:
    if not isinstance(answer.body, bytes):
        await close(answer.body)


def passed_on(headers: Headers, dropped: frozenset[str]) -> dict[str, str]:
    """Without those of the connection, and those that it names as such."""
    named = {name.strip().lower() for name in headers.get("connection", "").split(",")}
    return {name: value for name, value in headers.items() if name not in dropped and name not in named}


def _failing(url: str, why: str) -> Unavailable:
    return Unavailable("FailedDiscoveryCheck", f"failing or missing response from {url}: {why}")


def without_proof(request: Request) -> Request:
    """The request without what proves, or says, who the user is."""
    passed = passed_on(request.headers, _DROPPED)
    kept = {name: value for name, value in passed.items() if not name.startswith(_DROPPED_KINDS)}
    return Request(request.method, request.path, request.query, kept | {"accept-encoding": "identity"}, request.body)


def _in_process(plain: Request, identity: Identity) -> Request:
    values: dict[str, tuple[str, ...]] = {}
    for name, value in remote_headers(identity):
        values[name.lower()] = (*values.get(name.lower(), ()), value)
    headers = {**plain.headers, **{name: ",".join(told) for name, told in values.items()}}
    return replace(plain, headers=headers, identity=identity, repeated=values)


def _escaped(key: str) -> str:
    """What a header's name has no letters for, upper case among it, in percent."""
    return quote(key, safe="!#$&'*+^`|")
