"""Protobuf bodies: what kubectl 1.32 really sent, and what is no message at all."""

import struct
from base64 import b64decode, b64encode
from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podfit.api.base import Struct
from podfit.api.meta import DeleteOptions
from podfit.apiserver import protobuf
from podfit.apiserver.bodies import document
from podfit.apiserver.protobuf.layouts import bodies, section_of
from podfit.apiserver.protobuf.numbers import published
from podfit.core.errors import ApiError
from podfit.net.wire import Request
from support.protobuf import enveloped, part, varint
from support.server import Server
from support.server import document as answered

RBAC = "rbac.authorization.k8s.io"
DOCKER = b'{"auths":{"https://index.docker.io/v1/":{"username":"u","password":"p","auth":"dTpw"}}}'
# Bodies as `kubectl -v=9` shows them, by the command that sent them.
CAPTURED: dict[str, tuple[str, dict[str, Any]]] = {
    "create namespace foo": (
        "azhzAAoPCgJ2MRIJTmFtZXNwYWNlEhsKEwoDZm9vEgAaACIAKgAyADgAQgASABoCCgAaACIA",
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "foo"}, "spec": {}, "status": {}},
    ),
    "create configmap a --from-literal=a=b --from-file=b=bin": (
        "azhzAAoPCgJ2MRIJQ29uZmlnTWFwEiUKEQoBYRIAGgAiACoAMgA4AEIAEgYKAWESAWIaCAoBYhIDa/94GgAiAA==",
        {
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "b"},
            "binaryData": {"b": "a/94"},
        },
    ),
    "create secret generic s --from-literal=a=b": (
        "azhzAAoMCgJ2MRIGU2VjcmV0Eh0KEQoBcxIAGgAiACoAMgA4AEIAEgYKAWESAWIaABoAIgA=",
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "Yg=="}},
    ),
    "create secret docker-registry d --docker-username=u --docker-password=p": (
        ("azhzAAoMCgJ2MRIGU2VjcmV0EqEBChEKAWQSABoAIgAqADIAOABCABJsChEuZG9ja2VyY29uZmlnanNvbhJXeyJhdXRocyI6eyJodHRwczovL2luZGV4"
        "LmRvY2tlci5pby92MS8iOnsidXNlcm5hbWUiOiJ1IiwicGFzc3dvcmQiOiJwIiwiYXV0aCI6ImRUcHcifX19Gh5rdWJlcm5ldGVzLmlvL2RvY2tlcmNv"
        "bmZpZ2pzb24aACIA"),
        {
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "d"}, "type": "kubernetes.io/dockerconfigjson",
            "data": {".dockerconfigjson": b64encode(DOCKER).decode()},
        },
    ),
    "create serviceaccount x": (
        "azhzAAoUCgJ2MRIOU2VydmljZUFjY291bnQSEwoRCgF4EgAaACIAKgAyADgAQgAaACIA",
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "x"}},
    ),
    "create role r --verb=get,list --resource=pods,pods/log --resource-name=n": (
        ("azhzAAokChxyYmFjLmF1dGhvcml6YXRpb24uazhzLmlvL3YxEgRSb2xlEjUKEQoBchIAGgAiACoAMgA4AEIAEiAKA2dldAoEbGlzdBIAGgRwb2RzGghw"
        "b2RzL2xvZyIBbhoAIgA="),
        {
            "apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": {"name": "r"},
            "rules": [{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "pods/log"],
                       "resourceNames": ["n"]}],
        },
    ),
    "create rolebinding rb --role=r --user=u --group=g --serviceaccount=default:x": (
        ("azhzAAorChxyYmFjLmF1dGhvcml6YXRpb24uazhzLmlvL3YxEgtSb2xlQmluZGluZxKrAQoSCgJyYhIAGgAiACoAMgA4AEIAEiYKBFVzZXISGXJiYWMu"
        "YXV0aG9yaXphdGlvbi5rOHMuaW8aAXUiABInCgVHcm91cBIZcmJhYy5hdXRob3JpemF0aW9uLms4cy5pbxoBZyIAEh4KDlNlcnZpY2VBY2NvdW50EgAa"
        "AXgiB2RlZmF1bHQaJAoZcmJhYy5hdXRob3JpemF0aW9uLms4cy5pbxIEUm9sZRoBchoAIgA="),
        {
            "apiVersion": f"{RBAC}/v1", "kind": "RoleBinding", "metadata": {"name": "rb"},
            "subjects": [
                {"kind": "User", "apiGroup": RBAC, "name": "u"}, {"kind": "Group", "apiGroup": RBAC, "name": "g"},
                {"kind": "ServiceAccount", "name": "x", "namespace": "default"},
            ],
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "r"},
        },
    ),
    "create clusterrole cr --verb=get --non-resource-url=/healthz": (
        ("azhzAAorChxyYmFjLmF1dGhvcml6YXRpb24uazhzLmlvL3YxEgtDbHVzdGVyUm9sZRIlChIKAmNyEgAaACIAKgAyADgAQgASDwoDZ2V0KggvaGVhbHRo"
        "ehoAIgA="),
        {
            "apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": "cr"},
            "rules": [{"verbs": ["get"], "nonResourceURLs": ["/healthz"]}],
        },
    ),
    "create clusterrole cr2 --aggregation-rule=a=b": (
        ("azhzAAorChxyYmFjLmF1dGhvcml6YXRpb24uazhzLmlvL3YxEgtDbHVzdGVyUm9sZRIhChMKA2NyMhIAGgAiACoAMgA4AEIAGgoKCAoGCgFhEgFiGgAi"
        "AA=="),
        {
            "apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": "cr2"},
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]},
        },
    ),
    "create clusterrolebinding crb --clusterrole=cr --user=u": (
        ("azhzAAoyChxyYmFjLmF1dGhvcml6YXRpb24uazhzLmlvL3YxEhJDbHVzdGVyUm9sZUJpbmRpbmcSawoTCgNjcmISABoAIgAqADIAOABCABImCgRVc2Vy"
        "EhlyYmFjLmF1dGhvcml6YXRpb24uazhzLmlvGgF1IgAaLAoZcmJhYy5hdXRob3JpemF0aW9uLms4cy5pbxILQ2x1c3RlclJvbGUaAmNyGgAiAA=="),
        {
            "apiVersion": f"{RBAC}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "crb"},
            "subjects": [{"kind": "User", "apiGroup": RBAC, "name": "u"}],
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cr"},
        },
    ),
    "create priorityclass pc --value=-5 --description=hello --preemption-policy=Never": (
        ("azhzAAolChRzY2hlZHVsaW5nLms4cy5pby92MRINUHJpb3JpdHlDbGFzcxIvChIKAnBjEgAaACIAKgAyADgAQgAQ+///////////ARgAIgVoZWxsbyoF"
        "TmV2ZXIaACIA"),
        {
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "pc"}, "value": -5,
            "description": "hello", "preemptionPolicy": "Never",
        },
    ),
    "create quota q --hard=cpu=1,memory=1Gi,pods=5 --scopes=NotTerminating": (
        ("azhzAAoTCgJ2MRINUmVzb3VyY2VRdW90YRJRChEKAXESABoAIgAqADIAOABCABI6CgoKA2NwdRIDCgExCg8KBm1lbW9yeRIFCgMxR2kKCwoEcG9kcxID"
        "CgE1Eg5Ob3RUZXJtaW5hdGluZxoAGgAiAA=="),
        {
            "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"},
            "spec": {"hard": {"cpu": "1", "memory": "1Gi", "pods": "5"}, "scopes": ["NotTerminating"]}, "status": {},
        },
    ),
    "create token default --duration=1h --audience=a --bound-object-kind=Pod --bound-object-name=p": (
        ("azhzAAooChhhdXRoZW50aWNhdGlvbi5rOHMuaW8vdjESDFRva2VuUmVxdWVzdBIwChAKABIAGgAiACoAMgA4AEIAEhYKAWEaDgoDUG9kEgJ2MRoBcCIA"
        "IJAcGgQKABIAGgAiAA=="),
        {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": {},
            "spec": {"audiences": ["a"], "expirationSeconds": 3600,
                     "boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p"}},
            "status": {},
        },
    ),
    "drain n1": (
        "azhzAAoTCgJ2MRINRGVsZXRlT3B0aW9ucxIAGgAiAA==", {"apiVersion": "v1", "kind": "DeleteOptions"},
    ),
    "drain n1 --grace-period=0": (
        "azhzAAoTCgJ2MRINRGVsZXRlT3B0aW9ucxICCAAaACIA",
        {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0},
    ),
}  # fmt: skip


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
)  # fmt: skip
def test_absence_and_zero(raw: bytes, wanted: dict[str, Any]) -> None:
    assert protobuf.decode(enveloped("v1", "ConfigMap", raw)) == {"apiVersion": "v1", "kind": "ConfigMap", **wanted}


