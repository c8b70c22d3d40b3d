"""Fields by which kinds are selected, and changes that their generations count; none of these requests is recorded.

Known from upstream's code: `AddFieldLabelConversionFunc` of each group, `ToSelectableFields` and `PrepareForUpdate` of
each kind's strategy.
"""

from typing import Any

import pytest

from support.rules import NAMESPACE, PODS, asked, deployment, made, pod
from support.server import Server

JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
PLAIN = 'is not a known field selector: only "metadata.name", "metadata.namespace"'
MERGE = "application/merge-patch+json"


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("spec.host=n1", ["bound"]),
        ("spec.host=", ["free"]),
        ("spec.nodeName!=n1", ["free"]),
        ("status.podIPs=", ["bound", "free"]),
        ("status.podIPs=10.0.0.1", []),
        ("spec.hostNetwork=true", []),
        ("spec.restartPolicy=Never,spec.schedulerName=default-scheduler", ["free"]),
        ("spec.serviceAccountName!=default", []),
        ("status.phase=Pending,metadata.name!=free", ["bound"]),
    ],
)
async def test_pods_are_selected(server: Server, query: str, names: list[str]) -> None:
    await server.namespace(NAMESPACE)
    await made(server, PODS, pod("bound", nodeName="n1"), pod("free", restartPolicy="Never"))
    answer = await asked(server, "GET", f"{PODS}?fieldSelector={query.replace('=', '%3D').replace('!', '%21')}")
    assert (answer.code, [item["metadata"]["name"] for item in answer.body.get("items", ())]) == (200, names)


@pytest.mark.parametrize(
    ("path", "field", "said"),
    [
        ("/api/v1/pods", "spec.containers", "field label not supported: spec.containers"),
        ("/api/v1/pods", "", "field label not supported: "),
        ("/api/v1/nodes", "metadata.namespace", "field label not supported: metadata.namespace"),
        ("/api/v1/namespaces", "metadata.namespace", "field label not supported: metadata.namespace"),
        ("/api/v1/secrets", "data", "field label not supported: data"),
        ("/api/v1/services", "status.phase", "field label not supported: status.phase"),
        ("/apis/batch/v1/jobs", "status.failed", 'field label "status.failed" not supported for batchv1.Job'),
        ("/apis/batch/v1/cronjobs", "status.successful", f'"status.successful" {PLAIN}'),
        ("/api/v1/configmaps", "type", f'"type" {PLAIN}'),
        ("/apis/apps/v1/deployments", "status.replicas", f'"status.replicas" {PLAIN}'),
        ("/apis/apps/v1/replicasets", "status.replicas", f'"status.replicas" {PLAIN}'),
        ("/api/v1/replicationcontrollers", "spec.replicas", "field label not supported: spec.replicas"),
        ("/api/v1/persistentvolumes", "name", f'"name" {PLAIN}'),
        ("/apis/events.k8s.io/v1/events", "involvedObject.kind", "field label not supported: involvedObject.kind"),
        ("/api/v1/events", "regarding.kind", "field label not supported: regarding.kind"),
    ],
)
async def test_other_fields_are_refused(server: Server, path: str, field: str, said: str) -> None:
    answer = await asked(server, "GET", f"{path}?fieldSelector={field}%3Dx")
    assert (answer.code, answer.reason) == (400, "BadRequest")
    assert said in answer.message


async def test_generations(server: Server) -> None:
    """Each change, and the generation after it; 0 is a kind that has none."""
    await server.namespace(NAMESPACE, certificate=False)
    spec: dict[str, Any] = {"podSelector": {}}
    objects: list[tuple[str, dict[str, Any], list[tuple[str, Any, int]]]] = [
        (
            f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments",
            deployment("a"),
            [
                ("", {"spec": {"replicas": 2}}, 2),
                ("", {"spec": {"replicas": 2}}, 2),
                ("", {"metadata": {"labels": {"a": "b"}, "generation": 9}}, 2),
                ("", {"metadata": {"annotations": {"a": "b"}}}, 3),
                ("/status", {"status": {"replicas": 1}}, 3),
                ("/scale", {"spec": {"replicas": 3}}, 4),
            ],
        ),
        (
            f"/apis/networking.k8s.io/v1/namespaces/{NAMESPACE}/networkpolicies",
            {"metadata": {"name": "a"}, "spec": spec},
            [("", {"metadata": {"annotations": {"a": "b"}}}, 1), ("", {"spec": {"policyTypes": ["Egress"]}}, 2)],
        ),
        (
            "/apis/storage.k8s.io/v1/csidrivers",
            {"metadata": {"name": "a"}, "spec": {}},
            [
                ("", {"metadata": {"labels": {"a": "b"}}}, 0),
                ("", {"spec": {"podInfoOnMount": True}}, 0),
                ("", {"spec": {"requiresRepublish": True}}, 1),
                ("", {"spec": {"tokenRequests": [{"audience": "x"}]}}, 2),
            ],
        ),
        (
            f"/api/v1/namespaces/{NAMESPACE}/services",
            {"metadata": {"name": "a", "generation": 7}, "spec": {"ports": [{"port": 1}]}},
            [("", {"spec": {"sessionAffinity": "ClientIP"}}, 0)],
        ),
        (
            f"/api/v1/namespaces/{NAMESPACE}/resourcequotas",
            {"metadata": {"name": "a"}, "spec": {"hard": {"pods": "1"}}},
            [("", {"spec": {"hard": {"pods": "2"}}}, 0)],
        ),
        (
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            {"metadata": {"name": "a"}, "value": 1},
            [("", {"description": "new"}, 1)],
        ),
    ]
    for path, obj, changes in objects:
        (new,) = await made(server, path, obj)
        seen, wanted = [new["metadata"].get("generation", 0)], [min(1, changes[0][2])]
        for subresource, change, generation in changes:
            answer = await asked(server, "PATCH", f"{path}/a{subresource}", change, content_type=MERGE)
            assert answer.code == 200, answer
            read = await asked(server, "GET", f"{path}/a")
            seen.append(read.body["metadata"].get("generation", 0))
            wanted.append(generation)
        assert seen == wanted, path
