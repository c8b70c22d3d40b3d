"""Rates between readings, by metrics-server's rules: each row is a story of one container, and what is told of it."""

import pytest

from podfit.metrics.points import Batch, Point, Points, Usage
from podfit.metrics.scraper import read

CORE = 1_000_000_000
KEY = ("shop", "web")


def point(time: float, cpu: float, *, started: float = 100.0, memory: int = 5) -> Point:
    return Point(started, time, int(cpu * CORE), memory)


STORIES = {
    "one reading tells no rate": ([point(1000, 5)], None),
    "two readings": ([point(1000, 5), point(1010, 7, memory=9)], Usage(1010, 10, CORE // 5, 9)),
    "of three the latest two": ([point(1000, 0), point(1010, 1), point(1020, 4)], Usage(1020, 10, 3 * CORE // 10, 5)),
    "not measured again in between": ([point(1000, 5), point(1010, 7), point(1010, 7)], Usage(1010, 10, CORE // 5, 5)),
    "measured only once although asked twice": ([point(1000, 5), point(1000, 5)], None),
    "began anew in between": ([point(1000, 5), point(1015, 1, started=1003)], Usage(1015, 12, CORE // 12, 5)),
    "began anew, too young": ([point(1000, 5), point(1015, 1, started=1008)], None),
    "fresh: measured from its start": ([point(1012, 3, started=1000)], Usage(1012, 12, CORE // 4, 5)),
    "the counter fell though its start did not": ([point(1000, 5), point(1010, 4)], None),
    "the start moved back": ([point(1000, 5, started=200), point(1010, 7, started=100)], None),
    "no start is told": ([point(1000, 5, started=0), point(1010, 7, started=0)], Usage(1010, 10, CORE // 5, 5)),
}


@pytest.mark.parametrize(("readings", "told"), STORIES.values(), ids=STORIES.keys())
def test_stories_of_a_container(readings: list[Point], told: Usage | None) -> None:
    points = Points(interval=15.0)
    for reading in readings:
        points.store(Batch(pods={KEY: {"app": reading}}))
    found = points.pod(KEY)
    assert (found.containers["app"] if found else None) == told


def test_a_pod_waits_for_the_last_of_its_containers_and_tells_the_earliest_time() -> None:
    points = Points(interval=15.0)
    points.store(Batch(pods={KEY: {"app": point(1000, 1)}}))
    points.store(Batch(pods={KEY: {"app": point(1015, 2), "side": point(1014, 1)}}))
    assert points.pod(KEY) is None
    points.store(Batch(pods={KEY: {"app": point(1030, 3), "side": point(1029, 1)}}))
    found = points.pod(KEY)
    assert found is not None
    assert (found.time, found.window, list(found.containers)) == (1029, 15, ["app", "side"])


def test_what_is_not_in_a_batch_is_forgotten() -> None:
    points = Points(interval=15.0)
    for time in (1000, 1015):
        points.store(Batch(nodes={"n1": point(time, time, started=0)}, pods={KEY: {"app": point(time, 1)}}))
    assert points.has_nodes
    points.store(Batch())
    assert (points.node("n1"), points.pod(KEY), points.has_nodes) == (None, None, False)


BODY = """\
# TYPE container_cpu_usage_seconds_total counter
container_cpu_usage_seconds_total{container="app",namespace="shop",pod="web"} 1.5 1000500
container_memory_working_set_bytes{container="app",namespace="shop",pod="web"} 1.048576e+06 1000500
container_start_time_seconds{container="app",namespace="shop",pod="web"} 900.25
container_cpu_usage_seconds_total{container="app",namespace="shop",pod="half"} 1 1000500
node_cpu_usage_seconds_total 12.25 1000500
node_memory_working_set_bytes 4096
pod_cpu_usage_seconds_total{namespace="shop",pod="web"} 1.5 1000500
"""


async def test_a_kubelets_answer() -> None:
    """Of a container without memory nothing is told, nor of its pod."""
    assert await read("n1", BODY, 5.0) == Batch(
        {"n1": Point(0.0, 1000.5, 12_250_000_000, 4096)},
        {("shop", "web"): {"app": Point(900.25, 1000.5, 1_500_000_000, 1 << 20)}},
    )
