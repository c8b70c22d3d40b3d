"""Tables: the cells of odd and empty objects of each kind; none of these objects is recorded.

Known from upstream's code: `printers/internalversion/printers.go`, which prints in its wide form for every request.
"""

from typing import Any

import pytest

from podfit.api.registry import resources
from support.rules import NAMESPACE, asked, made, pod
from support.server import Server

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
CORE = f"/api/v1/namespaces/{NAMESPACE}"
NETWORKING = f"/apis/networking.k8s.io/v1/namespaces/{NAMESPACE}"
LONG = [{"hostname": "a-name-of-a-balancer.example.com"}, {"ip": "10.1.1.2"}, {"ip": "10.1.1.1"}, {"ip": "10.1.1.2"}]


async def rows(server: Server, path: str) -> list[dict[str, Any]]:
    """The rows of a list, each with its cells by column."""
    answer = await asked(server, "GET", f"{path}?includeObject=None", accept=TABLE)
    assert answer.code == 200, answer
    names = [definition["name"] for definition in answer.body["columnDefinitions"]]
    return [row | {"cells": dict(zip(names, row["cells"], strict=True))} for row in answer.body["rows"]]


async def cells(server: Server, path: str, column: str) -> dict[str, Any]:
    """What stands under a column, by the name of the object."""
    return {row["cells"]["Name"]: row["cells"][column] for row in await rows(server, path)}


async def reported(server: Server, path: str, name: str, status: dict[str, Any]) -> None:
    """This status, written as a controller would."""
    answer = await asked(
        server, "PATCH", f"{path}/{name}/status", {"status": status}, content_type="application/merge-patch+json"
    )
    assert answer.code == 200, answer


def _named(name: str, **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}} | fields


async def test_ingresses_and_network_policies(server: Server) -> None:
    await server.namespace(NAMESPACE, certificate=False)
    path = f"{NETWORKING}/ingresses"
    backend = {"service": {"name": "s", "port": {"number": 1}}}
    hosts = {
        "none": [""],
        "two": ["a.b", "", "c.d"],
        "three": ["", "a.b", "c.d", "e.f"],
        "behind": ["a.b", "c.d", "e.f", ""],
        "more": ["a.b", "c.d", "e.f", "g.h", "i.j"],
    }
    rules = {name: [{"host": host} if host else {} for host in rule_hosts] for name, rule_hosts in hosts.items()}
    await made(server, path, *(_named(n, spec={"defaultBackend": backend, "rules": r}) for n, r in rules.items()))
    assert await cells(server, path, "Hosts") == {
        "none": "*",
        "two": "a.b,c.d",
        "three": "a.b,c.d,e.f",
        "behind": "a.b,c.d,e.f + 1 more...",
        "more": "a.b,c.d,e.f + 2 more...",
    }
    await reported(server, path, "two", {"loadBalancer": {"ingress": LONG}})
    addresses = await cells(server, path, "Address")
    assert (addresses["two"], addresses["none"]) == ("10.1.1.1,10.1.1.2,a-name-of-a-balancer.example.com", "")
    path = f"{NETWORKING}/networkpolicies"
    mixed = {
        "matchLabels": {"z": "1", "b": "2"},
        "matchExpressions": [
            {"key": "c", "operator": "NotIn", "values": ["y", "x"]},
            {"key": "a", "operator": "DoesNotExist"},
        ],
    }
    await made(server, path, _named("all", spec={"podSelector": {}}), _named("some", spec={"podSelector": mixed}))
    assert await cells(server, path, "Pod-Selector") == {"all": "<none>", "some": "!a,b=2,c notin (x,y),z=1"}


