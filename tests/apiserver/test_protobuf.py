"""Protobuf bodies: what kubectl 1.32 really sent, and what is no message at all."""

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podfit.api.batch.v1.types import JobSpec
from podfit.api.meta import codec
from podfit.apiserver.request import protobuf
from podfit.apiserver.request.bodies import document
from podfit.core.errors import ApiError
from podfit.net.wire import Request
from support.captured import CAPTURED, RBAC
from support.protobuf import enveloped, part
from support.server import Server
from support.server import document as answered


def refused(body: bytes) -> ApiError:
    with pytest.raises(ApiError) as caught:
        protobuf.decode(body)
    return caught.value


@pytest.mark.parametrize("command", CAPTURED)
def test_what_kubectl_sends(command: str) -> None:
    encoded, wanted = CAPTURED[command]
    request = Request("POST", "/", headers={"content-type": protobuf.MEDIA_TYPE}, body=b64decode(encoded))
    assert document(request) == (wanted, [])


@pytest.mark.parametrize(
    ("raw", "wanted"),
    [
        (part(4, 0), {"immutable": False}),
        (part(4, 1), {"immutable": True}),
        (part(1, part(10, 0)), {"metadata": {"deletionGracePeriodSeconds": 0}}),
        (part(1, part(7, 0)), {"metadata": {}}),
        (part(1, part(8, part(1, 60))), {"metadata": {"creationTimestamp": "1970-01-01T00:01:00Z"}}),
        (part(1, part(8, part(1, 0) + part(2, 0))), {"metadata": {"creationTimestamp": "1970-01-01T00:00:00Z"}}),
        (part(1, part(11, part(1, b"k"))), {"metadata": {"labels": {"k": ""}}}),
        (
            part(1, part(13, part(3, b"o") + part(6, 0))),
            {"metadata": {"ownerReferences": [{"name": "o", "controller": False}]}},
        ),
        (part(2, part(1, b"a")) + part(2, part(2, b"b")), {"data": {"a": "", "": "b"}}),
        (part(1, part(1, b"a") + part(1, b"b")), {"metadata": {"name": "b"}}),
        (part(15, b"later") + part(14, 1) + bytes([13 << 3 | 5]) + b"1234" + bytes([13 << 3 | 1]) + b"12345678", {}),
    ],
)
def test_absence_and_zero(raw: bytes, wanted: dict[str, Any]) -> None:
    assert protobuf.decode(enveloped("v1", "ConfigMap", raw)) == {"apiVersion": "v1", "kind": "ConfigMap", **wanted}


def test_delete_options_of_every_group() -> None:
    raw = part(1, 0) + part(2, part(1, b"u")) + part(4, b"Orphan") + part(5, b"All")
    assert protobuf.decode(enveloped("scheduling.k8s.io/v1", "DeleteOptions", raw)) == {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "DeleteOptions",
        "gracePeriodSeconds": 0,
        "preconditions": {"uid": "u"},
        "propagationPolicy": "Orphan",
        "dryRun": ["All"],
    }


@pytest.mark.parametrize(
    ("body", "code", "text"),
    [
        (b"", 400, "prefix"),
        (b'{"kind":"Namespace"}', 400, "prefix"),
        (protobuf.MAGIC, 400, "apiVersion and kind"),
        (enveloped("v1", "PodList", b""), 415, "PodList in version v1 is not read as protobuf"),
        (enveloped("v2", "Namespace", b""), 415, "Namespace in version v2"),
        (enveloped("v1", "Namespace", b"", part(3, b"gzip")), 415, 'contentEncoding "gzip"'),
        (enveloped("v1", "Namespace", b"", part(4, b"application/json")), 415, 'contentType "application/json"'),
        (enveloped("v1", "Namespace", part(1, b"\x0a\x05abc")), 400, "unexpected end"),
        (enveloped("v1", "Namespace", part(1, 5)), 400, "metadata has wire type 0 instead of 2"),
        (enveloped("v1", "Namespace", part(1, part(1, b"\xff"))), 400, "not UTF-8"),
        (enveloped("v1", "Namespace", part(0, b"")), 400, "field number 0"),
        (enveloped("v1", "Namespace", bytes([3 << 3 | 3])), 400, "unknown wire type 3"),
        (enveloped("v1", "Namespace", bytes([0x08]) + b"\xff" * 10), 400, "longer than 10 bytes"),
        (enveloped("v1", "Namespace", part(1, part(8, b"\x08" + b"\xff" * 8 + b"\x7f"))), 400, "out of range"),
        (enveloped("v1", "Namespace", part(1, part(17, part(7, part(1, b"{"))))), 400, "a raw value is not JSON"),
    ],
)
def test_refusals(body: bytes, code: int, text: str) -> None:
    error = refused(body)
    assert (error.code, text in error.message) == (code, True), error.message


