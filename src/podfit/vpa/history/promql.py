"""The HTTP API of Prometheus, and of any server that speaks it: a query of now, and one of a range of time.

Who can be scraped can add series: answers are bounded, and decoded a few series at once.
"""

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from urllib.parse import urlsplit

import msgspec

from podfit.core.clock import Clock
from podfit.net.http_client import HttpsClient
from podfit.net.tls import client_context
from podfit.net.wire import Request

LARGEST = 96 * 2**20
"""Bytes of an answer; 10,000 containers over 8 days, hour by hour, are 60 MB."""
LARGEST_SERIES = 2**20
"""Bytes of a series; Prometheus gives 11,000 samples at most, which are 350 KB."""
MOST_SAMPLES = 2_000_000
"""Of an answer; those of 10,000 containers are 1.92 million."""
AT_ONCE = 2000
"""Samples that are decoded in one turn of the event loop, some milliseconds."""
OK = 200


class QueryFailed(ConnectionError):
    """There is no answer, or one that says why not."""


class Series(msgspec.Struct, frozen=True):
    """Labels, and pairs of seconds since 1970 and a number as text."""

    metric: dict[str, str] = msgspec.field(default_factory=dict)
    values: tuple[tuple[float, str], ...] = ()
    value: tuple[float, str] | None = None

    @property
    def samples(self) -> tuple[tuple[float, str], ...]:
        """The samples, of a query of now too, which has one."""
        return self.values or ((self.value,) if self.value is not None else ())


class _Data(msgspec.Struct, frozen=True, rename="camel"):
    result: tuple[msgspec.Raw, ...] = ()


class _Answer(msgspec.Struct, frozen=True):
    status: str = ""
    data: _Data = _Data()
    error: str = ""


class Login(msgspec.Struct, frozen=True, kw_only=True):
    """A `token` counts more than a user; it is asked for with each query, since tokens rotate."""

    token: Callable[[], str] | None = None
    user: str = ""
    password: str = ""

    def header(self) -> dict[str, str]:
        if self.token is not None:
            return {"authorization": f"Bearer {self.token()}"}
        if self.user:
            word = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
            return {"authorization": f"Basic {word}"}
        return {}


class PromQL:
    """At `address`, such as http://prometheus.monitoring.svc; `timeout` in seconds is for one query."""

    def __init__(
        self,
        address: str,
        clock: Clock,
        *,
        login: Login = Login(),  # noqa: B008  (frozen)
        insecure: bool = False,
        timeout: float = 300.0,
    ) -> None:
        parts = urlsplit(address)
        self.address = address
        self._base, self._login, self._clock, self._timeout = parts.path.rstrip("/"), login, clock, timeout
        tls = client_context(verify=not insecure)
        self._http = HttpsClient(f"{parts.scheme}://{parts.netloc}", tls, trusted=False)

    async def close(self) -> None:
        await self._http.close()

    async def instant(self, query: str) -> AsyncIterator[Series]:
        """Raises QueryFailed."""
        encoded = await self._ask("query", {"query": query, "time": _time(self._clock.now().timestamp())})
        async for series in self._decoded(encoded):
            yield series

    async def range(self, query: str, begin: float, end: float, step: float) -> AsyncIterator[Series]:
        """From `begin` to `end`, in seconds since 1970. Raises QueryFailed."""
        when = {"start": _time(begin), "end": _time(end), "step": _time(step)}
        async for series in self._decoded(await self._ask("query_range", {"query": query, **when})):
            yield series

    async def _decoded(self, encoded: tuple[msgspec.Raw, ...]) -> AsyncIterator[Series]:
        """A few in each turn of the event loop."""
        number, turn = 0, 0
        for raw in encoded:
            if memoryview(raw).nbytes > LARGEST_SERIES:
                raise QueryFailed(f"{self.address}: a series is larger than {LARGEST_SERIES} bytes")
            try:
                series = msgspec.json.decode(raw, type=Series)
            except msgspec.DecodeError as error:
                raise QueryFailed(f"{self.address}: {error}") from error
            number += len(series.samples)
            if number > MOST_SAMPLES:
                raise QueryFailed(f"{self.address}: the answer has more than {MOST_SAMPLES} samples")
            yield series
            turn += 10 + len(series.samples)
            if turn > AT_ONCE:
                turn = 0
                await asyncio.sleep(0)

    async def _ask(self, verb: str, parameters: dict[str, str]) -> tuple[msgspec.Raw, ...]:
        parameters["timeout"] = f"{self._timeout:g}s"
        query = {name: (value,) for name, value in parameters.items()}
        plain = {"accept": "application/json", "accept-encoding": "identity"}  # a small answer could be a large one
        headers = {**plain, **self._login.header()}
        request = Request("GET", f"{self._base}/api/v1/{verb}", query, headers)
        try:
            response = await self._http.send(request, read_timeout=self._timeout)
            body = await response.read(LARGEST)
        except (OSError, ValueError) as error:
            raise QueryFailed(f"{self.address}: {error}") from error
        try:
            answer = msgspec.json.decode(body, type=_Answer)
        except msgspec.DecodeError as error:
            said = body[:200].decode(errors="replace").strip() if response.status != OK else str(error)
            raise QueryFailed(f"{self.address}: HTTP status {response.status}: {said}") from error
        if answer.status != "success":
            raise QueryFailed(f"{self.address}: {answer.error or f'HTTP status {response.status}'}")
        return answer.data.result


def _time(seconds: float) -> str:
    return f"{seconds:.3f}".rstrip("0").rstrip(".")