async def test_services_and_what_is_behind_them(server: Server) -> None:
    await server.namespace(NAMESPACE, certificate=False)
    path, ports = f"{CORE}/services", [{"port": 80}]
    balanced = {"type": "LoadBalancer", "ports": ports, "allocateLoadBalancerNodePorts": False}
    await made(
        server,
        path,
        _named("waits", spec=balanced),
        _named("has", spec=balanced | {"externalIPs": ["10.9.9.9"]}),
        _named("named", spec={"type": "ExternalName", "externalName": "a.example.com"}),
        _named("headless", spec={"clusterIP": "None"}),
    )
    await reported(server, path, "has", {"loadBalancer": {"ingress": LONG}})
    assert await cells(server, path, "External-IP") == {
        "waits": "<pending>",
        "has": "10.1.1.1,10.1.1.2,a-name-of-a-balancer.example.com,10.9.9.9",
        "named": "a.example.com",
        "headless": "<none>",
    }
    shown = await cells(server, path, "Cluster-IP")
    assert (shown["named"], shown["headless"]) == ("<none>", "None")
    path = f"{CORE}/endpoints"
    v6, many = {"ip": "fd00::1"}, [{"ip": f"10.1.1.{last}"} for last in range(1, 5)]
    subsets: dict[str, list[dict[str, Any]]] = {
        "empty": [],
        "unready": [{"notReadyAddresses": many, "ports": ports}],
        "portless": [{"addresses": many[:1]}],
        "six": [{"addresses": [v6], "ports": ports}],
        "many": [{"addresses": many, "ports": [{"port": 1, "name": "a"}, {"port": 2, "name": "b"}]}],
    }
    await made(server, path, *(_named(name, subsets=subset) for name, subset in subsets.items()))
    assert await cells(server, path, "Endpoints") == {
        "empty": "<none>",
        "unready": "",
        "portless": "10.1.1.1",
        "six": "[fd00::1]:80",
        "many": "10.1.1.1:1,10.1.1.2:1,10.1.1.3:1 + 5 more...",
    }
    path = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"
    slices = {"none": [], "any": [{}], "name": [{"name": "web"}], "both": [{"name": "web"}, {"name": "x", "port": 5}]}
    await made(server, path, *(_named(n, addressType="IPv4", endpoints=[], ports=ports) for n, ports in slices.items()))
    assert await cells(server, path, "Ports") == {"none": "<unset>", "any": "<unset>", "name": "web", "both": "web,5"}


async def test_volumes_claims_and_drivers(server: Server) -> None:
    await server.namespace(NAMESPACE, certificate=False)
    old = {"annotations": {"volume.beta.kubernetes.io/storage-class": "old"}}
    asks = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    path = f"{CORE}/persistentvolumeclaims"
    await made(
        server,
        path,
        {"metadata": {"name": "beta"} | old, "spec": asks},
        _named("field", spec=asks | {"storageClassName": "new", "volumeAttributesClassName": "fast"}),
        _named("bound", spec=asks | {"storageClassName": "", "volumeName": "v"}),
    )
    assert await cells(server, path, "StorageClass") == {"beta": "old", "field": "new", "bound": ""}
    assert await cells(server, path, "Capacity") == {"beta": "", "field": "", "bound": "0"}
    attributes = await cells(server, path, "VolumeAttributesClass")
    assert (attributes["field"], attributes["bound"]) == ("fast", "<unset>")
    path = "/api/v1/persistentvolumes"
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
        "nfs": {"path": "/", "server": "s"},
    }
    await made(server, path, {"metadata": {"name": "v"} | old, "spec": spec})
    found = (await rows(server, path))[0]["cells"]
    assert (found["StorageClass"], found["Access Modes"], found["VolumeMode"]) == ("old", "RWO,RWX", "Filesystem")
    path = "/apis/storage.k8s.io/v1/csidrivers"
    await made(server, path, _named("plain.io", spec={}), _named("api.io", spec={"tokenRequests": [{"audience": ""}]}))
    assert await cells(server, path, "TokenRequests") == {"plain.io": "<unset>", "api.io": ""}


