"""CSINodes: which CSI drivers a node has (storage.k8s.io/v1)."""

import json
from typing import Any

import pytest

from podfit.apiserver.handlers.patching import MERGE_PATCH, STRATEGIC_PATCH
from support.access import send
from support.server import Server, document

NODES = "/apis/storage.k8s.io/v1/csinodes"


def driver(name: str = "d.example.com", node_id: str = "i-1", **more: Any) -> dict[str, Any]:
    return {"name": name, "nodeID": node_id, "topologyKeys": ["example.com/zone"], **more}


def csi_node(*drivers: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": "n1"},
        "spec": {"drivers": drivers},
    }


async def test_a_node_without_drivers_says_so(server: Server) -> None:
    status, made = await send(server, "POST", NODES, csi_node())
    assert (status, made["spec"]) == (201, {"drivers": []})


async def test_drivers_come_and_go_by_their_names(server: Server) -> None:
    assert (await send(server, "POST", NODES, csi_node(driver())))[0] == 201
    more = {"spec": {"drivers": [{"name": "other.example.com", "nodeID": "x", "topologyKeys": None}]}}
    status, changed = await send(server, "PATCH", f"{NODES}/n1", more, kind=STRATEGIC_PATCH)
    assert status == 200
    assert {driver["name"] for driver in changed["spec"]["drivers"]} == {"d.example.com", "other.example.com"}
    less = {"spec": {"drivers": [{"$patch": "delete", "name": "d.example.com"}]}}
    _, changed = await send(server, "PATCH", f"{NODES}/n1", less, kind=STRATEGIC_PATCH)
    assert changed["spec"]["drivers"] == [{"name": "other.example.com", "nodeID": "x", "topologyKeys": None}]


async def test_the_table_counts_drivers(server: Server) -> None:
    await send(server, "POST", NODES, csi_node(driver(), driver("e.example.com")))
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    table = document(await (await server.ask("GET", NODES, accept=accept)).read())
    assert [definition["name"] for definition in table["columnDefinitions"]] == ["Name", "Drivers", "Age"]
    assert table["rows"][0]["cells"][:2] == ["n1", 2]


LABEL = "a lowercase RFC 1123 subdomain must consist of"


@pytest.mark.parametrize(
    ("drivers", "problem"),
    [
        ([driver("")], "spec.drivers[0].name: Required value"),
        ([driver("a" * 64)], "spec.drivers[0].name: Too long: may not be more than 63"),
        ([driver("no_driver")], f'spec.drivers[0].name: Invalid value: "no_driver": {LABEL}'),
        ([driver(node_id="")], "spec.drivers[0].nodeID: Required value"),
        ([driver(node_id="i" * 193)], "must be 192 characters or less"),
        ([driver(allocatable={"count": -1})], "allocatable.count: Invalid value: -1: must be greater than or equal"),
        ([driver(), driver()], 'spec.drivers[1].name: Duplicate value: "d.example.com"'),
        ([driver(topologyKeys=["a", "a"])], 'spec.drivers[0]: Duplicate value: "a"'),
        ([driver(topologyKeys=["a b"])], 'spec.drivers[0]: Invalid value: "a b": name part must consist of'),
        ([driver(topologyKeys=[""])], "spec.drivers[0]: Required value"),
    ],
)
async def test_what_makes_no_sense(server: Server, drivers: list[dict[str, Any]], problem: str) -> None:
    status, refused = await send(server, "POST", NODES, csi_node(*drivers))
    assert status == 422
    assert problem in refused["message"]


@pytest.mark.parametrize(
    ("change", "status"),
    [(driver(allocatable={"count": 5}), 200), (driver(node_id="i-2"), 422), (driver(topologyKeys=[]), 422)],
)
async def test_a_registered_driver_changes_only_how_many_volumes_it_attaches(
    server: Server, change: dict[str, Any], status: int
) -> None:
    assert (await send(server, "POST", NODES, csi_node(driver(allocatable={"count": 3}))))[0] == 201
    got, answer = await send(server, "PATCH", f"{NODES}/n1", {"spec": {"drivers": [change]}}, kind=MERGE_PATCH)
    assert got == status
    if status == 422:
        assert "field is immutable" in answer["message"]


async def test_many_bad_keys_are_told_in_an_answer_of_their_size(server: Server) -> None:
    keys = [f"bad key {index}" for index in range(14_000)]
    answer = await server.ask("POST", NODES, json.dumps(csi_node(driver(topologyKeys=keys))).encode())
    assert answer.status == 422
    assert len(await answer.read()) < 700 * len(keys)  # the rule, twice for each: as text and as a cause
