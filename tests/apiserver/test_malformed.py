"""Whatever a client sends, the answer is the API's: a Status that says what is wrong, never a 5xx."""

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podfit.apiserver.handlers.patching import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from support.server import Server, document, running_server

PODS = "/api/v1/namespaces/default/pods"
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "labels": {"app": "x"}},
    "spec": {
        "containers": [
            {
                "name": "c",
                "image": "busybox",
                "env": [{"name": "A", "value": "1"}],
                "resources": {"requests": {"cpu": "100m"}},
            }
        ],
        "tolerations": [{"key": "t"}],
    },
}


@pytest.mark.parametrize(
    ("method", "path", "body", "code", "reason"),
    [
        ("POST", PODS, b"", 400, "BadRequest"),
        ("POST", PODS, b"{", 400, "BadRequest"),
        ("POST", PODS, b"[]", 400, "BadRequest"),
        ("POST", PODS, b"null", 422, "Invalid"),
        ("POST", PODS, b'"\xff"', 400, "BadRequest"),
        ("POST", PODS, b"[" * 100_000, 400, "BadRequest"),
        ("POST", PODS, b'{"metadata":{"name":1}}', 400, "BadRequest"),
        ("POST", PODS, b'{"metadata":{"name":"a","creationTimestamp":"yesterday"}}', 400, "BadRequest"),
        ("POST", PODS, b'{"kind":"Node","apiVersion":"v1"}', 400, "BadRequest"),
        ("POST", PODS, b'{"metadata":{"name":"a"}}', 422, "Invalid"),
        ("POST", PODS, b'{"metadata":{"name":"a","namespace":"other"}}', 400, "BadRequest"),
        ("POST", f"{PODS}?fieldValidation=Maybe", b"{}", 422, "Invalid"),
        ("POST", f"{PODS}?dryRun=Some", b"{}", 422, "Invalid"),
        ("POST", f"{PODS}/a", b"{}", 405, "MethodNotAllowed"),
        ("PUT", PODS, b"{}", 405, "MethodNotAllowed"),
        ("PATCH", f"{PODS}/a", b"{}", 415, "UnsupportedMediaType"),
        ("BREW", f"{PODS}/a", b"", 405, "MethodNotAllowed"),
        ("GET", f"{PODS}?limit=many", b"", 400, "BadRequest"),
        ("GET", f"{PODS}?labelSelector=a%20like%20b", b"", 400, "BadRequest"),
        ("GET", f"{PODS}?fieldSelector=spec.colour=red", b"", 400, "BadRequest"),
        ("GET", f"{PODS}?continue=there", b"", 400, "BadRequest"),
        ("GET", f"{PODS}?resourceVersion=new", b"", 400, "BadRequest"),
        ("GET", f"{PODS}?watch=1&resourceVersion=new", b"", 400, "BadRequest"),
        ("GET", f"{PODS}/nobody", b"", 404, "NotFound"),
        ("GET", "/api/v1/namespaces/default/foos", b"", 404, "NotFound"),
        ("GET", f"{PODS}/a/soul", b"", 404, "NotFound"),
        ("DELETE", f"{PODS}/nobody", b'{"gracePeriodSeconds":"soon"}', 400, "BadRequest"),
        ("DELETE", f"{PODS}/nobody", b'{"propagationPolicy":"Sideways"}', 422, "Invalid"),
    ],
)
async def test_each_mistake_has_its_status(
    server: Server, method: str, path: str, body: bytes, code: int, reason: str
) -> None:
    answer = await server.ask(method, path, body)
    status = document(await answer.read())
    assert (answer.status, status["kind"], status["status"]) == (code, "Status", "Failure")
    assert (status["code"], status["reason"]) == (code, reason)
    assert status["message"]


@pytest.mark.parametrize(
    "path", ["/nope", "/apis/nothing.io/v1/deployments", "/apis/nothing.io", "/openapi", "/api/v1/pods/a"]
)
async def test_a_path_of_nothing_is_a_plain_404(server: Server, path: str) -> None:
    answer = await server.ask("GET", path)
    assert (answer.status, await answer.read()) == (404, b"404 page not found\n")


