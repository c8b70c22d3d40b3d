"""Who answers at a port of a service."""

from typing import Any

import pytest
from msgspec.structs import replace

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod, PodIP
from podfit.api.core.v1.services.types import Endpoints, Service
from podfit.api.discovery.v1.types import EndpointSlice
from podfit.api.meta.codec import convert
from podfit.apiserver.extensions.backend_addresses import Behind, Reached, Unreached, backends
from podfit.decide.workload.services.slices import changes

WHERE = 'service/s in "n"'
NOBODY = 'no endpoints available for service "s"'


def service(**spec: Any) -> Service:
    ports = [{"name": "https", "port": 443, "targetPort": "web", "protocol": "TCP"}, {"name": "other", "port": 80}]
    return convert(
        {"metadata": {"name": "s", "namespace": "n"}, "spec": {"type": "ClusterIP", "ports": ports, **spec}}, Service
    )


def part(
    *addresses: str, port: int = 8443, name: str | None = "https", ready: bool | None = True, family: str = "IPv4"
) -> EndpointSlice:
    endpoints = [
        {"addresses": [address], "conditions": {} if ready is None else {"ready": ready}} for address in addresses
    ]
    document = {"addressType": family, "endpoints": endpoints, "ports": [{"name": name, "port": port}]}
    return convert(document, EndpointSlice)


def listed(*addresses: str, port: int = 9443, name: str = "https") -> Endpoints:
    subset = {"addresses": [{"ip": address} for address in addresses], "ports": [{"name": name, "port": port}]}
    return convert({"subsets": [subset]}, Endpoints)


def pod(
    ip: str,
    *,
    ready: bool = True,
    labels: dict[str, str] | None = None,
    phase: str = "Running",
    name: str = "web",
    **spec: Any,
) -> Pod:
    containers = [{"name": "c", "ports": [{"name": name, "containerPort": 7443, "protocol": "TCP"}]}]
    status = {"podIP": ip, "phase": phase, "conditions": [{"type": "Ready", "status": str(ready)}]}
    meta = {"labels": labels or {"app": "s"}}
    return convert({"metadata": meta, "spec": {"containers": containers, **spec}, "status": status}, Pod)


SELECTING = service(selector={"app": "s"})
SIDECAR = {
    "name": "side",
    "restartPolicy": "Always",
    "ports": [{"name": "web", "containerPort": 6443, "protocol": "TCP"}],
}


def test_a_pod_is_reached_where_its_endpoint_slice_says() -> None:
    """Of a pod with addresses of two families, and of a service of the second."""
    dual = pod("10.0.0.3", nodeName="w1")
    dual = replace(dual, status=replace(dual.status, pod_ips=(PodIP(ip="10.0.0.3"), PodIP(ip="fd::3"))))
    asked = service(selector={"app": "s"}, ipFamilies=["IPv6"], clusterIP="fd::1")
    (written,) = changes(asked, [dual], {"w1": Node()}, ()).create
    assert backends(asked, 443, Behind((written,))) == backends(asked, 443, Behind((), None, [dual]))
    assert backends(asked, 443, Behind((), None, [dual])) == Reached((("fd::3", 7443),))


@pytest.mark.parametrize(
    ("asked", "behind", "addresses"),
    [
        (service(), Behind((part("10.0.0.1", "10.0.0.2"),)), [("10.0.0.1", 8443), ("10.0.0.2", 8443)]),
        (service(), Behind((part("10.0.0.1", ready=None),)), [("10.0.0.1", 8443)]),
        (service(), Behind((part("10.0.0.1", ready=False), part("10.0.0.2", port=1))), [("10.0.0.2", 1)]),
        (service(), Behind((part("10.0.0.1", name="other"), part("fd00::1", family="IPv6"))), [("fd00::1", 8443)]),
        (service(), Behind((part("10.0.0.1"), part("10.0.0.1"))), [("10.0.0.1", 8443)]),
        (service(), Behind((part("10.0.0.1"),), listed("10.0.0.2")), [("10.0.0.1", 8443)]),
        (service(), Behind((part("10.0.0.1", ready=False),), listed("10.0.0.2")), [("10.0.0.2", 9443)]),
        (service(ports=[{"port": 443}]), Behind((part("10.0.0.1", name=None),)), [("10.0.0.1", 8443)]),
        (service(clusterIP="None"), Behind((), listed("10.0.0.2")), [("10.0.0.2", 9443)]),
        (SELECTING, Behind((), None, [pod("10.0.0.3"), pod("10.0.0.4", labels={"app": "t"})]), [("10.0.0.3", 7443)]),
        (SELECTING, Behind((), None, [pod("10.0.0.3", ready=False), pod("10.0.0.4")]), [("10.0.0.4", 7443)]),
        (SELECTING, Behind((), None, [pod("10.0.0.3", name="no", initContainers=[SIDECAR])]), [("10.0.0.3", 6443)]),
        (
            service(selector={"app": "s"}, publishNotReadyAddresses=True),
            Behind((), None, [pod("10.0.0.3", ready=False)]),
            [("10.0.0.3", 7443)],
        ),
        (
            service(selector={"app": "s"}, ports=[{"port": 443, "targetPort": 8443}]),
            Behind((), None, [pod("10.0.0.3")]),
            [("10.0.0.3", 8443)],
        ),
        (service(type="ExternalName", externalName="example.com", ports=[]), Behind(), [("example.com", 443)]),
    ],
)
def test_reached(asked: Service, behind: Behind, addresses: list[tuple[str, int]]) -> None:
    assert backends(asked, 443, behind) == Reached(tuple(addresses))


@pytest.mark.parametrize(
    ("asked", "behind", "answer"),
    [
        (
            service(ports=[{"port": 80}]),
            Behind((part("10.0.0.1"),)),
            Unreached(
                "ServicePortError", f"{WHERE} is not listening on port 443", 'no service port 443 found for service "s"'
            ),
        ),
        (service(), Behind(), Unreached("EndpointsNotFound", f"cannot find endpointslices for {WHERE}", NOBODY)),
        (
            service(),
            Behind((part("10.0.0.1", name="other"),)),
            Unreached(
                "MissingEndpoints", f'endpointslices for {WHERE} have no addresses with port name "https"', NOBODY
            ),
        ),
        (
            service(),
            Behind((part("a.example", family="FQDN"),)),
            Unreached(
                "MissingEndpoints", f'endpointslices for {WHERE} have no addresses with port name "https"', NOBODY
            ),
        ),
        (
            SELECTING,
            Behind(
                (),
                None,
                [
                    pod("10.0.0.1", name="no"),
                    pod("10.0.0.2", phase="Failed"),
                    pod(""),
                    convert(
                        {
                            "metadata": {"labels": {"app": "s"}, "deletionTimestamp": "2026-01-01T00:00:00Z"},
                            "status": {"podIP": "10.0.0.5", "conditions": [{"type": "Ready", "status": "True"}]},
                        },
                        Pod,
                    ),
                ],
            ),
            Unreached("EndpointsNotFound", f"cannot find endpointslices for {WHERE}", NOBODY),
        ),
        (
            service(selector={}),
            Behind((), None, [pod("10.0.0.1")]),
            Unreached("EndpointsNotFound", f"cannot find endpointslices for {WHERE}", NOBODY),
        ),
    ],
)
def test_unreached(asked: Service, behind: Behind, answer: Unreached) -> None:
    assert backends(asked, 443, behind) == answer