def test_delete_options_of_every_group() -> None:
    raw = part(1, 0) + part(2, part(1, b"u")) + part(4, b"Orphan") + part(5, b"All")
    assert protobuf.decode(enveloped("scheduling.k8s.io/v1", "DeleteOptions", raw)) == {
        "apiVersion": "scheduling.k8s.io/v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0,
        "preconditions": {"uid": "u"}, "propagationPolicy": "Orphan", "dryRun": ["All"],
    }  # fmt: skip


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


@pytest.mark.parametrize(
    "values", [part(3, varint(1) + varint(300)), part(3, 1) + part(3, 300)], ids=["packed", "one by one"]
)
def test_numbers_of_a_list(values: bytes) -> None:
    """Go writes them one by one and reads both, as every library has to."""
    rule = part(1, b"FailJob") + part(2, part(2, b"In") + values)
    read = protobuf.decode(enveloped("batch/v1", "Job", part(2, part(11, part(1, rule)))))
    (found,) = read["spec"]["podFailurePolicy"]["rules"]
    assert found == {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1, 300]}}


def double(number: int, value: float) -> bytes:
    return varint(number << 3 | 1) + struct.pack("<d", value)


def definition(*schema: bytes) -> bytes:
    """A CustomResourceDefinition with this schema in its only version."""
    version = part(1, b"v1") + part(2, 1) + part(3, 1) + part(4, part(1, b"".join(schema)))
    spec = part(1, b"a.io") + part(3, part(1, b"xs") + part(4, b"X")) + part(4, b"Namespaced") + part(7, version)
    raw = part(1, part(1, b"xs.a.io")) + part(2, spec)
    return enveloped("apiextensions.k8s.io/v1", "CustomResourceDefinition", raw)