@pytest.mark.parametrize("kind", ["text/plain", "application/cbor", "x"])
async def test_a_body_of_another_kind_is_unsupported(server: Server, kind: str) -> None:
    answer = await server.ask("POST", PODS, json.dumps(POD).encode(), content_type=kind)
    assert answer.status == 415


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("application/vnd.kubernetes.protobuf,application/json", 200),
        ("application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json", 200),
        ("", 200),
        ("*/*", 200),
        ("application/*;q=0.8", 406),
        ("application/vnd.kubernetes.protobuf", 406),
        ("text/html", 406),
        (";;,", 406),
    ],
)
async def test_the_first_form_that_the_server_has_is_taken(server: Server, accept: str, status: int) -> None:
    assert (await server.ask("GET", PODS, accept=accept)).status == status


@pytest.mark.parametrize(
    ("path", "kind"), [("", "Table"), ("/status", "Table"), ("/resize", "Pod"), ("/ephemeralcontainers", "Pod")]
)
async def test_some_subresources_have_no_table(server: Server, path: str, kind: str) -> None:
    """So `kubectl get pod --subresource=resize` prints a name and an age."""
    assert (await server.ask("POST", PODS, json.dumps(POD).encode())).status == 201
    table, where = "application/json;as=Table;v=v1;g=meta.k8s.io", f"{PODS}/{POD['metadata']['name']}{path}"
    answer = await server.ask("GET", where, accept=f"{table},application/json")
    assert document(await answer.read())["kind"] == kind
    assert (await server.ask("GET", where, accept=table)).status == (200 if kind == "Table" else 406)


async def test_yaml_is_taken_for_creation_and_broken_yaml_is_not(server: Server) -> None:
    text = b"{metadata: {name: why}, spec: {containers: [{name: c, image: busybox}]}}"
    assert (await server.ask("POST", PODS, text, content_type="application/yaml")).status == 201
    for broken in (b"a: [", b"&a [*a]", b"- 1", b"? {a: b} : c", b"{metadata: {1: 2}, spec: 3}"):
        assert (await server.ask("POST", PODS, broken, content_type="application/yaml")).status == 400, broken


async def test_times_in_yaml_are_strings(server: Server) -> None:
    text = b"{metadata: {name: t, creationTimestamp: 2026-01-01T00:00:00Z}, data: {day: 2026-01-01}}"
    made = await server.ask("POST", "/api/v1/namespaces/default/configmaps", text, content_type="application/yaml")
    assert document(await made.read())["data"] == {"day": "2026-01-01"}


def values() -> st.SearchStrategy[Any]:
    """JSON, with a bent for what means something to a server."""
    words = st.sampled_from(
        ["", "a", "c", "100m", "-1", "1e999", "\u0000", "ÿ", "default", "$patch", "0", "9" * 40, "1Ei", "Always"]
    )
    scalars = st.one_of(st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False), words)
    names = st.sampled_from(
        [
            "metadata",
            "spec",
            "name",
            "containers",
            "resources",
            "requests",
            "cpu",
            "$patch",
            "op",
            "path",
            "value",
            "env",
            "$setElementOrder/containers",
            "$deleteFromPrimitiveList/finalizers",
            "$retainKeys",
            "labels",
            "x",
        ]
    )
    return st.recursive(
        scalars,
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=4)),
        max_leaves=8,
    )


def _paths(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [here]
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        found += _paths(inner, (*here, key))
    return found


def _with(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    head, *rest = path
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[head] = _with(value[head], tuple(rest), new)
    return copy


BENT = st.sampled_from(_paths(POD)).flatmap(lambda path: values().map(lambda new: _with(POD, path, new)))
OPERATIONS = st.lists(
    st.fixed_dictionaries(
        {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "up"])},
        optional={
            "path": st.sampled_from(["", "/", "/metadata/name", "/spec/containers/0", "/spec/containers/-", "b"]),
            "from": st.sampled_from(["", "/spec", "/metadata/labels", "x"]),
            "value": values(),
        },
    ),
    max_size=4,
)
REQUESTS = st.one_of(
    st.tuples(st.just("POST"), st.just(PODS), st.just("application/json"), BENT),
    st.tuples(
        st.just("PUT"),
        st.sampled_from([f"{PODS}/a", f"{PODS}/a/status", f"{PODS}/a/resize"]),
        st.just("application/json"),
        BENT,
    ),
    st.tuples(
        st.just("PATCH"),
        st.sampled_from([f"{PODS}/a", f"{PODS}/a/status", f"{PODS}/a/resize"]),
        st.sampled_from([MERGE_PATCH, STRATEGIC_PATCH]),
        st.one_of(values(), BENT),
    ),
    st.tuples(st.just("PATCH"), st.just(f"{PODS}/a"), st.just(JSON_PATCH), st.one_of(OPERATIONS, values())),
    st.tuples(
        st.just("POST"),
        st.sampled_from(
            [
                f"{PODS}/a/binding",
                "/api/v1/namespaces",
                "/api/v1/nodes",
                "/api/v1/namespaces/default/serviceaccounts/default/token",
                "/api/v1/namespaces/default/events",
            ]
        ),
        st.just("application/json"),
        values(),
    ),
    st.tuples(st.just("DELETE"), st.just(f"{PODS}/nobody"), st.just("application/json"), values()),
)


