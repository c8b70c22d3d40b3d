"""The scale of a controller: a view that writes through."""

from typing import Any

import pytest

from podfit.net.wire import Response
from support.server import Server, document

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
SCALE = f"{DEPLOYMENTS}/web/scale"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
DEPLOYMENT = b"""{"metadata": {"name": "web"}, "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"},
"matchExpressions": [{"key": "tier", "operator": "In", "values": ["b", "a"]}]}, "template": {"metadata": {"labels":
{"app": "web", "tier": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}"""


async def deployed(server: Server) -> dict[str, Any]:
    made = await server.ask("POST", f"{DEPLOYMENTS}?fieldManager=author", DEPLOYMENT)
    assert made.status == 201, await made.read()
    return document(await made.read())


async def body_of(answer: Response) -> dict[str, Any]:
    return document(await answer.read())


async def test_a_scale_is_a_view_of_its_deployment(server: Server) -> None:
    made = await deployed(server)
    seen = await body_of(await server.ask("GET", SCALE))
    assert seen["metadata"] == {
        name: made["metadata"][name] for name in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    }
    assert seen["spec"] == {"replicas": 2}
    assert seen["status"] == {"replicas": 0, "selector": "app=web,tier in (a,b)"}


async def test_a_scale_is_shown_as_a_table(server: Server) -> None:
    await deployed(server)
    seen = await body_of(await server.ask("GET", SCALE, accept="application/json;as=Table;v=v1;g=meta.k8s.io"))
    assert [definition["name"] for definition in seen["columnDefinitions"]] == ["Name", "Desired", "Available", "Age"]
    assert seen["rows"][0]["cells"][:3] == ["web", 2, 0]


@pytest.mark.parametrize(
    ("method", "content_type", "body"),
    [
        ("PUT", "application/json", b'{"metadata": {"name": "web"}, "spec": {"replicas": 5}}'),
        ("PATCH", MERGE, b'{"spec": {"replicas": 5}}'),
        ("PATCH", "application/json-patch+json", b'[{"op": "replace", "path": "/spec/replicas", "value": 5}]'),
        ("PATCH", "application/strategic-merge-patch+json", b'{"spec": {"replicas": 5}}'),
    ],
)
async def test_scaling_changes_the_deployment_and_who_owns_the_number(
    server: Server, method: str, content_type: str, body: bytes
) -> None:
    await deployed(server)
    answer = await server.ask(method, f"{SCALE}?fieldManager=scaler", body, content_type=content_type)
    scaled = await body_of(answer)
    assert (answer.status, scaled["kind"], scaled["spec"]) == (200, "Scale", {"replicas": 5})
    after = await body_of(await server.ask("GET", f"{DEPLOYMENTS}/web"))
    assert (after["spec"]["replicas"], after["metadata"]["generation"]) == (5, 2)
    assert after["metadata"]["resourceVersion"] == scaled["metadata"]["resourceVersion"]
    owners = {
        (field["manager"], field.get("subresource"))
        for field in after["metadata"]["managedFields"]
        if "f:replicas" in field["fieldsV1"].get("f:spec", {})
    }
    assert owners == {("scaler", "scale")}


async def test_an_applied_scale_conflicts_with_who_owns_the_number(server: Server) -> None:
    await deployed(server)
    scale = b'{"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web"}, "spec": {"replicas": 7}}'
    refused = await server.ask("PATCH", f"{SCALE}?fieldManager=other", scale, content_type=APPLY)
    assert (refused.status, (await body_of(refused))["details"]["causes"][0]["field"]) == (409, ".spec.replicas")
    forced = await server.ask("PATCH", f"{SCALE}?fieldManager=other&force=true", scale, content_type=APPLY)
    assert (await body_of(forced))["spec"] == {"replicas": 7}
    again = await server.ask("PATCH", f"{SCALE}?fieldManager=other", scale, content_type=APPLY)
    assert (await body_of(again))["metadata"]["resourceVersion"] == (await body_of(forced))["metadata"][
        "resourceVersion"
    ]


@pytest.mark.parametrize(
    ("body", "code", "text"),
    [
        (b'{"metadata": {"name": "web", "resourceVersion": "1"}, "spec": {"replicas": 3}}', 409, "has been modified"),
        (b'{"metadata": {"name": "web", "uid": "x"}, "spec": {"replicas": 3}}', 409, "UID in precondition: x"),
        (b'{"metadata": {"name": "web"}, "spec": {"replicas": -3}}', 422, 'Scale.autoscaling "web" is invalid'),
        (b'{"kind": "Deployment", "metadata": {"name": "web"}}', 400, "cannot be handled as a Scale: no kind"),
        (b'{"spec": {"replicas": 3}}', 400, "name must be provided"),
    ],
)
async def test_a_scale_that_cannot_be_is_refused(server: Server, body: bytes, code: int, text: str) -> None:
    await deployed(server)
    answer = await server.ask("PUT", SCALE, body)
    assert answer.status == code
    assert text in (await body_of(answer))["message"]
    assert (await body_of(await server.ask("GET", SCALE)))["spec"] == {"replicas": 2}


async def test_a_dry_run_scales_nothing(server: Server) -> None:
    await deployed(server)
    answer = await server.ask("PATCH", f"{SCALE}?dryRun=All", b'{"spec": {"replicas": 9}}', content_type=MERGE)
    assert (await body_of(answer))["spec"] == {"replicas": 9}
    assert (await body_of(await server.ask("GET", SCALE)))["spec"] == {"replicas": 2}
