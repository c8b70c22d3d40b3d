"""Writes: options in queries and bodies, names and namespaces, with inputs that are in no recording.

Known from upstream's code: `ValidateCreateOptions` and its siblings in `apimachinery/pkg/apis/meta/v1/validation`,
`rest.EnsureObjectNamespaceMatchesRequestNamespace`, `handlers.UpdateResource`, `handlers.DeleteResource`,
`rest.BeforeDelete`.
"""

from typing import Any

import pytest

from support.clock import FakeClock
from support.rules import CONFIGMAPS, NAMESPACE, PODS, asked, configmap, made, pod
from support.server import Server

MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"


async def _begin(server: Server) -> None:
    await server.namespace(NAMESPACE)
    await made(server, CONFIGMAPS, configmap("a", data={"a": "1"}))
    await made(server, PODS, pod("p"))


LONG = "x" * 129


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        ("dryRun=", ["dryRun"]),
        ("dryRun=all", ["dryRun"]),
        ("dryRun=All&dryRun=", ["dryRun"]),
        ("dryRun=All&dryRun=All", []),
        ("fieldValidation=strict", ["fieldValidation"]),
        ("fieldValidation=", []),
        (f"fieldManager={LONG}", ["fieldManager"]),
        ("fieldManager=a%0Ab", ["fieldManager"]),
        ("fieldManager=%E2%98%83", []),
        (f"fieldValidation=x&dryRun=x&fieldManager={LONG}", ["fieldManager", "dryRun", "fieldValidation"]),
    ],
)
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
async def test_options_of_writes(server: Server, method: str, query: str, fields: list[str]) -> None:
    await _begin(server)
    path, body, kind = {
        "POST": (CONFIGMAPS, configmap("b"), "application/json"),
        "PUT": (f"{CONFIGMAPS}/a", configmap("a"), "application/json"),
        "PATCH": (f"{CONFIGMAPS}/a", {}, MERGE),
    }[method]
    answer = await asked(server, method, f"{path}?{query}", body, content_type=kind)
    assert (answer.code == 422, answer.fields) == (bool(fields), fields), answer.message
    if fields:
        kinds = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions"}
        assert (answer.body["details"]["kind"], answer.body["details"]["group"]) == (kinds[method], "meta.k8s.io")


@pytest.mark.parametrize(
    ("kind", "query", "fields"),
    [
        (MERGE, "force=false", ["force"]),
        (MERGE, "force=", ["force"]),
        (APPLY, "", ["fieldManager"]),
        (APPLY, "fieldManager=", ["fieldManager"]),
        (APPLY, "force=true", ["fieldManager"]),
        (APPLY, f"fieldManager={LONG}&dryRun=x", ["fieldManager", "dryRun"]),
        (APPLY, "fieldManager=m&force=0", []),
        (MERGE, "force=true&fieldValidation=x", ["force", "fieldValidation"]),
        (APPLY, "dryRun=x", ["fieldManager", "dryRun"]),
        (APPLY, "fieldManager=m&fieldValidation=warn", ["fieldValidation"]),
    ],
)
async def test_options_of_patches(server: Server, kind: str, query: str, fields: list[str]) -> None:
    await _begin(server)
    body = {"apiVersion": "v1", "kind": "ConfigMap"}
    answer = await asked(server, "PATCH", f"{CONFIGMAPS}/a?{query}", body, content_type=kind)
    assert answer.fields == fields, answer.message
    assert (answer.code == 422) is bool(fields)


OPTIONS = "DeleteOptions"


@pytest.mark.parametrize(
    ("query", "body", "code", "fields"),
    [
        ("", b"null", 200, []),
        ("", b"[]", 400, []),
        ("", b"{", 400, []),
        ("", {"kind": OPTIONS, "apiVersion": "x/v9"}, 200, []),
        ("", {"kind": "Pod"}, 400, []),
        ("gracePeriodSeconds=", b"", 400, []),
        ("gracePeriodSeconds=-1", b"", 200, []),
        ("gracePeriodSeconds=1.5", b"", 400, []),
        ("propagationPolicy=orphan", b"", 422, ["propagationPolicy"]),
        ("propagationPolicy=Background&orphanDependents=0", b"", 422, ["propagationPolicy"]),
        ("orphanDependents=false", b"", 200, []),
        ("dryRun=", b"", 422, ["dryRun"]),
        ("", {"dryRun": [""]}, 422, ["dryRun"]),
        ("", {"dryRun": ["x"], "propagationPolicy": "x"}, 422, ["propagationPolicy", "dryRun"]),
        ("", {"preconditions": {"resourceVersion": "0"}}, 409, []),
        ("", {"preconditions": {"uid": ""}}, 409, []),
        ("", {"preconditions": []}, 400, []),
        ("", {"gracePeriodSeconds": "1"}, 400, []),
        ("resourceVersion=x", b"", 200, []),
    ],
)
async def test_deletions(server: Server, query: str, body: Any, code: int, fields: list[str]) -> None:
    await _begin(server)
    answer = await asked(server, "DELETE", f"{CONFIGMAPS}/a?{query}", body)
    assert (answer.code, answer.fields) == (code, fields), answer.message
    gone = (await asked(server, "GET", f"{CONFIGMAPS}/a")).code == 404
    assert gone is (code == 200)


