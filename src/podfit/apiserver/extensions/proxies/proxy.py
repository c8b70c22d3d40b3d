"""`pods/proxy` and `services/proxy`: a request passed on to a pod over HTTP, without what says or proves who asks.

Each has a connection of its own, which ends with its answer. A certificate is not verified, as upstream: nobody could
say which one a pod is to have. Answers are streamed; links in HTML stay as they are.
"""

import asyncio
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from functools import cached_property
from urllib.parse import urlsplit, urlunsplit

from msgspec.structs import replace

from podfit.apiserver.context import Context
from podfit.apiserver.extensions.aggregation.remote import OF_THE_CONNECTION, passed_on, without_proof
from podfit.apiserver.extensions.backends import network_text
from podfit.apiserver.extensions.deadline import with_deadline
from podfit.apiserver.extensions.proxies.places import NOT_REACHED, pod_url, service_url, unavailable
from podfit.apiserver.request.request_info import RequestInfo, proxied_path
from podfit.core.errors import ApiError
from podfit.net.http_client import HttpsClient
from podfit.net.raw_streams import dial, join
from podfit.net.reachability import target_of
from podfit.net.streams import close
from podfit.net.tls import client_context
from podfit.net.websocket import is_websocket
from podfit.net.wire import Duplex, Headers, Identity, Request, Response

HEAD_SECONDS = 60.0  # until an answer begins
SILENCE_SECONDS = 600.0  # between two pieces of one
MOST_WAITING, MOST_OF_USER = 32, 16
"""Requests whose answer has not begun, of all and of one user: each has a seat of its priority level meanwhile."""
RETRY_SECONDS = 1
_HANDSHAKE = ("upgrade", "sec-websocket-")


class Proxy:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._waiting: Counter[str] = Counter()

    async def answer(self, request_info: RequestInfo, request: Request, identity: Identity, path: str) -> Response:
        """What the pod answers to `path`. Raises ApiError: 400, 404, 429, or 503 where it cannot be reached."""
        url_of = pod_url if request_info.resource == "pods" else service_url
        server = await url_of(self._context, request_info.namespace, request_info.name)
        if not path and request.method in ("GET", "HEAD") and not is_websocket(request):
            return _to_the_root(request)
        sent = _for_the_pod(request, path)
        with self._one_more(identity.user):
            if is_websocket(request):
                return await self._upgraded(server, sent)
            answer = await self._sent(server, sent)
        return replace(answer, headers=_answered_headers(answer.headers, request, server))

    async def _sent(self, server: str, request: Request) -> Response:
        client = HttpsClient(server, self._tls, trusted=False)
        single = {name: value for name, value in request.headers.items() if name not in request.repeated}
        several = tuple((name, value) for name, values in request.repeated.items() for value in values)
        kept = False
        try:
            asked = client.send(replace(request, headers=single), read_timeout=SILENCE_SECONDS, more=several)
            answer = await with_deadline(self._context.clock, HEAD_SECONDS, asked)
            if answer.status < 200:
                raise unavailable(NOT_REACHED.format("the protocol was switched unasked"))
            if isinstance(answer.body, bytes):
                return answer
            kept = True
            return replace(answer, body=_Answered(answer.body, client))
        except TimeoutError:
            text = f"no answer began within {HEAD_SECONDS:.0f} s"
            raise ApiError(504, "Timeout", NOT_REACHED.format(text)) from None
        except (OSError, ValueError) as error:
            raise unavailable(NOT_REACHED.format(network_text(error, server))) from None
        finally:
            if not kept:
                await client.close()

    async def _upgraded(self, server: str, request: Request) -> Response:
        try:
            answered = await dial(server, request, tls=self._tls)
        except OSError as error:
            raise unavailable(NOT_REACHED.format(network_text(error, server))) from None
        if isinstance(answered, Response):
            return replace(answered, headers=_answered_headers(answered.headers, request, server))
        answer, dialled = answered

        async def carry(duplex: Duplex) -> None:
            try:
                await join(duplex, dialled)
            finally:
                dialled.close()

        return replace(answer, upgrade=carry)

    @contextmanager
    def _one_more(self, user: str) -> Iterator[None]:
        """Raises 429 for more than may wait."""
        if self._waiting.total() >= MOST_WAITING or self._waiting[user] >= MOST_OF_USER:
            text = "too many requests wait for answers of pods, please try again later."
            raise ApiError(429, "TooManyRequests", text, {"retryAfterSeconds": RETRY_SECONDS})
        self._waiting[user] += 1
        try:
            yield
        finally:
            self._waiting -= Counter((user,))

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return client_context(verify=False)


class _Answered:
    """The body of an answer; its connection ends with it, or when nobody wants it any more."""

    def __init__(self, body: AsyncIterator[bytes], client: HttpsClient) -> None:
        self._body, self._client = body, client

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            return await anext(self._body)
        except BaseException:
            await self.aclose()
            raise

    async def aclose(self) -> None:
        await asyncio.gather(close(self._body), self._client.close())


def _to_the_root(request: Request) -> Response:
    """Relative links of a page lead nowhere else than through the proxy."""
    return Response(301, {"location": target_of(replace(request, path=f"{request.path}/"))})


def _for_the_pod(request: Request, path: str) -> Request:
    """For the pod: its path, and where the request came from."""
    plain = without_proof(request)
    headers = dict(plain.headers)
    if is_websocket(request):
        headers |= {name: value for name, value in request.headers.items() if name.startswith(_HANDSHAKE)}
    headers["accept-encoding"] = request.headers.get("accept-encoding", "identity")
    headers["x-forwarded-uri"] = target_of(replace(request, query={}))
    headers["x-forwarded-host"] = request.headers.get("host", "")
    headers["x-forwarded-proto"] = "https"
    came = (*request.values_of("x-forwarded-for"), *filter(None, (request.remote,)))
    if came:
        headers["x-forwarded-for"] = ", ".join(came)
    repeated = {name: values for name, values in request.repeated.items() if name in headers}
    repeated.pop("x-forwarded-for", None)
    return Request(request.method, path or "/", request.query, headers, request.body, repeated=repeated)


def _answered_headers(headers: Headers, request: Request, server: str) -> dict[str, str]:
    """Without those of the connection and of who may read it; a redirect stays behind the proxy."""
    kept = {
        name: value
        for name, value in passed_on(headers, OF_THE_CONNECTION).items()
        if not name.startswith("access-control-")
    }
    if "location" in kept:
        kept["location"] = _behind_the_proxy(kept["location"], request, server)
    return kept


def _behind_the_proxy(location: str, request: Request, server: str) -> str:
    """Where a redirect leads for the client; one to another host, or relative, stays as it is."""
    try:
        there = urlsplit(location)
    except ValueError:
        return location
    hosts = ("", urlsplit(server).netloc, request.headers.get("host", ""))
    if there.netloc not in hosts or not there.path.startswith("/"):
        return location
    prefix = target_of(replace(request, path=request.path.removesuffix(proxied_path(request.path)), query={}))
    path = there.path if there.path.startswith(f"{prefix}/") else prefix + there.path
    return urlunsplit(("", "", path, there.query, there.fragment))
