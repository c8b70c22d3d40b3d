"""Which form an answer has, with Accept headers that are in no recording.

Known from upstream's code: `goautoneg.ParseAccept`, `negotiation.NegotiateMediaTypeOptions`, the restrictions of
`handlers.RequestScope`, go-restful's `matchesAccept`, `aggregated.WrapAggregationHandler` and the OpenAPI handlers.
"""

import pytest

from podfit.apiserver.request.negotiation import offers
from podfit.apiserver.request.representations import NONE
from support.rules import CONFIGMAPS, NAMESPACE, asked, configmap, made
from support.server import Server

JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
TABLE = ";as=Table;v=v1;g=meta.k8s.io"
ALONE = ";as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
GROUPS = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
ROUTED = "406: Not Acceptable"
REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"


@pytest.mark.parametrize(
    ("header", "kinds"),
    [
        ("a/b;q=0.2, c/d;q=0.7", ["c/d", "a/b"]),
        ("a/b, c/d", ["a/b", "c/d"]),
        ("*/*, a/b", ["a/b", "*/*"]),
        ("a/*, a/b", ["a/b", "a/*"]),
        ("*", ["*/*"]),
        ("garbage, a/b/c, a/b", ["a/b"]),
        ("a/b;q=x, c/d;q=0.1", ["c/d", "a/b"]),
        ("a/b;q=0", ["a/b"]),
        ("*/*;q=1, a/b;q=0.1", ["a/b", "*/*"]),
        (" a / b ;x=1", ["a/b"]),
        (",,", []),
    ],
)
def test_the_order_of_offers(header: str, kinds: list[str]) -> None:
    assert [offer.kind for offer in offers(header)] == kinds


def test_parameters_of_an_offer() -> None:
    (offer,) = offers("a/b; as=Table ;v=v1;x;y=;z=1=2;q=0.5")
    assert (dict(offer.parameters), offer.quality) == ({"as": "Table", "v": "v1"}, 0.5)


@pytest.mark.parametrize(
    ("accept", "code", "told"),
    [
        (f"{JSON};q=0.1, {JSON}{TABLE};q=0.9", 200, "Table"),
        (f"{JSON}, {JSON}{TABLE}", 200, "ConfigMap"),
        (f"{JSON}{TABLE.replace('v1', 'v9')}, {JSON}{ALONE}", 200, "PartialObjectMetadata"),
        (f"{YAML};q=0.9, {JSON}", 200, "ConfigMap"),
        (f"{YAML}, {JSON};q=0.9", 200, "kind: ConfigMap"),
        (f"{YAML}{TABLE}", 200, "kind: Table"),
        (f"{YAML}{ALONE}", 200, "kind: PartialObjectMetadata"),
        (f"*/*{TABLE}", 200, "Table"),
        ("*/*;q=0.1", 200, "ConfigMap"),
        (f"{JSON};g=meta.k8s.io", 406, NONE),
        (f"{JSON};as=Table", 406, NONE),
        (f"{JSON};stream=watch", 200, "ConfigMap"),
        (f"{JSON};stream=log", 406, NONE),
        (f"{YAML};stream=watch", 406, NONE),
        (f"{JSON};sv=v1", 200, "ConfigMap"),
        (f"{JSON};sv=v2", 406, NONE),
        (f"{JSON};unknown=1", 200, "ConfigMap"),
        ("application/*", 406, ROUTED),
        (f"application/*, {JSON}{TABLE}", 200, "Table"),
        ("text/html;q=1, image/*", 406, ROUTED),
        (f"{PROTOBUF}, {JSON};q=0.5", 200, "ConfigMap"),
        (PROTOBUF, 406, "this server answers in no protobuf"),
    ],
)
async def test_forms_of_an_object(server: Server, accept: str, code: int, told: str) -> None:
    await server.namespace(NAMESPACE)
    await made(server, CONFIGMAPS, configmap("a"))
    answer = await asked(server, "GET", f"{CONFIGMAPS}/a", accept=accept)
    said = answer.body.get("text") or answer.message or answer.body["kind"]
    assert (answer.code, said.find(told) >= 0) == (code, True), answer


