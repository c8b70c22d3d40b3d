"""What docs/compatibility.md says is missing or different, tried: a statement that is not true any more fails here."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from podfit.api.core.v1.pods.templates import PodTemplateSpec
from podfit.api.meta.codec import encode
from podfit.api.meta.v1.types import ObjectMeta
from podfit.decide.workload.hashes import content_hash
from support.server import Server, running_server

PAGE = re.sub(r"\s+", " ", (Path(__file__).parents[2] / "docs" / "compatibility.md").read_text())
CORE, APPS = "/api/v1/namespaces/default", "/apis/apps/v1/namespaces/default"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


def definition(rule: str = "true", **spec: Any) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object"}},
        "x-kubernetes-validations": [{"rule": rule}],
    }
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "tins", "kind": "Tin"}
    return {
        "metadata": {"name": "tins.example.org"},
        "spec": {"group": "example.org", "scope": "Namespaced", "names": names, "versions": [version], **spec},
    }


HOOK_CLIENT = {"url": "https://127.0.0.1:9/x"}
CONVERSION = {"strategy": "Webhook", "webhook": {"clientConfig": HOOK_CLIENT, "conversionReviewVersions": ["v1"]}}
AUTHORIZER = {
    "metadata": {"name": "w"},
    "webhooks": [
        {
            "name": "a.example.org",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "clientConfig": HOOK_CLIENT,
            "matchConditions": [
                {"name": "x", "expression": "authorizer.group('').resource('pods').check('get').allowed()"}
            ],
        }
    ],
}

STATEMENTS = [
    ("definitions with conversion webhooks are refused", "POST", DEFINITIONS, definition(conversion=CONVERSION), 422),
    (
        "`transformMapEntry` and the optional macros `optMap` and `optFlatMap` are unknown",
        "POST",
        DEFINITIONS,
        definition("optional.of(1).optMap(x, x + 1).hasValue()"),
        422,
    ),
    ("CEL rules are type-checked", "POST", DEFINITIONS, definition("self.spec > 1"), 422),
    ("`matchConditions` that name `authorizer` are refused", "POST", HOOKS, AUTHORIZER, 422),
    (
        "behind a feature gate, such as ClusterTrustBundles, PodCertificateRequests",
        "GET",
        "/apis/certificates.k8s.io/v1beta1/clustertrustbundles",
        None,
        404,
    ),
    ("`pods/proxy` and `services/proxy` pass requests on", "GET", f"{CORE}/services/a:b:c:d/proxy/", None, 400),
    ("`?watch` on a subresource is 405", "GET", f"{CORE}/pods/x/status?watch=1", None, 405),
]


@pytest.fixture
async def server(tmp_path: Path) -> Any:
    async with running_server(tmp_path) as made:
        yield made


async def ask(server: Server, method: str, path: str, body: Any) -> tuple[int, str]:
    answer = await server.ask(method, path, msgspec.json.encode(body) if body is not None else b"")
    return answer.status, (await answer.read()).decode()


@pytest.mark.parametrize(
    ("says", "method", "path", "body", "code"),
    STATEMENTS,
    ids=[f"{index}-{row[0][:30]}" for index, row in enumerate(STATEMENTS)],
)
async def test_it_is_as_the_page_says(server: Server, says: str, method: str, path: str, body: Any, code: int) -> None:
    assert says in PAGE
    got, text = await ask(server, method, path, body)
    assert got == code, text


def test_hashes_of_templates_are_of_their_json() -> None:
    assert "Hashes of templates and of revisions differ from upstream's, which hashes how Go prints a value" in PAGE
    template = PodTemplateSpec(metadata=ObjectMeta(labels={"app": "web"}))
    assert content_hash(template, None) == content_hash(encode(template), None)
    assert content_hash(template, None) != content_hash(template, 0)


async def test_tokens_in_secrets_are_not_filled(server: Server) -> None:
    assert "(`kubernetes.io/service-account-token`) are not filled" in PAGE
    body = {
        "metadata": {"name": "t", "annotations": {"kubernetes.io/service-account.name": "default"}},
        "type": "kubernetes.io/service-account-token",
    }
    code, text = await ask(server, "POST", f"{CORE}/secrets", body)
    assert (code, "data" in json.loads(text)) == (201, False)


async def test_fields_of_built_in_kinds_are_described_in_part_and_of_custom_ones_three(server: Server) -> None:
    assert "Most fields of built-in kinds have no descriptions in the OpenAPI documents" in PAGE
    assert (await ask(server, "POST", DEFINITIONS, definition()))[0] == 201
    _, text = await ask(server, "GET", "/openapi/v2", None)
    kinds = json.loads(text)["definitions"]
    assert "description" not in json.dumps(kinds["io.k8s.api.core.v1.NodeSystemInfo"])
    resized = kinds["io.k8s.api.core.v1.ContainerResizePolicy"]["properties"]
    assert all(field["description"] for field in resized.values())
    described = [name for name, field in kinds["org.example.v1.Tin"]["properties"].items() if "description" in field]
    assert sorted(described) == ["apiVersion", "kind", "metadata"]


async def test_custom_groups_have_no_api_service(server: Server) -> None:
    assert "Groups of custom resources have no APIService of their own" in PAGE
    await ask(server, "POST", DEFINITIONS, definition())
    _, text = await ask(server, "GET", "/apis/apiregistration.k8s.io/v1/apiservices", None)
    assert "example.org" not in text
