"""Protobuf bodies: what kubectl 1.32 really sent, and what is no message at all."""

from base64 import b64decode, b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podfit.apiserver import protobuf
from podfit.apiserver.bodies import document
from podfit.core.errors import ApiError
from podfit.net.wire import Request
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


def varint(value: int) -> bytes:
    low, rest = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def part(number: int, payload: bytes | int) -> bytes:
    """One field of a message."""
    if isinstance(payload, int):
        return varint(number << 3) + varint(payload)
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def enveloped(version: str, kind: str, raw: bytes, *more: bytes) -> bytes:
    types = part(1, version.encode()) + part(2, kind.encode())
    return protobuf.MAGIC + part(1, types) + part(2, raw) + b"".join(more)


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
        (enveloped("v1", "Pod", b""), 415, "Pod in version v1 is not read as protobuf"),
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
        (enveloped("v1", "Namespace", part(1, part(17, part(7, part(1, b"{"))))), 400, "fieldsV1 is not JSON"),
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


def test_what_of_a_template_is_not_read_is_not_lost_either() -> None:
    volume = part(1, part(1, b"v"))
    body = enveloped("apps/v1", "Deployment", part(2, part(3, template(volume))))
    error = refused(body)
    assert (error.code, "send application/json" in error.message) == (415, True)