async def test_a_negative_grace_period_is_a_second(server: Server) -> None:
    await _begin(server)
    target = {"kind": "Node", "name": "n"}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": target}
    assert (await asked(server, "POST", f"{PODS}/p/binding", binding)).code == 201
    answer = await asked(server, "DELETE", f"{PODS}/p?gracePeriodSeconds=-5")
    assert answer.body["metadata"]["deletionGracePeriodSeconds"] == 1


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("POST", "/api/v1/namespaces", {"metadata": {"name": "n", "namespace": "x"}}, 201),
        ("POST", "/api/v1/namespaces", {"kind": "Namespace", "metadata": {"name": "n", "namespace": NAMESPACE}}, 201),
        ("PUT", f"/api/v1/namespaces/{NAMESPACE}", {"metadata": {"name": NAMESPACE, "namespace": "x"}}, 200),
        ("POST", CONFIGMAPS, {"metadata": {"name": "b", "namespace": "x"}}, 400),
        ("PUT", f"{CONFIGMAPS}/nope", {"metadata": {"name": "other"}}, 400),
        ("PUT", f"{CONFIGMAPS}/nope", {"metadata": {"name": "nope", "namespace": "x"}}, 400),
        ("PUT", f"{CONFIGMAPS}/nope", {"metadata": {"name": "nope"}}, 404),
        ("PUT", f"{CONFIGMAPS}/nope", {}, 400),
        ("PUT", f"{PODS}/nope/status", {"metadata": {"name": "other"}}, 400),
        ("PUT", f"{CONFIGMAPS}/a", b"null", 400),
    ],
)
async def test_names_and_namespaces(server: Server, method: str, path: str, body: Any, code: int) -> None:
    await _begin(server)
    answer = await asked(server, method, path, body)
    assert answer.code == code, answer.message
    if code in (200, 201):
        assert "namespace" not in answer.body["metadata"]


TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"


@pytest.mark.parametrize(("accept", "code"), [(TABLE, 406), (f"{TABLE},application/json", 201), ("", 201)])
async def test_reviews_have_no_tables(server: Server, accept: str, code: int) -> None:
    body = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    assert (await asked(server, "POST", path, body, accept=accept)).code == code


async def test_managed_fields_are_written_in_order(server: Server) -> None:
    await _begin(server)
    body = {"metadata": {"labels": {"z": "1", "a": "2"}}, "data": {"z": "1", "b": "2"}}
    await asked(server, "PATCH", f"{CONFIGMAPS}/a?fieldManager=m", body, content_type=MERGE)
    applied = configmap("a", data={"c": "1"}, annotations={"y": "1", "x": "2"})
    answer = await asked(server, "PATCH", f"{CONFIGMAPS}/a?fieldManager=n", applied, content_type=APPLY)
    entries = [entry["fieldsV1"] for entry in answer.body["metadata"]["managedFields"]]
    assert len(entries) == 3
    assert all(_is_sorted(entry) for entry in entries), entries


def _is_sorted(tree: dict[str, Any]) -> bool:
    return list(tree) == sorted(tree) and all(map(_is_sorted, tree.values()))


async def test_history_is_gone_after_ten_minutes(server: Server) -> None:
    await _begin(server)
    seen = server.context.store.revision
    clock = server.context.clock
    assert isinstance(clock, FakeClock)
    await clock.advance(300)
    await made(server, CONFIGMAPS, configmap("later"))
    assert server.context.store.compacted < seen
    await clock.advance(300)
    assert server.context.store.compacted >= seen


async def test_the_page_of_keys_has_one_scheme(server: Server) -> None:
    server.api.address = "https://127.0.0.1:6443"
    answer = await asked(server, "GET", "/.well-known/openid-configuration")
    assert answer.body["jwks_uri"] == "https://127.0.0.1:6443/openid/v1/jwks"


CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
DRIVERS = "/apis/storage.k8s.io/v1/csidrivers"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
MUTATING = HOOKS.replace("validating", "mutating")
CSI_NODES = "/apis/storage.k8s.io/v1/csinodes"
BUDGETS = f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets"
STORAGE = "/apis/storage.k8s.io/v1/storageclasses"


