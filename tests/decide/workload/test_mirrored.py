"""Endpoints that somebody wrote, as slices; by upstream's rules."""

from typing import Any

import pytest
from msgspec.structs import replace

from podfit.api.core.v1.services.types import Endpoints, Service
from podfit.api.discovery.v1.types import EndpointSlice
from podfit.api.meta.codec import convert, to_dict
from podfit.decide.workload.services.mirrored import changes, is_mirrored, passed_over

SUBSET = {
    "addresses": [{"ip": "10.0.0.1", "hostname": "a", "nodeName": "n"}],
    "notReadyAddresses": [{"ip": "10.0.0.2"}],
    "ports": [{"port": 80, "protocol": "TCP"}],
}


def endpoints(*subsets: Any, **meta: Any) -> Endpoints:
    whole = {"name": "s", "namespace": "d", "uid": "u", **meta}
    return convert({"metadata": whole, "subsets": list(subsets)}, Endpoints)


def stored(slice_: EndpointSlice) -> EndpointSlice:
    return replace(slice_, metadata=replace(slice_.metadata, name="s-1"))


def test_a_slice_of_what_was_written() -> None:
    annotations = {"note": "mine", "endpoints.kubernetes.io/last-change-trigger-time": "t"}
    (made,) = changes(endpoints(SUBSET, labels={"app": "x"}, annotations=annotations), []).create
    assert to_dict(made) == {
        "kind": "EndpointSlice",
        "apiVersion": "discovery.k8s.io/v1",
        "metadata": {
            "generateName": "s-",
            "namespace": "d",
            "labels": {
                "app": "x",
                "kubernetes.io/service-name": "s",
                "endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io",
            },
            "annotations": {"note": "mine"},
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "Endpoints",
                    "name": "s",
                    "uid": "u",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "addressType": "IPv4",
        "endpoints": [
            {"addresses": ["10.0.0.1"], "conditions": {"ready": True}, "hostname": "a", "nodeName": "n"},
            {"addresses": ["10.0.0.2"], "conditions": {"ready": False}},
        ],
        "ports": [{"name": "", "port": 80, "protocol": "TCP"}],
    }


@pytest.mark.parametrize(
    ("after", "created", "updated", "deleted"),
    [
        (endpoints(SUBSET), 0, 0, 0),
        (endpoints(SUBSET, labels={"app": "x"}), 0, 1, 0),
        (endpoints(SUBSET, annotations={"app": "x"}), 0, 1, 0),
        (endpoints(SUBSET | {"notReadyAddresses": []}), 0, 1, 0),
        (endpoints(), 0, 1, 0),  # the slice only holds the place
        (endpoints(SUBSET, SUBSET | {"ports": [{"port": 81}]}), 1, 0, 0),
        (endpoints({"addresses": [{"ip": "fd00::1"}]}), 1, 0, 1),
    ],
)
def test_what_a_change_does(after: Endpoints, created: int, updated: int, deleted: int) -> None:
    (before,) = changes(endpoints(SUBSET), []).create
    made = changes(after, [stored(before)])
    assert (len(made.create), len(made.update), len(made.delete)) == (created, updated, deleted)


@pytest.mark.parametrize(
    ("service", "meta", "mirrored"),
    [
        ({}, {}, True),
        ({"selector": {"app": "x"}}, {}, False),
        ({}, {"labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}}, False),
        ({}, {"annotations": {"control-plane.alpha.kubernetes.io/leader": "{}"}}, False),
        (None, {}, False),
    ],
)
def test_what_is_mirrored(service: dict[str, Any] | None, meta: dict[str, Any], mirrored: bool) -> None:
    behind = None if service is None else convert({"spec": service}, Service)
    assert is_mirrored(behind, endpoints(SUBSET, **meta)) is mirrored


def test_an_old_address_with_zeros_is_mirrored() -> None:
    (made,) = changes(endpoints({"addresses": [{"ip": "010.0.0.1"}]}), []).create
    assert (made.address_type, [endpoint.addresses for endpoint in made.endpoints or ()]) == ("IPv4", [("010.0.0.1",)])


def test_what_is_too_much_is_counted() -> None:
    many = {"addresses": [{"ip": f"10.0.{number // 256}.{number % 256}"} for number in range(1003)]}
    assert (passed_over(endpoints(many, SUBSET)), passed_over(endpoints(SUBSET))) == (3, 0)
