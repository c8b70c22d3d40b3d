"""Kubelets that tell what is no measurement, too much of it, or of pods that are elsewhere."""

from collections.abc import Callable
from typing import Any

import pytest

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta import codec
from podfit.metrics.points import Batch, Points
from podfit.metrics.scraper import MOST_SAMPLES, Scraper, ScrapeSettings, TooManySamples, read
from podfit.net.exposition import MOST_LINE
from podfit.net.metrics import Metrics
from support.clock import FakeClock
from support.turns import worst_ms

LINE = 'container_{}{{container="c",namespace="shop",pod="{}"}} {} 1000000\n'
CPU, MEMORY = "cpu_usage_seconds_total", "memory_working_set_bytes"
NUMBERS = ("+Inf", "-Inf", "NaN", "-1", "1e300", "9" * 400, "x")


def of_pod(name: str, cpu: str = "1", memory: str = "1") -> str:
    return LINE.format(CPU, name, cpu) + LINE.format(MEMORY, name, memory)


@pytest.mark.parametrize("number", NUMBERS)
async def test_what_is_no_amount_is_no_reading_and_ends_no_round(number: str) -> None:
    body = of_pod("a", cpu=number) + of_pod("b", memory=number) + of_pod("good")
    assert list((await read("n1", body, 5.0)).pods) == [("shop", "good")]


@pytest.mark.parametrize("time", ["+Inf", "NaN", "1e300", "-1000"])
async def test_what_is_no_time(time: str) -> None:
    body = f"node_cpu_usage_seconds_total 1 {time}\nnode_memory_working_set_bytes 1 1000\n"
    assert await read("n1", body, 5.0) == Batch()


def many_labels() -> str:
    labels = ",".join(f'a{number}=""' for number in range(100_000))
    return f"node_cpu_usage_seconds_total{{{labels}}} 1\n"


HOSTILE: dict[str, Callable[[], str]] = {
    "a line of many labels": many_labels,
    "many lines as long as may be": lambda: (
        f'{{}}node_cpu_usage_seconds_total{{a="{",=" * (MOST_LINE // 2 - 30)}"}} 1\n' * 500
    ),
    "lines of no metric": lambda: "x 1\n" * 500_000,
    "empty lines": lambda: "\n" * 2_000_000,
    "a line without end": lambda: "x" * (8 << 20),
    "escapes": lambda: 'node_cpu_usage_seconds_total{a="' + '\\\\\\"' * 500_000 + '"} 1\n',
    "samples": lambda: "".join(of_pod(f"p{number}") for number in range(MOST_SAMPLES // 2)),
}
"""Made when they are needed: a session keeps its parameters."""


@pytest.mark.parametrize("name", HOSTILE)
async def test_no_answer_holds_the_event_loop_up(name: str) -> None:
    body = HOSTILE[name]()
    assert await worst_ms(lambda: read("n1", body, 5.0), most=50) < 50


async def test_more_samples_than_a_node_has_are_no_answer() -> None:
    with pytest.raises(TooManySamples, match="more than 20000 samples"):
        await read("n1", of_pod("a") * (MOST_SAMPLES // 2 + 1), 5.0)


class Known:
    """What a scraper reads of an informer."""

    def __init__(self, *objects: Any) -> None:
        self._objects = objects

    def list(self) -> list[Any]:
        return list(self._objects)

    def get(self, name: str, namespace: str) -> Any:
        return next((obj for obj in self._objects if obj.metadata.name == name), None)


def pod_on(name: str, node: str) -> Pod:
    return codec.convert({"metadata": {"name": name, "namespace": "shop"}, "spec": {"nodeName": node}}, Pod)


async def test_a_kubelet_tells_nothing_of_pods_of_other_nodes_and_spoils_no_round() -> None:
    bodies = {
        "bad": of_pod("theirs", cpu="999", memory="+Inf") + of_pod("theirs", cpu="999"),
        "good": of_pod("theirs") + of_pod("unknown"),
        "worse": of_pod("x") * MOST_SAMPLES,
    }

    async def ask(node: Node) -> str:
        return bodies[node.metadata.name]

    nodes = [codec.convert({"metadata": {"name": name}}, Node) for name in bodies]
    points, clock = Points(15.0), FakeClock()
    known: Any = Known(*nodes)
    pods: Any = Known(pod_on("theirs", "good"))
    scraper = Scraper(known, pods, ask, points, clock=clock, settings=ScrapeSettings(), metrics=Metrics())
    for cpu in ("1", "16"):
        bodies["good"] = of_pod("theirs", cpu).replace("1000000", cpu + "000") + of_pod("unknown")
        await scraper.round()
    used = points.pod(("shop", "theirs"))
    assert used is not None
    assert used.containers["c"].cpu == 1_000_000_000
