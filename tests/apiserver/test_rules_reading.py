"""Reading: options of lists and watches, selectors, paths and methods; none of these requests is recorded.

Known from upstream's code: conversion of query values (`runtime/converter`), `ValidateListOptions` and its defaults for
watches, `labels.Parse`, `fields.ParseSelector`, `storage.DecodeContinue`, the routes of `endpoints/installer.go`.
"""

import base64
import json
from typing import Any

import pytest

from support.rules import CONFIGMAPS, NAMESPACE, asked, configmap, made
from support.server import Server

FUTURE = "999999"


async def _three(server: Server) -> str:
    """The revision after three config maps were made."""
    await server.namespace(NAMESPACE, certificate=False)
    objects = await made(server, CONFIGMAPS, *(configmap(name, labels={"t": "x", "n": name}) for name in "abc"))
    return str(objects[-1]["metadata"]["resourceVersion"])


def _token(version: str, revision: int, start: str) -> str:
    text = json.dumps({"v": version, "rv": revision, "start": start}).encode()
    return base64.urlsafe_b64encode(text).decode().rstrip("=")


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("limit=-3", "abc"),
        ("limit=%2B2", "ab"),
        ("limit=1&resourceVersion=0", "abc"),
        ("limit=2&limit=1", "ab"),
        ("resourceVersion=01", "abc"),
        ("timeoutSeconds=-1", "abc"),
        ("watch=0", "abc"),
        ("watch=FALSE", "abc"),
        ("labelSelector=n+in+()", ""),
        ("labelSelector=n+in+(a,,b)", "ab"),
        ("labelSelector=n+notin+(a),t", "bc"),
        ("labelSelector=in+in+(in)", ""),
        ("labelSelector=n>1", ""),
        ("labelSelector=!n", ""),
        ("labelSelector=n%3D", ""),
        ("labelSelector=!z,n%3Da", "a"),
        ("labelSelector=n%21%3Da", "bc"),
        ("labelSelector=+n+%3D+a+", "a"),
        ("labelSelector=t&labelSelector=n%3Da", "abc"),
        ("fieldSelector=,", "abc"),
        ("fieldSelector=metadata.name%3D%3Da", "a"),
        ("fieldSelector=metadata.name%21%3Da", "bc"),
        (r"fieldSelector=metadata.name%3Da\,b", ""),
        ("fieldSelector=metadata.name%3Da,metadata.name%3Db", ""),
        ("fieldSelector=metadata.namespace%3Dother", ""),
        (f"continue={_token('meta.k8s.io/v1', -1, 'a')}&limit=5", "abc"),
        (f"continue={_token('meta.k8s.io/v1', -1, '/a' + chr(0))}", "bc"),
    ],
)
async def test_lists(server: Server, query: str, names: str) -> None:
    await _three(server)
    answer = await asked(server, "GET", f"{CONFIGMAPS}?{query}")
    assert (answer.code, [item["metadata"]["name"] for item in answer.body["items"]]) == (200, list(names))


MATCH, SENT = "resourceVersionMatch", "sendInitialEvents"