async def test_events_quotas_autoscalers_and_classes(server: Server) -> None:
    await server.namespace(NAMESPACE, certificate=False)
    path = f"{CORE}/events"
    about = {"involvedObject": {"kind": "Pod", "namespace": NAMESPACE}}
    sources: dict[str, dict[str, Any]] = {
        "none": {},
        "host": {"source": {"host": "n1"}},
        "new": {"reportingComponent": "c", "source": {"host": "n1"}},
        "both": {"source": {"component": "k", "host": "n1"}, "reportingComponent": "c", "reportingInstance": "i"},
    }
    await made(server, path, *(_named(name, **about, **source) for name, source in sources.items()))
    assert await cells(server, path, "Source") == {"none": "", "host": ", n1", "new": "c, n1", "both": "k, n1"}
    assert set((await cells(server, path, "Object")).values()) == {"pod"}
    path = f"{CORE}/resourcequotas"
    await made(server, path, _named("q", spec={"hard": {"limits.cpu": "1", "limitsless.example.com/a": "2"}}))
    hard = {"limits.cpu": "1", "limitsless.example.com/a": "2"}
    await reported(server, path, "q", {"hard": hard, "used": {"limits.cpu": "100m"}})
    found = (await rows(server, path))[0]["cells"]
    assert (found["Request"], found["Limit"]) == ("limitsless.example.com/a: 0/2", "limits.cpu: 100m/1")
    path = f"/apis/autoscaling/v2/namespaces/{NAMESPACE}/horizontalpodautoscalers"
    target = {"type": "AverageValue", "averageValue": "10"}
    metrics = {
        "pods": {"type": "Pods", "pods": {"metric": {"name": "m"}, "target": target}},
        "outside": {"type": "External", "external": {"metric": {"name": "m"}, "target": target}},
        "cpu": {"type": "Resource", "resource": {"name": "cpu", "target": target}},
    }
    ref = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "maxReplicas": 3}
    await made(server, path, *(_named(name, spec=ref | {"metrics": [metric]}) for name, metric in metrics.items()))
    assert await cells(server, path, "Targets") == {
        "pods": "<unknown>/10",
        "outside": "<unknown>/10 (avg)",
        "cpu": "cpu: <unknown>/10",
    }


async def test_pods(server: Server) -> None:
    await server.namespace(NAMESPACE)
    path = f"{CORE}/pods"
    begins = {"initContainers": [{"name": name, "image": "i"} for name in ("one", "two")]}
    await made(server, path, pod("starts", **begins), pod("done"), pod("failed"), pod("runs"))
    states = [
        {"name": "one", "restartCount": 2, "state": {"running": {}}, "image": "", "imageID": "", "ready": False},
        {"name": "two", "restartCount": 5, "state": {"waiting": {}}, "image": "", "imageID": "", "ready": False},
    ]
    await reported(server, path, "starts", {"phase": "Pending", "initContainerStatuses": states})
    for name, phase in (("done", "Succeeded"), ("failed", "Failed"), ("runs", "Running")):
        await reported(server, path, name, {"phase": phase})
    found = {row["cells"]["Name"]: row for row in await rows(server, path)}
    shown = found["starts"]["cells"]
    assert (shown["Ready"], shown["Status"], shown["Restarts"]) == ("0/1", "Init:0/2", "2")
    ended = {
        name: [(c["type"], c["status"], c["reason"]) for c in row.get("conditions", ())] for name, row in found.items()
    }
    assert ended == {
        "starts": [],
        "runs": [],
        "done": [("Completed", "True", "Succeeded")],
        "failed": [("Completed", "True", "Failed")],
    }


@pytest.mark.parametrize(
    "info", [resource for resource in resources() if resource.stored], ids=lambda info: info.path()
)
def test_columns_of_every_kind(info: Any) -> None:
    """One cell for each column; the first that shows a name says so; all types and formats are those of OpenAPI."""
    cells = info.row(info.type(), "2026-01-01T00:00:00Z")
    assert len(cells) == len(info.columns)
    assert [column.name for column in info.columns if column.format] == ["Name"]
    assert {column.type for column in info.columns} <= {"string", "integer", "boolean", "date"}
    assert len({column.name for column in info.columns}) == len(info.columns)
    assert {column.priority for column in info.columns} <= {0, 1}