KINDS = sorted({(wanted["apiVersion"], wanted["kind"]) for _, wanted in CAPTURED.values()})
BODIES = [b64decode(encoded) for encoded, _ in CAPTURED.values()]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A real body with some of its bytes replaced, or cut short."""
    body = bytearray(draw(st.sampled_from(BODIES)))
    for _ in range(draw(st.integers(0, 4))):
        body[draw(st.integers(4, len(body) - 1))] = draw(st.integers(0, 255))
    return bytes(body[: draw(st.integers(4, len(body)))])


@given(
    st.binary()
    | st.binary().map(lambda some: protobuf.MAGIC + some)
    | st.builds(lambda kind, raw: enveloped(*kind, raw), st.sampled_from(KINDS), st.binary(max_size=300))
    | damaged()
)
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    try:
        assert isinstance(protobuf.decode(body), dict)
    except ApiError as error:
        assert error.code in (400, 415)  # noqa: PT017  # either outcome is right


def body_of(command: str) -> bytes:
    return b64decode(next(encoded for name, (encoded, _) in CAPTURED.items() if name.startswith(command)))


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("create namespace", "/api/v1/namespaces"),
        ("create configmap", "/api/v1/namespaces/default/configmaps"),
        ("create secret generic", "/api/v1/namespaces/default/secrets"),
        ("create serviceaccount", "/api/v1/namespaces/default/serviceaccounts"),
        ("create quota", "/api/v1/namespaces/default/resourcequotas"),
        ("create clusterrole cr2", f"/apis/{RBAC}/v1/clusterroles"),
        ("create clusterrolebinding", f"/apis/{RBAC}/v1/clusterrolebindings"),
        ("create priorityclass", "/apis/scheduling.k8s.io/v1/priorityclasses"),
    ],
)
async def test_the_server_creates_from_protobuf_and_answers_json(server: Server, command: str, path: str) -> None:
    accept = f"{protobuf.MEDIA_TYPE},application/json"
    strict = f"{path}?fieldManager=kubectl-create&fieldValidation=Strict"
    response = await server.ask("POST", strict, body_of(command), content_type=protobuf.MEDIA_TYPE, accept=accept)
    made = answered(await response.read())
    assert (response.status, response.headers["content-type"]) == (201, "application/json"), made
    wanted = CAPTURED[next(name for name in CAPTURED if name.startswith(command))][1]
    assert made["metadata"]["name"] == wanted["metadata"]["name"]
    for field in wanted.keys() - {"metadata", "spec", "status"}:
        assert made[field] == wanted[field]


async def test_the_kind_must_be_that_of_the_resource(server: Server) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    response = await server.ask("POST", path, body_of("create namespace"), content_type=protobuf.MEDIA_TYPE)
    assert response.status == 400
    assert "unknown conversion" in answered(await response.read())["message"]


async def test_deletion_with_protobuf_options(server: Server) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    await server.ask("POST", path, body_of("create configmap"), content_type=protobuf.MEDIA_TYPE)
    other = enveloped("v1", "DeleteOptions", part(2, part(1, b"another")))
    refusal = await server.ask("DELETE", f"{path}/a", other, content_type=protobuf.MEDIA_TYPE)
    done = await server.ask("DELETE", f"{path}/a", body_of("drain"), content_type=protobuf.MEDIA_TYPE)
    assert (refusal.status, done.status) == (409, 200)


async def test_a_token_asked_for_in_protobuf(server: Server) -> None:
    raw = part(2, part(1, b"a") + part(4, 3600))
    body = enveloped("authentication.k8s.io/v1", "TokenRequest", raw)
    path = "/api/v1/namespaces/default/serviceaccounts/default/token"
    response = await server.ask("POST", path, body, content_type=protobuf.MEDIA_TYPE)
    made = answered(await response.read())
    assert (response.status, made["spec"]["expirationSeconds"], made["spec"]["audiences"]) == (201, 3600, ["a"])
    assert made["status"]["token"].count(".") == 2


def template(*pod_fields: bytes) -> bytes:
    container = part(1, b"c") + part(2, b"i")
    spec = part(2, container) + b"".join(pod_fields)
    return part(1, part(11, part(1, b"app") + part(2, b"w"))) + part(2, spec)


def test_a_template_is_read() -> None:
    spec = part(1, 3) + part(3, template(part(3, b"Always"), part(14, b"")))
    read = protobuf.decode(enveloped("apps/v1", "Deployment", part(1, part(1, b"w")) + part(2, spec)))
    pod = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Always", "securityContext": {}}
    assert read["spec"] == {"replicas": 3, "template": {"metadata": {"labels": {"app": "w"}}, "spec": pod}}


def test_a_job_with_everything_from_a_cronjob() -> None:
    """`kubectl create job --from` sends the template that it has read as JSON: volumes, probes, affinity and all."""
    sent = json.loads(Path(__file__).with_name("job_from_cronjob.json").read_text())
    read = protobuf.decode(b64decode(sent["body"]))
    template = sent["template"]
    assert codec.convert(read["spec"], JobSpec) == codec.convert(template["spec"], JobSpec)
    assert read["metadata"]["labels"] == template["metadata"]["labels"]
