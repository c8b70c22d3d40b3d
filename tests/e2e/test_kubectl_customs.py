"""The real kubectl with kinds that a cluster declares, the objects of the Vertical Pod Autoscaler among them."""

import json
import re
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest

from support.up import Up

pytestmark = [pytest.mark.kubectl, pytest.mark.xdist_group("kubectl-apply")]
MANIFEST = (files("podfit.api") / "manifests" / "verticalpodautoscalers.yaml").read_text()
VPA: dict[str, Any] = {
    "apiVersion": "autoscaling.k8s.io/v1",
    "kind": "VerticalPodAutoscaler",
    "metadata": {"name": "web"},
    "spec": {
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "updatePolicy": {"updateMode": "InPlaceOrRecreate", "minReplicas": 1},
        "resourcePolicy": {"containerPolicies": [{"containerName": "*", "maxAllowed": {"cpu": 2, "memory": "1Gi"}}]},
    },
}
STATUS: dict[str, Any] = {
    "conditions": [{"type": "RecommendationProvided", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    "recommendation": {
        "containerRecommendations": [
            {"containerName": "app", "target": {"cpu": "250m", "memory": "64Mi"}, "lowerBound": {"cpu": "100m"}}
        ]
    },
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """A cluster without nodes, with the definitions applied."""
    up = Up(tmp_path_factory.mktemp("customs"))
    up.start("--no-vpa", node="none")
    up.ok("apply", "-f", "-", stdin=MANIFEST)
    up.ok("wait", "--for=condition=Established", "--timeout=10s", "crd/verticalpodautoscalers.autoscaling.k8s.io")
    yield up
    assert up.down().code == 0


def applied(server: Up, document: dict[str, Any], *more: str) -> str:
    return server.ok("apply", "-f", "-", *more, stdin=json.dumps(document))


def test_an_autoscaler_is_applied_shown_patched_and_deleted(server: Up) -> None:
    assert "created" in applied(server, VPA)
    assert "unchanged" in applied(server, VPA)
    server.ok("patch", "vpa", "web", "--subresource=status", "--type=merge", "-p", json.dumps({"status": STATUS}))
    header, row = (line.split() for line in server.ok("get", "vpa", "-o", "wide").splitlines())
    assert header == ["NAME", "MODE", "CPU", "MEM", "PROVIDED", "AGE", "MINREPLICAS", "OOMSECONDS"]
    assert (row[:5], row[6:]) == (["web", "InPlaceOrRecreate", "250m", "64Mi", "True"], ["1"])
    changed = {**VPA, "spec": {**VPA["spec"], "updatePolicy": {"updateMode": "Off"}}}
    assert "configured" in applied(server, changed)
    seen = server.get("vpa", "web")
    assert (seen["spec"]["updatePolicy"], seen["metadata"]["generation"]) == ({"updateMode": "Off"}, 2)
    assert seen["status"] == STATUS
    server.ok("wait", "vpa/web", "--for=condition=RecommendationProvided", "--timeout=10s")
    assert "Update Mode:  Off" in server.ok("describe", "vpa", "web")
    server.ok("delete", "vpa", "web", "--wait")


def test_what_an_autoscaler_may_not_be(server: Up) -> None:
    for spec, why in (
        ({"targetRef": {"kind": "Deployment"}}, "spec.targetRef.name: Required value"),
        ({"updatePolicy": {"updateMode": "Sometimes"}}, 'spec.updatePolicy.updateMode: Unsupported value: "Sometimes"'),
        ({"startupBoost": {"cpu": {"type": "Factor"}}}, "factor has to be set exactly when the type is Factor"),
        ({"resourcePolicy": {"containerPolicies": [{"maxAllowed": {"cpu": "a lot"}}]}}, "should match"),
    ):
        body = json.dumps({**VPA, "spec": {**VPA["spec"], **spec}})
        refused = server.kubectl("create", "-f", "-", "--dry-run=server", stdin=body)
        assert refused.code == 1
        assert why in refused.err
    unknown = json.dumps({**VPA, "spec": {**VPA["spec"], "mode": "x"}})
    assert 'unknown field "spec.mode"' in server.kubectl("create", "-f", "-", stdin=unknown).err


def test_two_managers_share_an_autoscaler(server: Up) -> None:
    document = {**VPA, "metadata": {"name": "shared"}}
    server_side = ("--server-side", "--field-manager=one")
    applied(server, document, *server_side)
    other = {**document, "spec": {"targetRef": VPA["spec"]["targetRef"], "updatePolicy": {"updateMode": "Initial"}}}
    refused = server.kubectl("apply", "-f", "-", "--server-side", "--field-manager=two", stdin=json.dumps(other))
    assert 'conflict with "one": .spec.updatePolicy.updateMode' in refused.err
    applied(server, other, "--server-side", "--field-manager=two", "--force-conflicts")
    assert server.get("vpa", "shared")["spec"]["updatePolicy"] == {"updateMode": "Initial", "minReplicas": 1}


def test_kinds_are_explained(server: Up) -> None:
    fields = server.ok("explain", "vpa.spec.updatePolicy")
    assert "What is done on creation of pods" in fields
    assert ["enum:", "Off,", "Initial,", "Recreate,", "InPlaceOrRecreate,", "...."] in [
        line.split() for line in fields.splitlines()
    ]
    whole = server.ok("explain", "verticalpodautoscalers", "--recursive")
    assert ["containerRecommendations", "<[]Object>"] in [line.split() for line in whole.splitlines()]
    rows = [line.split() for line in server.ok("api-resources").splitlines()]
    assert ["vpacheckpoint", "autoscaling.k8s.io/v1", "true"] in [row[1:4] for row in rows]


def test_a_kind_ends_with_its_definition(server: Up) -> None:
    names = {"plural": "lamps", "kind": "Lamp"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    paths = {"specReplicasPath": ".spec.bulbs", "statusReplicasPath": ".status.bulbs"}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema, "subresources": {"scale": paths}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "lamps.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }
    applied(server, definition)
    applied(server, {"apiVersion": "example.com/v1", "kind": "Lamp", "metadata": {"name": "a"}, "spec": {"bulbs": 1}})
    server.ok("scale", "lamp/a", "--replicas=3")
    assert server.get("lamp", "a")["spec"] == {"bulbs": 3}
    server.ok("annotate", "lamp", "a", "seen=yes")
    server.ok("label", "lamps", "--all", "lit=yes")
    assert "lamp.example.com/a" in server.ok("get", "lamps", "-l", "lit=yes", "-o", "name")
    server.ok("delete", "crd", "lamps.example.com", "--wait", "--timeout=20s")
    assert server.kubectl("get", "lamps").code == 1


FOOS = "e2e-test-foos"
BAR = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"description": "Name of Bar.", "type": "string"},
        "age": {"description": "Age of Bar.", "type": "string"},
        "feeling": {"description": "Whether Bar is feeling great.", "type": "string", "enum": ["Great", "Down"]},
        "bazs": {"description": "List of Bazs.", "type": "array", "items": {"type": "string"}},
    },
}
FOO = {
    "description": "Foo CRD for Testing",
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "description": "Specification of Foo",
            "properties": {"bars": {"description": "List of Bars and their specs.", "type": "array", "items": BAR}},
        },
        "status": {"type": "object", "description": "Status of Foo"},
    },
}