@pytest.mark.parametrize(
    ("path", "rest", "code"),
    [
        (CLASSES, {"handler": "h"}, 422),
        (DRIVERS, {"spec": {}}, 422),
        (LEASES, {"spec": {}}, 422),
        (HOOKS, {"webhooks": []}, 422),
        (MUTATING, {"webhooks": []}, 422),
        (CSI_NODES, {"spec": {"drivers": []}}, 422),
        (BUDGETS, {"spec": {}}, 422),
        (STORAGE, {"provisioner": "p"}, 200),
        (CONFIGMAPS, {}, 200),
    ],
)
async def test_what_is_replaced_without_a_version(server: Server, path: str, rest: dict[str, Any], code: int) -> None:
    await server.namespace(NAMESPACE)
    body = {"metadata": {"name": "u"}} | rest
    (stored,) = await made(server, path, body)
    answer = await asked(server, "PUT", f"{path}/u", body)
    wanted = ["metadata.resourceVersion"] if code == 422 else []
    assert (answer.code, answer.fields) == (code, wanted), answer.message
    body["metadata"]["resourceVersion"] = answer.body["metadata"].get("resourceVersion") or _version(stored)
    assert (await asked(server, "PUT", f"{path}/u", body)).code == 200


def _version(stored: dict[str, Any]) -> str:
    return str(stored["metadata"]["resourceVersion"])


async def test_a_runtime_class_is_created_by_its_name(server: Server) -> None:
    body = {"metadata": {"name": "u"}, "handler": "h"}
    assert (await asked(server, "PUT", f"{CLASSES}/u", body)).code == 201


OPTIONS_SCHEME = "pkg/apis/meta/internalversion/scheme/register.go:27"
NO_KIND = "couldn't get version/kind; json parse error:"
NO_MAP = 'into Go value of type struct { APIVersion string "json:'


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"not json", f"{NO_KIND} invalid character 'o' in literal null (expecting 'u')"),
        (b"{", f"{NO_KIND} unexpected end of JSON input"),
        (b"[]", f"{NO_KIND} json: cannot unmarshal array {NO_MAP}"),
        (b'{"kind":5}', f"{NO_KIND} json: cannot unmarshal number into Go struct field .kind of type string"),
        (
            b'{"kind":"Pod","apiVersion":"v1"}',
            f'no kind "Pod" is registered for version "v1" in scheme "{OPTIONS_SCHEME}"',
        ),
        (
            b'{"dryRun":"All"}',
            "json: cannot unmarshal string into Go struct field DeleteOptions.dryRun of type []string",
        ),
    ],
)
async def test_bodies_of_deletions_that_are_no_options(server: Server, body: bytes, said: str) -> None:
    await _begin(server)
    answer = await asked(server, "DELETE", f"{CONFIGMAPS}/a", body)
    assert (answer.code, answer.reason) == (400, "BadRequest")
    assert answer.message.startswith(said)
    assert (await asked(server, "GET", f"{CONFIGMAPS}/a")).code == 200


UNKNOWN = 'strict decoding error: unknown field "foo"'


@pytest.mark.parametrize(
    ("body", "query", "code", "said"),
    [
        ({"metadata": {"name": "p", "namespace": "z"}}, "", 400, "the namespace of the provided object does not match"),
        ({"metadata": {"name": "q"}}, "", 400, "name in URL does not match name in Eviction object"),
        (
            {"apiVersion": "v1", "kind": "Pod"},
            "",
            400,
            'Pod in version "v1" cannot be handled as a Eviction: converting (v1.Pod) to (policy.Eviction)',
        ),
        (
            {"apiVersion": "policy/v2", "kind": "Eviction"},
            "",
            400,
            'Eviction in version "v2" cannot be handled as a Eviction: no kind "Eviction" is registered for version',
        ),
        (
            {"metadata": {"name": "p"}, "foo": 1},
            "&fieldValidation=Strict",
            400,
            f'Eviction in version "v1" cannot be handled as a Eviction: {UNKNOWN}',
        ),
        ({"metadata": 5}, "", 400, 'Eviction in version "v1" cannot be handled as a Eviction: json: cannot unmarshal'),
        ({"apiVersion": "policy/v1beta1", "kind": "Eviction", "metadata": {"name": "p"}}, "", 201, ""),
        ({"metadata": {"name": "p"}, "foo": 1}, "", 201, ""),
    ],
)
async def test_bodies_of_evictions(server: Server, body: Any, query: str, code: int, said: str) -> None:
    """They are read as those of other creations."""
    await _begin(server)
    answer = await asked(server, "POST", f"{PODS}/p/eviction?dryRun=All{query}", body)
    assert answer.code == code, answer.message
    assert answer.message.startswith(said)