@pytest.mark.parametrize(("path", "streams"), [(CONFIGMAPS, True), (f"{CONFIGMAPS}?watch=1", True), (REVIEW, False)])
async def test_lists_can_be_streams(server: Server, path: str, streams: bool) -> None:
    method = "POST" if path == REVIEW else "GET"
    answer = await asked(server, method, path, {}, accept="text/plain")
    assert (answer.code, answer.message.startswith(ROUTED)) == (406, True)
    assert ("stream=watch" in answer.message) is streams


@pytest.mark.parametrize(
    ("query", "agent", "accept", "indented"),
    [
        ("pretty=1", "", JSON, True),
        ("pretty=T", "", JSON, True),
        ("pretty=yes", "curl/8", JSON, False),
        ("pretty=", "curl/8", JSON, True),
        ("pretty=", "", JSON, False),
        ("", "curlew", JSON, True),
        ("", "Mozilla/4.0", JSON, False),
        ("", "Wget", JSON, True),
        ("", "", f"{JSON};pretty=1", True),
        ("", "", f"{JSON};pretty=true", False),
        ("pretty=0", "", f"{JSON};pretty=1", True),
    ],
)
async def test_indented_answers(server: Server, query: str, agent: str, accept: str, indented: bool) -> None:
    answer = await server.ask("GET", f"/api/v1/namespaces/default?{query}", accept=accept, user_agent=agent)
    assert isinstance(answer.body, bytes)
    assert answer.body.startswith(b'{\n  "kind"') is indented


@pytest.mark.parametrize(
    ("path", "accept", "code", "told"),
    [
        ("/apis", f"{JSON};q=0.1, {JSON}{GROUPS}", 200, "APIGroupDiscoveryList"),
        ("/apis", f"{JSON}, {JSON}{GROUPS}", 200, "APIGroupList"),
        ("/apis", f"*/*{GROUPS}", 200, "APIGroupDiscoveryList"),
        ("/apis", f"{YAML}{GROUPS}", 200, "kind: APIGroupDiscoveryList"),
        ("/apis", f"{JSON};as=APIGroupDiscoveryList", 406, NONE),
        ("/apis", "text/html", 406, NONE),
        ("/apis", "application/*", 200, "APIGroupList"),
        ("/api", "text/html", 406, ROUTED),
        ("/api", "application/*", 406, ROUTED),
        ("/apis/apps", "text/html", 406, NONE),
        ("/apis/apps", f"{JSON}{GROUPS}", 406, NONE),
        ("/apis/apps/v1", "text/html", 406, ROUTED),
        ("/apis/apps/v1", f"{JSON}{TABLE}", 406, NONE),
        ("/apis/apps/v1", YAML, 200, "kind: APIResourceList"),
    ],
)
async def test_forms_of_discovery(server: Server, path: str, accept: str, code: int, told: str) -> None:
    answer = await asked(server, "GET", path, accept=accept)
    said = answer.body.get("text") or answer.message or answer.body["kind"]
    assert (answer.code, told in said) == (code, True), answer


async def test_aggregated_discovery_is_kept_by_its_hash(server: Server) -> None:
    first = await server.ask("GET", "/apis", accept=f"{JSON}{GROUPS}")
    again = await server.ask("GET", "/apis", accept=f"{JSON}{GROUPS}", if_none_match=first.headers["etag"])
    other = await server.ask("GET", "/api", accept=f"{JSON}{GROUPS}", if_none_match=first.headers["etag"])
    assert (first.headers["vary"], again.status, again.body, other.status) == ("Accept", 304, b"", 200)


@pytest.mark.parametrize(
    ("path", "accept", "code", "header", "told"),
    [
        ("/openapi/v3", "", 200, "content-type", "text/plain"),
        ("/openapi/v3/api/v1", "text/html", 406, "vary", "Accept"),
        ("/openapi/v3/api/v1", "text/html, */*;q=0.1", 200, "vary", "Accept"),
        ("/openapi/v3/api/v1?hash=0", "", 301, "location", "/openapi/v3/api/v1?hash="),
        ("/openapi/v3/api/v9", "", 404, "", ""),
        ("/openapi/v2", "text/html", 406, "", ""),
        ("/openapi/v2", f"text/html, {JSON};q=0.1", 200, "vary", "Accept-Encoding"),
    ],
)
async def test_forms_of_schemas(server: Server, path: str, accept: str, code: int, header: str, told: str) -> None:
    answer = await server.ask("GET", path, accept=accept)
    assert answer.status == code
    assert answer.headers.get(header, "").startswith(told)
