"""For whom the endpoints of a service are meant, by its traffic distribution."""

from typing import Any

import pytest

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.services.types import Service
from podfit.api.meta.codec import convert, to_dict
from podfit.decide.workload.services.slices import changes

ZONE = {"forZones": [{"name": "a"}]}
NODE = {"forNodes": [{"name": "n"}]}


@pytest.mark.parametrize(
    ("wanted", "zone", "ready", "hints"),
    [
        (None, "a", True, None),
        ("PreferClose", "a", True, ZONE),
        ("PreferSameZone", "a", True, ZONE),
        ("PreferSameZone", "", True, None),
        ("PreferSameNode", "a", True, ZONE | NODE),
        ("PreferSameNode", "", True, NODE),
        ("PreferSameNode", "a", False, None),
    ],
)
def test_the_hints_of_an_endpoint(wanted: str | None, zone: str, ready: bool, hints: dict[str, Any] | None) -> None:
    spec = {"selector": {"app": "x"}, "clusterIP": "10.0.0.1", "ports": [{"port": 80}], "trafficDistribution": wanted}
    service = convert({"metadata": {"name": "s", "namespace": "d", "uid": "u"}, "spec": spec}, Service)
    labels = {"topology.kubernetes.io/zone": zone} if zone else {}
    node = convert({"metadata": {"name": "n", "labels": labels}}, Node)
    condition = {"type": "Ready", "status": str(ready)}
    status = {"phase": "Running", "podIP": "10.1.0.1", "podIPs": [{"ip": "10.1.0.1"}], "conditions": [condition]}
    meta = {"name": "p", "namespace": "d", "uid": "p", "labels": {"app": "x"}}
    pod = convert({"metadata": meta, "spec": {"nodeName": "n"}, "status": status}, Pod)
    (made,) = changes(service, [pod], {"n": node}, []).create
    (endpoint,) = made.endpoints or ()
    assert to_dict(endpoint).get("hints") == hints
