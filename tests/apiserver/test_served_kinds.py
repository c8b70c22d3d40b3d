"""The table in docs/compatibility.md of what is not served, compared with discovery, 1.36's and ours."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from support.golden import cases, needs
from support.server import Server

PAGE = Path(__file__).parents[2] / "docs" / "compatibility.md"
TITLE = "## Kinds and subresources that are not served"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
Verbs = dict[tuple[str, str], frozenset[str]]


def _resources(groups: list[dict[str, Any]]) -> Verbs:
    """The verbs of each resource and subresource, by group and version and by name."""
    return {
        (f"{name}/{version['version']}".lstrip("/"), resource): frozenset(verbs)
        for group in groups
        if "openshift" not in (name := group["metadata"].get("name", ""))
        for version in group["versions"]
        for resource, verbs in _of_version(version)
    }


def _of_version(version: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    for resource in version["resources"]:
        yield resource["resource"], resource["verbs"]
        for subresource in resource.get("subresources", ()):
            yield f"{resource['resource']}/{subresource['subresource']}", subresource["verbs"]


def _recorded() -> Verbs:
    found = {case["id"]: case["expect"].get("body") for case in cases("api/discovery.json*")}
    return _resources(found["aggregated-api-v2"]["items"]) | _resources(found["aggregated-apis-v2"]["items"])


async def _served(server: Server) -> Verbs:
    found: Verbs = {}
    for path in ("/api", "/apis"):
        answer = await server.ask("GET", path, accept=AGGREGATED)
        found |= _resources(json.loads(await answer.read())["items"])
    return found


def _denied() -> set[tuple[str, str]]:
    """What the page says is not served."""
    table = PAGE.read_text().partition(TITLE)[2].partition("\n## ")[0]
    rows = [line.split("|")[1:3] for line in table.splitlines() if line.startswith("| `")]
    return {(group.strip(" `"), name) for group, names in rows for name in re.findall(r"`([^`]+)`", names)}


@needs("api/discovery.json*")
async def test_what_the_page_says_is_not_served_is_all_that_is_not(server: Server) -> None:
    recorded, served = _recorded(), await _served(server)
    assert recorded.keys() - served.keys() == _denied()
    assert {key: served[key] for key in served if key in recorded} == {
        key: recorded[key] for key in served if key in recorded
    }


async def test_a_kind_that_is_not_served_is_not_found(server: Server) -> None:
    for group_version, name in sorted(_denied()):
        resource, _, subresource = name.partition("/")
        root = "/api" if "/" not in group_version else "/apis"
        path = f"{root}/{group_version}/{resource}" + (f"/x/{subresource}" if subresource else "")
        assert (await server.ask("GET", path)).status == 404, path