async def _send(requests: list[tuple[str, str, str, Any]]) -> list[tuple[int, bytes]]:
    with tempfile.TemporaryDirectory() as folder:
        async with running_server(Path(folder)) as server:
            await server.ask("POST", PODS, json.dumps(POD).encode())
            answers = []
            for method, path, kind, body in requests:
                answer = await server.ask(method, path, json.dumps(body).encode(), content_type=kind)
                answers.append((answer.status, await answer.read()))
            for collection in (PODS, "/api/v1/namespaces", "/api/v1/nodes", "/api/v1/events"):
                found = await server.ask("GET", collection, accept="application/json;as=Table;v=v1;g=meta.k8s.io")
                answers.append((found.status, await found.read()))
            return answers


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.lists(REQUESTS, min_size=1, max_size=8))
def test_no_document_makes_the_server_fail(requests: list[tuple[str, str, str, Any]]) -> None:
    for status, body in asyncio.run(_send(requests)):
        assert status < 500, (requests, body)
        assert json.loads(body)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60))
def test_no_bytes_make_the_server_fail(body: bytes) -> None:
    async def send() -> list[int]:
        with tempfile.TemporaryDirectory() as folder:
            async with running_server(Path(folder)) as server:
                kinds = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
                bodies = [(kind, body) for kind in kinds] + [(kinds[2], b"k8s\x00\n\x0b\n\x02v1\x12\x03Pod\x12" + body)]
                return [(await server.ask("POST", PODS, body, content_type=kind)).status for kind, body in bodies]

    assert all(400 <= status < 500 for status in asyncio.run(send()))


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(
            [
                "watch",
                "limit",
                "continue",
                "resourceVersion",
                "labelSelector",
                "fieldSelector",
                "resourceVersionMatch",
                "timeoutSeconds",
                "sendInitialEvents",
                "fieldValidation",
                "dryRun",
                "gracePeriodSeconds",
                "includeObject",
                "container",
                "tailLines",
            ]
        ),
        st.sampled_from(
            [
                "",
                "0",
                "1",
                "-1",
                "true",
                "a",
                "a=b",
                "a in (b",
                "a>1",
                "!a,b notin (c)",
                "Exact",
                "²",
                "NotOlderThan",
                "9" * 30,
                "metadata.name=a",
                "spec.nodeName!=x",
                "eyJydiI6MX0",
                ",",
                "a===",
            ]
        ),
    ),
    st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]),
    st.sampled_from([PODS, f"{PODS}/b", f"{PODS}/b/log", "/api/v1/nodes", "/api", "/version", "/healthz", "/x"]),
)
def test_no_query_makes_the_server_fail(query: dict[str, str], method: str, path: str) -> None:
    async def send() -> int:
        with tempfile.TemporaryDirectory() as folder:
            async with running_server(Path(folder)) as server:
                text = "&".join(f"{name}={value}" for name, value in query.items())
                answer = await server.ask(method, f"{path}?{text}", b"{}" if method != "GET" else b"")
                if not isinstance(answer.body, bytes):
                    await answer.body.aclose()  # type: ignore[attr-defined]  # a stream that can be closed
                return answer.status

    status = asyncio.run(send())
    assert status < 500 or (status == 504 and "resourceVersion" in query)