@pytest.mark.parametrize(
    ("query", "code", "fields"),
    [
        ("limit=", 400, []),
        ("limit=1.0", 400, []),
        ("limit=99999999999999999999", 400, []),
        ("timeoutSeconds=1s", 400, []),
        ("resourceVersion=1e3", 400, []),
        ("resourceVersion=%2B5", 400, []),
        ("resourceVersion=%200", 400, []),
        (f"resourceVersion={FUTURE}&limit=1", 504, [""]),
        (f"{MATCH}=Bogus", 422, [MATCH, MATCH]),
        ("resourceVersion=-1&resourceVersionMatch=exact", 422, [MATCH]),
        ("continue=x&resourceVersion=1&resourceVersionMatch=Exact", 422, [MATCH]),
        (f"{SENT}=0", 422, [SENT]),
        ("sendInitialEvents=false&resourceVersionMatch=Exact", 422, [MATCH, SENT]),
        (f"continue={_token('v9', 5, 'a')}", 400, []),
        (f"continue={_token('meta.k8s.io/v1', 0, 'a')}", 400, []),
        (f"continue={_token('meta.k8s.io/v1', 5, '')}", 400, []),
        (f"continue={_token('meta.k8s.io/v1', 5, '/../a')}", 400, []),
        ("continue=%25", 400, []),
        ("labelSelector=t,", 400, []),
        ("labelSelector=,t", 400, []),
        ("labelSelector=t%3Dx_", 400, []),
        (f"labelSelector=t%3D{'x' * 64}", 400, []),
        ("labelSelector=t%3Dx+y", 400, []),
        ("labelSelector=!t%3Dx", 400, []),
        ("labelSelector=n+in+a", 400, []),
        ("labelSelector=n+in+(a", 400, []),
        ("labelSelector=t%3D%3D%3Dx", 400, []),
        ("labelSelector=n<5x", 400, []),
        ("labelSelector=a/b/c", 400, []),
        ("labelSelector=/a", 400, []),
        ("labelSelector=a.B/c", 400, []),
        ("labelSelector=n>99999999999999999999", 400, []),
        ("fieldSelector=metadata.name", 400, []),
        ("fieldSelector=metadata.uid%3Dx", 400, []),
        ("fieldSelector=metadata.name%3Da%3Db", 400, []),
        (r"fieldSelector=metadata.name%3Da\x", 400, []),
        ("fieldSelector=metadata.name%3Da%5C", 400, []),
        ("fieldSelector=%3Dx", 400, []),
        ("watch=1&continue=x", 422, [MATCH]),
        ("watch=&limit=y", 400, []),
        ("watch=yes&sendInitialEvents=", 422, [MATCH]),
        (f"watch=1&{SENT}=1&{MATCH}=NotOlderThan&resourceVersion={FUTURE}", 504, [""]),
        (f"watch=1&{MATCH}=Exact&resourceVersion=1", 422, [MATCH, MATCH]),
    ],
)
async def test_lists_and_watches_that_are_refused(server: Server, query: str, code: int, fields: list[str]) -> None:
    await _three(server)
    answer = await asked(server, "GET", f"{CONFIGMAPS}?{query}")
    reason = {400: "BadRequest", 422: "Invalid", 504: "Timeout"}[code]
    assert (answer.code, answer.reason, answer.fields) == (code, reason, fields), answer.message


@pytest.mark.parametrize(
    ("path", "names"),
    [
        (f"{CONFIGMAPS}?watch=x&timeoutSeconds=1", "abc"),
        (f"{CONFIGMAPS}?watch=&timeoutSeconds=1", "abc"),
        (CONFIGMAPS.replace("/v1/", "/v1/watch/") + "?timeoutSeconds=1", "abc"),
        (CONFIGMAPS.replace("/v1/", "/v1/watch/") + "/b?timeoutSeconds=1", "b"),
        (CONFIGMAPS.replace("/v1/", "/v1/watch/") + "/b?timeoutSeconds=1&fieldSelector=metadata.name%3Db", "b"),
        ("/api/v1/watch/configmaps?timeoutSeconds=1&labelSelector=n%3Dc", "c"),
        (CONFIGMAPS.replace("/v1/", "/v1/watch/") + "?watch=0&timeoutSeconds=1&limit=1", "abc"),
    ],
)
async def test_watches(server: Server, path: str, names: str) -> None:
    await _three(server)
    answer = await asked(server, "GET", path)
    lines = [json.loads(line) for line in answer.body["text"].splitlines()] if "text" in answer.body else [answer.body]
    assert answer.code == 200
    assert [(line["type"], line["object"]["metadata"]["name"]) for line in lines] == [("ADDED", name) for name in names]


