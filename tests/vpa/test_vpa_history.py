"""What was used before: the queries that are sent, who asks, and what the first recommendation makes of it."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from podfit.decide.autoscaling.tracked import PodKey
from podfit.process.vpa.history import HistoryOptions
from podfit.vpa.history import promql
from podfit.vpa.history.prometheus import HistorySettings, queries, read_history
from podfit.vpa.history.promql import Login, PromQL, QueryFailed
from support.clock import FakeClock
from support.vpa_world import World, recommending

HOUR = 3600.0
DAYS = 8


class Prometheus:
    """Answers plain HTTP with what a test says, by query."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.asked: list[tuple[str, dict[str, str], dict[str, str]]] = []
        self._server: asyncio.Server | None = None

    async def start(self) -> str:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        line, *rest = head.split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in rest if line)}
        url = urlsplit(line.split(" ")[1])
        asked = {name: values[0] for name, values in parse_qs(url.query).items()}
        self.asked.append((url.path, asked, headers))
        found = self.answers.get(asked["query"], [])
        failed = {"status": "error", "error": found}
        answer = failed if isinstance(found, str) else {"status": "success", "data": {"result": found}}
        body = json.dumps(answer).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
        await writer.drain()
        writer.close()


@pytest.fixture
async def prometheus() -> AsyncIterator[tuple[Prometheus, str]]:
    made = Prometheus()
    try:
        yield made, await made.start()
    finally:
        await made.stop()


def hourly(clock: FakeClock, pod: str, value: float, container: str = "app") -> dict[str, Any]:
    now = clock.now().timestamp()
    values = [[now - HOUR * hour, str(value)] for hour in range(DAYS * 24, 0, -1)]
    return {"metric": {"namespace": "default", "pod_name": pod, "name": container}, "values": values}


@pytest.mark.row("V-044")
async def test_vpa_sends_upstreams_queries(prometheus: tuple[Prometheus, str]) -> None:
    server, address = prometheus
    clock = FakeClock()
    client = PromQL(f"{address}/base/", clock)
    await read_history(client, HistoryOptions().settings(""), clock.now().timestamp())
    await client.close()
    selector = '{job="kubernetes-cadvisor", pod_name=~".+", name!="POD", name!=""}'
    assert [(path, asked["query"]) for path, asked, _ in server.asked] == [
        ("/base/api/v1/query_range", f"rate(container_cpu_usage_seconds_total{selector}[1h])"),
        ("/base/api/v1/query_range", f"container_memory_working_set_bytes{selector}"),
        ("/base/api/v1/query", 'up{job="kubernetes-pods"}'),
    ]
    _, asked, _ = server.asked[0]
    assert (float(asked["end"]) - float(asked["start"]), asked["step"]) == (DAYS * 86_400, "3600")
    assert queries(HistorySettings(namespace="x", job=""))[1] == (
        'container_memory_working_set_bytes{pod_name=~".+", name!="POD", name!="", namespace="x"}'
    )


@pytest.mark.row("V-044")
@pytest.mark.parametrize(
    ("login", "said"),
    [
        (Login(token=lambda: "secret", user="u", password="p"), "Bearer secret"),
        (Login(user="u", password="p"), "Basic dTpw"),
        (Login(), None),
    ],
    ids=["token", "user", "nobody"],
)
async def test_vpa_shows_a_token_before_a_password(
    prometheus: tuple[Prometheus, str], login: Login, said: str | None
) -> None:
    server, address = prometheus
    client = PromQL(address, FakeClock(), login=login)
    await anext(client.instant("up"), None)
    await client.close()
    assert server.asked[0][2].get("authorization") == said


async def test_vpa_says_why_a_query_has_failed(prometheus: tuple[Prometheus, str]) -> None:
    server, address = prometheus
    server.answers["up"] = "too many samples"
    client = PromQL(address, FakeClock())
    with pytest.raises(QueryFailed, match="too many samples"):
        await anext(client.instant("up"), None)
    await server.stop()
    with pytest.raises(QueryFailed, match="127"):
        await anext(client.instant("up"), None)
    await client.close()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with recommending(tmp_path) as made:
        yield made


async def start(world: World, address: str) -> None:
    settings = HistorySettings()

    async def history(now: float) -> Any:
        client = PromQL(address, world.clock)
        try:
            return await read_history(client, settings, now)
        finally:
            await client.close()

    await world.start(history=history)


@pytest.mark.row("V-044")
async def test_vpa_recommends_from_history_at_its_first_pass(world: World, prometheus: tuple[Prometheus, str]) -> None:
    """Also of pods that are gone, by the labels that they had; and as from eight days of living."""
    server, address = prometheus
    cpu, memory = queries(HistorySettings())
    gone = hourly(world.clock, "web-0", 1.5)
    server.answers = {
        cpu: [hourly(world.clock, "web-1", 0.5), gone],
        memory: [hourly(world.clock, "web-1", 400 * 2**20)],
        'up{job="kubernetes-pods"}': [
            {"metric": {"kubernetes_namespace": "default", "kubernetes_pod_name": "web-0", "pod_label_app": "web"},
             "values": [[world.clock.now().timestamp(), "1"]]}
        ],
    }  # fmt: skip
    await world.deployment("web")
    await world.pod("web-1", "web")
    await world.vpa("web")
    await start(world, address)
    await world.minutes(1)
    found = (await world.sizes("web"))["app"]
    assert 1500 < found.target["cpu"].milli() < 1900
    assert 400 < found.target["memory"].value() / 2**20 < 520
    ratio = found.upper_bound["cpu"].milli() / found.target["cpu"].milli()
    assert ratio < 1.3, "eight days are as sure as eight days of living"
    assert await world.checkpoints() == {}


async def test_vpa_goes_on_without_a_history_that_cannot_be_read(world: World) -> None:
    await world.deployment("web")
    await world.pod("web-1", "web")
    await world.vpa("web")
    world.usage.used = {"web-1": {"app": ("500m", "400Mi")}}
    await start(world, "http://127.0.0.1:9")
    await world.minutes(2)
    assert list(await world.sizes("web")) == ["app"]


async def test_vpa_reads_no_more_than_so_much_of_an_answer(
    prometheus: tuple[Prometheus, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, address = prometheus
    cpu, _ = queries(HistorySettings())
    server.answers[cpu] = [{"metric": {"name": "app"}, "values": [[number, "0.5"] for number in range(1000)]}]
    monkeypatch.setattr(promql, "LARGEST", 10_000)
    client = PromQL(address, FakeClock())
    with pytest.raises(QueryFailed, match="the answer is larger than 10000 bytes"):
        await read_history(client, HistorySettings(), 10.0)
    await client.close()
    assert [headers["accept-encoding"] for _, _, headers in server.asked] == ["identity"]


async def test_vpa_takes_no_sample_that_is_no_number(prometheus: tuple[Prometheus, str]) -> None:
    server, address = prometheus
    cpu, _ = queries(HistorySettings())
    metric = {"namespace": "default", "pod_name": "web-1", "name": "app"}
    server.answers[cpu] = [{"metric": metric, "values": [[1, "NaN"], [2, "+Inf"], [3, "0.5"]]}]
    client = PromQL(address, FakeClock())
    found = await read_history(client, HistorySettings(), 10.0)
    await client.close()
    assert [(amount.pod, amount.time, amount.amount) for amount in found.cpu] == [(PodKey("default", "web-1"), 3, 0.5)]
