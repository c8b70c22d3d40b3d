"""What a node answers itself."""

import json
from pathlib import Path

import pytest

from kubelet.harness import Node
from podfit.net.wire import Request

LINE = "2026-01-01T00:00:0{}.5Z stdout F {}\n"


def write_log(node: Node, *lines: str) -> None:
    path = Path(node.runtime.containers()[0].log_path)
    path.write_text("".join(LINE.format(number, text) for number, text in enumerate(lines)))


async def test_logs(node: Node) -> None:
    node.add()
    await node.runs()
    write_log(node, "one", "two", "three")
    assert await node.ask("/containerLogs/default/web/c1") == (200, "one\ntwo\nthree\n")
    assert await node.ask("/containerLogs/default/web/c1", tailLines="1") == (200, "three\n")
    node.runtime.exit("c1", 0)
    assert await node.ask("/containerLogs/default/web/c1", follow="true", sinceTime="2026-01-01T00:00:01Z") == (
        200,
        "two\nthree\n",
    )


async def test_logs_since_any_number_of_seconds(node: Node) -> None:
    """A number that is larger than all of time asks for everything; one of more than 64 bits is refused."""
    node.add()
    await node.runs()
    write_log(node, "one")
    for seconds in ("999999999999999999", "9223372036854775807", "99999999999"):
        assert await node.ask("/containerLogs/default/web/c1", sinceSeconds=seconds) == (200, "one\n")
    for name in ("sinceSeconds", "tailLines", "limitBytes"):
        for number in ("9" * 5000, str(2**63), "-1", "x", "²"):
            assert (await node.ask("/containerLogs/default/web/c1", **{name: number}))[0] == 400
    for time in ("9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59", "x", "10000-01-01T00:00:00Z"):
        assert (await node.ask("/containerLogs/default/web/c1", sinceTime=time))[0] == 400
    assert (await node.ask("/containerLogs/default/web/c1", sinceTime="0001-01-01T00:00:00Z")) == (200, "one\n")


async def test_logs_of_the_instance_before(node: Node) -> None:
    node.add()
    await node.runs()
    assert await node.ask("/containerLogs/default/web/c1", previous="true") == (
        400,
        'previous terminated container "c1" in pod "web" not found',
    )
    write_log(node, "first")
    node.runtime.exit("c1", 1)
    await node.advance(0.5)
    await node.until(lambda: node.state()["restartCount"] == 1)
    assert await node.ask("/containerLogs/default/web/c1", previous="true") == (200, "first\n")


@pytest.mark.parametrize(
    ("path", "query", "status", "text"),
    [
        ("/containerLogs/default/no/c1", {}, 404, 'pod "no" does not exist\n'),
        ("/containerLogs/default/web/no", {}, 404, 'container "no" not found in pod "web"\n'),
        (
            "/containerLogs/default/web/c1",
            {"tailLines": "-1"},
            400,
            "tailLines: '-1' must be a whole number that is not negative\n",
        ),
        ("/nothing", {}, 404, "404 page not found\n"),
    ],
)
async def test_refusals(node: Node, path: str, query: dict[str, str], status: int, text: str) -> None:
    node.add()
    await node.runs()
    assert await node.ask(path, **query) == (status, text)


async def test_logs_of_a_container_that_waits(node: Node) -> None:
    node.runtime.images.clear()
    node.add()
    await node.until(lambda: "waiting" in node.state().get("state", {}))
    await node.rest()
    status, text = await node.ask("/containerLogs/default/web/c1")
    waits = 'container "c1" in pod "web" is waiting to start: '
    told = {f"{waits}image can't be pulled", f"{waits}trying and failing to pull image"}
    assert (status, text.strip() in told) == (400, True), text


async def test_pods_are_shown_at_their_allocated_size(node: Node) -> None:
    node.add()
    await node.runs()
    status, text = await node.ask("/pods")
    listed = json.loads(text)
    assert (status, listed["kind"], len(listed["items"])) == (200, "PodList", 1)


async def test_metrics(node: Node) -> None:
    node.add()
    await node.runs()
    _, text = await node.ask("/metrics")
    assert "kubelet_pod_start_duration_seconds_count 1.0" in text
    assert "kubelet_pod_in_progress_resizes 0.0" in text


async def test_only_health_is_for_everybody(node: Node) -> None:
    assert (await node.kubelet.handler(Request("GET", "/healthz"))).status == 200
    assert (await node.kubelet.handler(Request("GET", "/pods"))).status == 401