@pytest.mark.parametrize(
    ("schema", "wanted"),
    [
        (part(5, b"object") + part(29, part(1, b"a") + part(2, part(5, b"string"))),
         {"type": "object", "properties": {"a": {"type": "string"}}}),
        (part(2, b"s") + part(3, b"#/r"), {"$schema": "s", "$ref": "#/r"}),
        (double(9, 5) + double(11, -0.5) + part(13, 0), {"maximum": 5, "minimum": -0.5, "maxLength": 0}),
        (part(8, part(1, b'{"a":[1]}')) + part(20, part(1, b"1")) + part(20, part(1, b'"b"')),
         {"default": {"a": [1]}, "enum": [1, "b"]}),
        (part(24, part(1, part(5, b"integer"))), {"items": {"type": "integer"}}),
        (part(24, part(2, part(5, b"integer")) + part(2, b"")), {"items": [{"type": "integer"}, {}]}),
        (part(30, part(1, 0)), {"additionalProperties": False}), (part(30, part(1, 1)), {"additionalProperties": True}),
        (part(30, part(1, 1) + part(2, part(37, 1))), {"additionalProperties": {"nullable": True}}),
        (part(32, part(1, b"k") + part(2, part(2, b"x") + part(2, b"y"))), {"dependencies": {"k": ["x", "y"]}}),
        (part(28, part(38, 1)) + part(42, b"map") + part(41, b"name"),
         {"not": {"x-kubernetes-preserve-unknown-fields": True}, "x-kubernetes-list-type": "map",
          "x-kubernetes-list-map-keys": ["name"]}),
        (part(44, part(1, b"self") + part(2, b"m")), {"x-kubernetes-validations": [{"rule": "self", "message": "m"}]}),
    ],
)  # fmt: skip
def test_schemas(schema: bytes, wanted: dict[str, Any]) -> None:
    """By the numbers of apiextensions' generated.proto, which kubectl does not have in it."""
    (version,) = protobuf.decode(definition(schema))["spec"]["versions"]
    assert version == {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": wanted}}


def test_api_services() -> None:
    service = part(1, b"ns") + part(2, b"n") + part(3, 444)
    spec = part(1, service) + part(2, b"g.io") + part(3, b"v1") + part(5, b"\x00") + part(7, 100) + part(8, 15)
    read = protobuf.decode(enveloped("apiregistration.k8s.io/v1", "APIService", part(2, spec)))
    assert read["spec"] == {
        "service": {"namespace": "ns", "name": "n", "port": 444}, "group": "g.io", "version": "v1", "caBundle": "AA==",
        "groupPriorityMinimum": 100, "versionPriority": 15,
    }  # fmt: skip


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_numbers_that_json_has_no_word_for(value: float) -> None:
    assert refused(definition(double(9, value))).code == 400


def test_a_schema_nested_too_deeply() -> None:
    schema = b""
    for _ in range(3000):
        schema = part(28, schema)
    error = refused(definition(schema))
    assert (error.code, "nested too deeply" in error.message) == (400, True)


@pytest.mark.row("R-020")
def test_what_resizes_a_pod() -> None:
    """Spec 1.1: each field under its published number."""
    amounts = part(1, b"cpu") + part(2, part(1, b"100m"))
    resources = part(1, amounts) + part(2, amounts)
    policy = part(1, b"cpu") + part(2, b"NotRequired")
    container = part(1, b"c") + part(8, resources) + part(23, policy)
    ephemeral = part(1, part(1, b"e") + part(23, policy))
    times = part(3, part(1, 60)) + part(4, part(1, 0) + part(2, 0))
    words = part(5, b"Deferred") + part(6, b"m") + part(7, 3)
    condition = part(1, b"PodResizePending") + part(2, b"True") + times + words
    actual = part(1, b"c") + part(10, amounts) + part(11, resources)
    status = part(2, condition) + part(8, actual) + part(14, b"Deferred") + part(17, 3) + part(19, amounts)
    status += part(20, resources)
    spec = part(2, container) + part(34, ephemeral) + part(40, resources)
    sizes = {"limits": {"cpu": "100m"}, "requests": {"cpu": "100m"}}
    policies = [{"resourceName": "cpu", "restartPolicy": "NotRequired"}]
    assert protobuf.decode(enveloped("v1", "Pod", part(2, spec) + part(3, status))) == {
        "apiVersion": "v1", "kind": "Pod",
        "spec": {
            "containers": [{"name": "c", "resources": sizes, "resizePolicy": policies}],
            "ephemeralContainers": [{"name": "e", "resizePolicy": policies}], "resources": sizes,
        },
        "status": {
            "conditions": [{
                "type": "PodResizePending", "status": "True", "lastProbeTime": "1970-01-01T00:01:00Z",
                "lastTransitionTime": "1970-01-01T00:00:00Z", "reason": "Deferred", "message": "m",
                "observedGeneration": 3,
            }],
            "containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "100m"}, "resources": sizes}],
            "resize": "Deferred", "observedGeneration": 3, "allocatedResources": {"cpu": "100m"}, "resources": sizes,
        },
    }  # fmt: skip
    node = protobuf.decode(enveloped("v1", "Node", part(3, part(14, b"F") + part(14, b"G"))))
    assert node["status"] == {"declaredFeatures": ["F", "G"]}


UNPUBLISHED = {("PodSpec", "schedulingGroup"), ("PodStatus", "nodeAllocatableResourceClaimStatuses")}
"""Alpha fields of 1.36, whose numbers are not known here."""


def _parts(hint: Any) -> Iterator[type[Struct]]:
    if isinstance(hint, type) and issubclass(hint, Struct):
        yield hint
    for each in get_args(hint):
        yield from _parts(each)


def _numbered(kind: type[Struct]) -> set[str]:
    section = section_of(kind)

    def names(entry: str) -> Iterator[str]:
        for name in published()[section, entry]:
            yield from names(name[1:]) if name.startswith("+") else (name,)

    return set(names(kind.__name__)) if section else set()


def test_every_field_has_a_number() -> None:
    wholes: list[type[Struct]] = [DeleteOptions, *bodies().values()]
    left = [*wholes]
    seen: set[type[Struct]] = set()
    missing = set()
    while left:
        kind = left.pop()
        if kind in seen:
            continue
        seen.add(kind)
        hints = get_type_hints(kind, include_extras=True)
        known = _numbered(kind)
        for field in msgspec.structs.fields(kind):
            if field.encode_name in known or (kind in wholes and field.name in ("kind", "api_version")):
                left.extend(_parts(hints[field.name]))
            else:
                missing.add((kind.__name__, field.encode_name))
    assert missing == UNPUBLISHED
    assert len(seen) > 390