def test_crd_with_validation_schema_is_published(server: Up) -> None:
    """Upstream's conformance test "CustomResourcePublishOpenAPI works for CRD with validation schema", by its steps."""
    names = {"plural": FOOS, "singular": "e2e-test-foo", "kind": "E2e-test-foo", "listKind": "E2e-test-fooList"}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": FOO}}]
    spec = {"group": "publish-openapi.example.com", "scope": "Namespaced", "names": names, "versions": versions}
    kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    applied(server, kind | {"metadata": {"name": f"{FOOS}.publish-openapi.example.com"}, "spec": spec})
    server.ok("wait", "--for=condition=Established", "--timeout=10s", f"crd/{FOOS}.publish-openapi.example.com")
    foo = {"kind": "E2e-test-foo", "apiVersion": "publish-openapi.example.com/v1", "metadata": {"name": "test-cr"}}

    for verb in ("create", "apply"):
        server.ok(verb, "-f", "-", stdin=json.dumps(foo | {"spec": {"bars": [{"name": "test-bar"}]}}))
        server.ok("delete", FOOS, "test-cr")
    for wrong, whys in (
        ({"bars": [{"name": "test-bar", "feeling": "NonExistentValue"}]}, ('Unsupported value: "NonExistentValue"',)),
        ({"foo": True}, ('unknown field "foo"', 'unknown field "spec.foo"')),
        ({"bars": [{"age": "10"}]}, ('missing required field "name"', "spec.bars[0].name: Required value")),
    ):
        for verb in ("create", "apply"):
            refused = server.kubectl(verb, "-f", "-", stdin=json.dumps(foo | {"spec": wrong}))
            assert refused.code != 0
            assert any(why in refused.err for why in whys), refused.err

    for path, parts in (
        ("", ("DESCRIPTION:", "Foo CRD for Testing", "FIELDS:", "apiVersion", "<string>", "APIVersion defines", "spec",
              "<Object>", "Specification of Foo")),
        (".metadata", ("DESCRIPTION:", "Standard object's metadata", "FIELDS:", "creationTimestamp", "<string>",
                       "CreationTimestamp is a timestamp")),
        (".spec", ("DESCRIPTION:", "Specification of Foo", "FIELDS:", "bars", "<[]Object>",
                   "List of Bars and their specs")),
        (".spec.bars", ("bars", "<[]Object>", "DESCRIPTION:", "List of Bars and their specs", "FIELDS:", "age",
                        "<string>", "Age of Bar", "bazs", "<[]string>", "List of Bazs", "name", "<string>",
                        "Name of Bar")),
    ):  # fmt: skip
        explained = server.ok("explain", f"{FOOS}{path}")
        assert re.search(".*".join(re.escape(part) for part in parts), explained, re.DOTALL), explained
    missing = server.kubectl("explain", f"{FOOS}.spec.bars2")
    assert missing.code != 0
    assert 'field "bars2" does not exist' in missing.err
