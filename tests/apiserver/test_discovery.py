"""What clients ask before they ask for anything: kinds, versions, schemas, health."""

import json
from typing import Any

import pytest

from podfit.api.registry import resources
from support.server import Server, document

AGGREGATED = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
)


async def get(server: Server, path: str, accept: str = "application/json") -> Any:
    answer = await server.ask("GET", path, accept=accept)
    assert answer.status == 200, await answer.read()
    return json.loads(await answer.read())


async def test_both_forms_name_every_kind_and_every_subresource(server: Server) -> None:
    plain: set[tuple[str, str]] = set()
    for version in ["/api/v1", *[f"/apis/{info.group_version}" for info in resources() if info.group]]:
        found = await get(server, version)
        plain |= {(found["groupVersion"], resource["name"]) for resource in found["resources"]}
    aggregated: set[tuple[str, str]] = set()
    for root in ("/api", "/apis"):
        for item in (await get(server, root, AGGREGATED))["items"]:
            for version in item["versions"]:
                group_version = "/".join(filter(None, (item["metadata"].get("name"), version["version"])))
                for resource in version["resources"]:
                    names = [
                        resource["resource"],
                        *[f"{resource['resource']}/{sub['subresource']}" for sub in resource.get("subresources", ())],
                    ]
                    aggregated |= {(group_version, name) for name in names}
    assert plain == aggregated
    assert ("v1", "pods/resize") in plain
    assert {info.resource for info in resources()} <= {name for _, name in plain}


async def test_the_aggregated_form_says_that_it_is(server: Server) -> None:
    answer = await server.ask("GET", "/apis", accept=AGGREGATED)
    assert answer.headers["content-type"] == "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    assert document(await answer.read())["kind"] == "APIGroupDiscoveryList"
    old = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
    assert (await get(server, "/apis", old))["kind"] == "APIGroupList"


async def test_what_kubectl_needs_to_know_of_a_pod(server: Server) -> None:
    listed = {resource["name"]: resource for resource in (await get(server, "/api/v1"))["resources"]}
    assert listed["pods"] == {
        "name": "pods",
        "singularName": "pod",
        "namespaced": True,
        "kind": "Pod",
        "shortNames": ["po"],
        "categories": ["all"],
        "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        "storageVersionHash": "xPOwRZ+Yhw8=",
    }
    assert listed["pods/resize"]["verbs"] == ["get", "patch", "update"]
    assert listed["serviceaccounts/token"]["group"] == "authentication.k8s.io"


async def test_every_verb_that_is_announced_is_served(server: Server) -> None:
    """A collection answers a list, and no verb of a single object that is not there is anything but refused or 404."""
    for info in resources():
        where = info.path("default")
        assert (await server.ask("GET", where)).status == (200 if "list" in info.verbs else 405), where
        for method, verb in (("GET", "get"), ("DELETE", "delete")):
            status = (await server.ask(method, info.path("default", "absent"))).status
            assert status == (404 if verb in info.verbs else 405), (method, info.resource)


async def test_the_version_is_the_one_that_clients_check(server: Server) -> None:
    version = await get(server, "/version")
    assert (version["major"], version["minor"]) == ("1", "36")
    assert version["gitVersion"].startswith("v1.36.")


async def test_openapi_tells_how_lists_merge(server: Server) -> None:
    index = await get(server, "/openapi/v3")
    path = index["paths"]["api/v1"]["serverRelativeURL"].partition("?")[0]
    schemas = (await get(server, path))["components"]["schemas"]
    containers = schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert containers["x-kubernetes-list-map-keys"] == ["name"]


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
async def test_health(server: Server, path: str) -> None:
    assert await (await server.ask("GET", path)).read() == b"ok"
    verbose = (await (await server.ask("GET", f"{path}?verbose=")).read()).decode()
    assert verbose.startswith("[+]ping ok\n")
    assert verbose.endswith(f"{path[1:]} check passed\n")
    assert (await server.ask("POST", path)).status == 200  # as upstream's, whose handlers know no methods