WATCHED = CONFIGMAPS.replace("/v1/", "/v1/watch/")


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", WATCHED + "/b?fieldSelector=metadata.name%3Dc", 400),
        ("GET", WATCHED + f"?{SENT}=true", 422),
        ("GET", WATCHED + "/b/status", 404),
        ("GET", "/api/v1/watch/nope", 404),
        ("GET", "/api/v1/watch", 404),
        ("POST", WATCHED, 405),
        ("DELETE", WATCHED + "/b", 405),
        ("GET", "/api/v1/watch/configmaps/b", 404),
        ("GET", "/apis/authentication.k8s.io/v1/watch/tokenreviews", 404),
        ("HEAD", CONFIGMAPS, 405),
        ("HEAD", CONFIGMAPS + "/nope", 405),
        ("HEAD", "/api/v1", 405),
        ("HEAD", "/version", 405),
        ("HEAD", "/healthz", 200),
        ("OPTIONS", "/", 200),
        ("TRACE", CONFIGMAPS + "/a", 405),
        ("POST", "/livez", 200),
        ("POST", "/apis/apps", 405),
        ("PUT", "/apis/nope", 404),
        ("DELETE", "/nope", 404),
        ("POST", "/version", 405),
        ("POST", "/api/v1/configmaps", 405),
        ("DELETE", "/api/v1/configmaps", 405),
        ("PUT", "/api/v1/configmaps/a", 404),
        ("GET", "/api/v1/configmaps/a", 404),
        ("POST", CONFIGMAPS + "/a", 405),
        ("PATCH", CONFIGMAPS, 405),
        ("POST", "/apis/authorization.k8s.io/v1/localsubjectaccessreviews", 404),
        ("POST", CONFIGMAPS + "/a/status", 404),
    ],
)
async def test_paths_and_methods(server: Server, method: str, path: str, code: int) -> None:
    await _three(server)
    assert (await asked(server, method, path, {} if method in ("POST", "PUT", "PATCH") else b"")).code == code
    assert (await asked(server, "GET", CONFIGMAPS)).body["items"][2:], "nothing was deleted"


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("resourceVersion=0", 200),
        (f"resourceVersion={FUTURE}", 504),
        ("watch=1", 200),
        ("limit=x", 200),
        ("fieldSelector=nope", 200),
        ("resourceVersion=x", 400),
        ("resourceVersionMatch=Bogus", 200),
    ],
)
async def test_an_object_is_read_by_its_name_and_version_alone(server: Server, query: str, code: int) -> None:
    await _three(server)
    answer = await asked(server, "GET", f"{CONFIGMAPS}/a?{query}")
    assert (answer.code, answer.body["kind"]) == (code, "ConfigMap" if code == 200 else "Status")


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/api/v1/nodes?fieldSelector=metadata.namespace%3D", 400),
        ("/apis/rbac.authorization.k8s.io/v1/clusterroles?fieldSelector=metadata.namespace%3Dx", 200),
        ("/api/v1/namespaces?fieldSelector=status.phase%3DActive", 200),
        ("/api/v1/namespaces?fieldSelector=metadata.namespace%3Dx", 400),
        ("/api/v1/pods?fieldSelector=spec.containers%3Dx", 400),
        ("/api/v1/events?fieldSelector=reason%3Dx", 200),
        ("/apis/batch/v1/jobs?fieldSelector=status.active%3D1", 400),
        ("/api/v1/services?fieldSelector=spec.type%3Dx", 200),
    ],
)
async def test_fields_that_a_kind_can_be_selected_by(server: Server, path: str, code: int) -> None:
    assert (await asked(server, "GET", path)).code == code


async def test_a_token_whose_moment_is_gone_comes_with_one_for_the_present(server: Server) -> None:
    revision = int(await _three(server))
    await server.context.store.compact(revision)
    first = await asked(server, "GET", f"{CONFIGMAPS}?continue={_token('meta.k8s.io/v1', 1, 'a' + chr(0))}")
    assert (first.code, first.reason) == (410, "Expired")
    answer = await asked(server, "GET", f"{CONFIGMAPS}?continue={first.body['metadata']['continue']}")
    assert _names(answer.body) == ["b", "c"]


def _names(body: dict[str, Any]) -> list[str]:
    return [item["metadata"]["name"] for item in body["items"]]
