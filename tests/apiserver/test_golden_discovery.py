"""Discovery and the server's own pages, compared with what a real Kubernetes 1.36 answered, as far as served.

Groups, resources and subresources that this server does not have are left out of what was recorded; their order stays.
"""

import json
from typing import Any

from podfit.api.registry import resources
from support.golden import Case, parametrize
from support.replay import Replay, comparable, differences, projected
from support.server import Server

_OWN = "the page says what this server is"
DEVIATIONS = {
    "version": _OWN,
    "path-": _OWN,
    "path-livez-verbose": _OWN,
    "path-readyz-verbose": _OWN,
    "path-.well-known-openid-configuration": "tokens are signed with an elliptic curve",
}

GROUPS = {info.group for info in resources()}
NAMES = {info.resource for info in resources()} | {
    f"{info.resource}/{sub.name}" for info in resources() for sub in info.subresources
}


def about_served(case: Case) -> bool:
    parts = case["request"]["path"].partition("?")[0].strip("/").split("/")
    return not (parts[0] == "apis" and len(parts) > 1 and parts[1] not in GROUPS and case["expect"]["code"] == 200)


def _wanted(case: Case) -> bool:
    return case["group"] == "discovery" and about_served(case) and case["id"] not in DEVIATIONS


@parametrize("api/discovery.json*", _wanted)
async def test_discovery(server: Server, case: Case) -> None:
    replay = Replay(server)
    await replay.prepare(case)
    answer = await replay.send(case["request"])
    expect, text = replay.expected(case), (await answer.read()).decode()
    assert answer.status == expect["code"], text
    if "bodyText" in expect:
        assert not list(differences(expect["bodyText"], text))
    elif "body" in expect:
        got = projected(expect["body"], json.loads(text))
        assert not list(differences(comparable(_served(expect["body"])), comparable(got)))
    if content := expect["headers"].get("content-type"):
        assert answer.headers["content-type"] == content


def _served(body: Any) -> Any:
    if not isinstance(body, dict):
        return body
    kept = dict(body)
    match body.get("kind"):
        case "APIGroupList":
            kept["groups"] = [group for group in body["groups"] if group["name"] in GROUPS]
        case "APIResourceList":
            kept["resources"] = [resource for resource in body["resources"] if resource["name"] in NAMES]
        case "APIGroupDiscoveryList":
            kept["items"] = [_group(item) for item in body["items"] if item["metadata"].get("name", "") in GROUPS]
    return kept


def _group(group: dict[str, Any]) -> dict[str, Any]:
    versions = [
        version
        | {"resources": [_resource(resource) for resource in version["resources"] if resource["resource"] in NAMES]}
        for version in group["versions"]
    ]
    return group | {"versions": [version for version in versions if version["resources"]]}


def _resource(resource: dict[str, Any]) -> dict[str, Any]:
    if "subresources" not in resource:
        return resource
    kept = [
        subresource
        for subresource in resource["subresources"]
        if f"{resource['resource']}/{subresource['subresource']}" in NAMES
    ]
    rest = {name: value for name, value in resource.items() if name != "subresources"}
    return rest | ({"subresources": kept} if kept else {})
