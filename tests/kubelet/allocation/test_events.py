"""The JSON at the end of a resize event."""

import pytest

from podfit.decide.node.messages import details
from support.pods import container, needs, pod


@pytest.mark.row("R-179")
def test_order_and_escapes_are_upstreams() -> None:
    given = pod(
        container("c1", {"memory": "1Gi", "cpu": "1500m"}, {"cpu": "2"}),
        container("plain"),
        init=(container("first", {"cpu": "100m"}),),
        resources=needs({"cpu": "3"}),
    )
    assert details(given, generation=7, error='a < b & "c" > d \u2028 é') == (
        '{"initContainers":[{"name":"first","resources":{"requests":{"cpu":"100m"}}}],'
        '"containers":[{"name":"c1","resources":{"limits":{"cpu":"2"},"requests":{"cpu":"1500m","memory":"1Gi"}}},'
        '{"name":"plain","resources":{}}],'
        '"generation":7,"error":"a \\u003c b \\u0026 \\"c\\" \\u003e d \\u2028 é"}'
    )


@pytest.mark.row("R-179")
def test_what_is_empty_is_left_out() -> None:
    text = details(pod(container("c1")), generation=2)
    assert text == '{"containers":[{"name":"c1","resources":{}}],"generation":2}'
