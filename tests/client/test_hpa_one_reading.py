"""Usage is read once for all who ask within a few seconds, a failure as well."""

import asyncio

import pytest

from podfit.client.pod_usage import LASTING, PodUsages
from podfit.client.rest import Client
from podfit.core.errors import ApiError
from podfit.net.wire import Request, Response
from support.clock import FakeClock


class MetricsApi:
    near = True

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.code = 200
        self.body = b'{"items":[{"metadata":{"namespace":"a","name":"p"}},{"metadata":{"namespace":"b","name":"q"}}]}'

    async def send(self, request: Request) -> Response:
        self.asked.append(request.path)
        await asyncio.sleep(0)
        return Response(self.code, {"content-type": "application/json"}, self.body)

    async def close(self) -> None: ...


async def test_hpa_and_vpa_read_usage_once() -> None:
    clock, api = FakeClock(), MetricsApi()
    usages = PodUsages(Client(api), clock)
    found = await asyncio.gather(*(usages.of(namespace) for namespace in ("a", "b", "c") * 100))
    assert [sorted(pods) for pods in found[:3]] == [["p"], ["q"], []]
    assert len(await usages.read()) == 2
    assert api.asked == ["/apis/metrics.k8s.io/v1beta1/pods"]
    await clock.advance(LASTING)
    await usages.read()
    assert len(api.asked) == 2


async def test_hpa_and_vpa_are_told_of_one_failure() -> None:
    clock, api = FakeClock(), MetricsApi()
    usages, api.code = PodUsages(Client(api), clock), 503
    api.body = b'{"kind":"Status","code":503,"message":"away"}'
    for _ in range(50):
        with pytest.raises(ApiError, match="away"):
            await usages.of("a")
    api.code, api.body = 200, b'{"items":[{"metadata":{"name":1}}]}'
    await clock.advance(LASTING)
    for _ in range(50):
        with pytest.raises(ValueError, match="str"):
            await usages.read()
    assert len(api.asked) == 2