async def test_a_server_that_stops_is_not_ready_but_lives(server: Server) -> None:
    await server.api.stop()
    assert (await server.ask("GET", "/readyz")).status == 500
    assert (await server.ask("GET", "/livez")).status == 200


async def test_requests_are_counted(server: Server) -> None:
    await server.ask("GET", "/api/v1/namespaces/default/pods/x")
    text = (await (await server.ask("GET", "/metrics")).read()).decode()
    series = 'group="",resource="pods",scope="resource",subresource="",verb="get",version="v1"'
    assert f'apiserver_request_total{{code="404",{series}}} 1.0' in text
    assert f"apiserver_request_duration_seconds_count{{{series}}} 1.0" in text
    assert 'apiserver_flowcontrol_current_executing_requests{priority_level="workload-low"} 0.0' in text


async def test_a_client_cannot_fill_the_memory_with_new_names(server: Server) -> None:
    before = (await (await server.ask("GET", "/metrics")).read()).count(b"apiserver_request_total{")
    for number in range(20):
        await server.ask(f"VERB{number}", "/api/v1/pods")
        await server.ask("GET", f"/api/v1/pods{number}")
        await server.ask("GET", f"/api/v1/namespaces/default/pods/x/sub{number}")
    after = (await (await server.ask("GET", "/metrics")).read()).count(b"apiserver_request_total{")
    assert after - before <= 6


async def test_others_can_check_tokens_with_the_published_keys(server: Server) -> None:
    from joserfc import jwt
    from joserfc.jwk import KeySet

    about = await get(server, "/.well-known/openid-configuration")
    assert about["jwks_uri"].endswith("/openid/v1/jwks")
    keys = await get(server, "/openid/v1/jwks")
    assert all("d" not in key for key in keys["keys"])  # the private part stays here
    path = "/api/v1/namespaces/default/serviceaccounts/default/token"
    made = document(await (await server.ask("POST", path, b"{}")).read())
    claims = jwt.decode(made["status"]["token"], KeySet.import_key_set(keys), algorithms=["ES256"]).claims
    assert claims["iss"] == about["issuer"]
    assert claims["sub"] == "system:serviceaccount:default:default"


async def test_the_root_lists_paths_that_are_there(server: Server) -> None:
    for path in (await get(server, "/"))["paths"]:
        assert (await server.ask("GET", path)).status == 200, path


@pytest.mark.parametrize(
    ("path", "code", "text"),
    [
        ("/livez?verbose", 200, "[+]ping ok\n[+]log ok\n[+]store ok\n[+]bootstrap ok\nlivez check passed\n"),
        (
            "/readyz",
            500,
            (
                "[+]ping ok\n[+]log ok\n[+]store ok\n[+]bootstrap ok\n"
                "[+]store-writes ok\n[-]shutdown failed: the server is about to stop\nreadyz check failed\n"
            ),
        ),
        ("/readyz?exclude=shutdown", 200, "ok"),
        ("/readyz/ping", 200, "ok"),
        ("/readyz/shutdown", 500, None),
        ("/livez/shutdown", 404, None),
        (
            "/livez?exclude=store&verbose&exclude=nope",
            200,
            (
                "[+]ping ok\n[+]log ok\n[+]store excluded: ok\n[+]bootstrap ok\n"
                'warn: some health checks cannot be excluded: no matches for "nope"\nlivez check passed\n'
            ),
        ),
        ("/api/v1/nodes", 200, None),
    ],
)
async def test_a_server_that_is_about_to_stop_says_so_and_answers(
    server: Server, path: str, code: int, text: str | None
) -> None:
    server.api.drain()
    answer = await server.ask("GET", path)
    assert answer.status == code
    assert text is None or (await answer.read()).decode() == text
