"""Webhooks and a metrics server behind services of a real `podfit up`, which nobody gave a resolver."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from podfit.net.http_client import HttpsClient
from podfit.net.tls import client_context
from podfit.net.wire import Request, Response
from podfit.net.x509 import certificate_identity
from support.backends import Listening, endpoint_slice, endpoints, listening, service
from support.metrics_backend import GROUP, PODS, metrics
from support.up import Up, manifest
from support.webhooks import Hooks, denied, setting

pytestmark = [pytest.mark.kubectl, pytest.mark.xdist_group("service-backends")]
HOOKS = "hooks.default.svc"
REQUEST = "/spec/containers/0/resources/requests/cpu"


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    cluster = Up(tmp_path_factory.mktemp("services") / "data")
    cluster.start("--no-metrics-server", node="simulated")
    try:
        yield cluster
    finally:
        answer = cluster.down()
    assert answer.code == 0, answer.err


@dataclass(frozen=True)
class Kubectl:
    """kubectl while the servers of this process answer."""

    up: Up

    async def ok(self, *arguments: str, stdin: str | None = None) -> str:
        return await asyncio.to_thread(self.up.ok, *arguments, stdin=stdin)

    async def apply(self, *documents: dict[str, Any]) -> None:
        await self.ok("apply", "-f", "-", stdin="\n".join(map(json.dumps, documents)))

    async def resize(self, cpu: str) -> str:
        """What kubectl says, whether it works or not."""
        patch = {"spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": cpu}}}]}}
        answer = await asyncio.to_thread(
            self.up.kubectl, "patch", "pod", "web", "--subresource", "resize", "-p", json.dumps(patch)
        )
        return answer.out + answer.err

    async def requested(self) -> str:
        return await self.ok("get", "pod", "web", "-o", "jsonpath={.spec.containers[0].resources.requests.cpu}")


@pytest.fixture
async def hooks(tmp_path: Path) -> AsyncIterator[tuple[Hooks, Listening]]:
    made = Hooks(0, "")
    async with listening(made.handler, tmp_path / "pki", HOOKS) as place:
        yield made, place


def configuration(kind: str, hooks: Hooks, place: Listening) -> dict[str, Any]:
    client = {
        "service": {"namespace": "default", "name": "hooks", "path": f"/{kind.lower()}"},
        "caBundle": place.bundle,
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": kind.lower()},
        "webhooks": [
            hooks.webhook(f"/{kind}", "pods/resize") | {"name": f"{kind.lower()}.example.com", "clientConfig": client}
        ],
    }


@pytest.mark.row("R-075", "R-076")
async def test_a_resize_is_changed_and_refused_by_webhooks_behind_a_service(
    up: Up, hooks: tuple[Hooks, Listening]
) -> None:
    answers, place = hooks
    kubectl = Kubectl(up)
    burstable = {"requests": {"cpu": "1", "memory": "64Mi"}, "limits": {"cpu": "2", "memory": "64Mi"}}
    await kubectl.apply(
        manifest("web", {"name": "app", "resources": burstable}),
        service("hooks"),
        endpoint_slice("hooks", place.host, port=place.port),
        configuration("Mutating", answers, place),
        configuration("Validating", answers, place),
    )
    await kubectl.ok("wait", "--for=condition=Ready", "pod/web", "--timeout=30s")
    answers.answers["/mutating"] = lambda _: setting(REQUEST, "1300m")
    assert "patched" in await kubectl.resize("1200m")
    assert await kubectl.requested() == "1300m"
    assert [request["subResource"] for request in answers.requests("/validating")] == ["resize"]
    answers.answers["/mutating"] = lambda _: {}
    answers.answers["/validating"] = lambda _: denied(message="not on a Sunday")
    said = await kubectl.resize("1500m")
    assert 'admission webhook "validating.example.com" denied the request: not on a Sunday' in said
    assert await kubectl.requested() == "1300m"
    await kubectl.ok("delete", "endpointslice", "hooks-1")
    await kubectl.ok("delete", "validatingwebhookconfiguration", "validating")
    assert "patched" in await kubectl.resize("1600m"), "the connection that is open goes on, as upstream's does"


def registration(place: Listening) -> dict[str, Any]:
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"v1beta1.{GROUP}"},
        "spec": {
            "group": GROUP,
            "version": "v1beta1",
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "service": {"namespace": "kube-system", "name": "usage"},
            "caBundle": place.bundle,
        },
    }


async def test_top_asks_a_metrics_server_behind_a_service(up: Up, tmp_path: Path) -> None:
    kubectl = Kubectl(up)
    async with listening(metrics, tmp_path / "pki", "usage.kube-system.svc") as place:
        await kubectl.apply(registration(place), service("usage", "kube-system"))
        await kubectl.ok("wait", "apiservice", f"v1beta1.{GROUP}", "--for=condition=Available=false", "--timeout=10s")
        listed = await kubectl.ok("get", "apiservice", f"v1beta1.{GROUP}", "--no-headers")
        assert "False (EndpointsNotFound)" in listed
        await kubectl.apply(endpoints("usage", place.host, port=place.port, namespace="kube-system"))
        await kubectl.ok("wait", "apiservice", f"v1beta1.{GROUP}", "--for=condition=Available", "--timeout=10s")
        rows = [line.split() for line in (await kubectl.ok("top", "pods", "--no-headers")).splitlines()]
        assert rows == [["web", "123m", "64Mi"]]
        await kubectl.ok("delete", "apiservice", f"v1beta1.{GROUP}")
        await kubectl.ok("delete", "endpoints,services", "-n", "kube-system", "usage")


ACCOUNT = "system:serviceaccount:kube-system:metrics-server"
CONFIG = "extension-apiserver-authentication"
BINDINGS: tuple[dict[str, Any], ...] = (
    {
        "kind": "RoleBinding",
        "metadata": {"name": "metrics-server-auth-reader", "namespace": "kube-system"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "Role",
            "name": "extension-apiserver-authentication-reader",
        },
        "subjects": [{"kind": "ServiceAccount", "name": "metrics-server", "namespace": "kube-system"}],
    },
    {
        "kind": "ClusterRole",
        "metadata": {"name": "pod-metrics"},
        "rules": [{"apiGroups": [GROUP], "resources": ["pods"], "verbs": ["get", "list"]}],
    },
    {
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "pod-metrics"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "pod-metrics"},
        "subjects": [{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "system:authenticated"}],
    },
)


class Distrustful:
    """A metrics server that believes the front proxy which the ConfigMap names, and answers one user."""

    def __init__(self, config: dict[str, str], user: str) -> None:
        self.allowed: list[str] = json.loads(config["requestheader-allowed-names"])
        self.header = json.loads(config["requestheader-username-headers"])[0].lower()
        self.users = (user, "system:kube-aggregator")

    async def handler(self, request: Request) -> Response:
        shown = certificate_identity(request.peer_certificate) if request.peer_certificate else None
        if shown is None or shown.user not in self.allowed:
            return Response(401)
        if request.headers[self.header] not in self.users:
            forbidden = {
                "kind": "Status",
                "apiVersion": "v1",
                "status": "Failure",
                "reason": "Forbidden",
                "code": 403,
                "message": f"{request.headers[self.header]} may not",
            }
            return Response(403, {"content-type": "application/json"}, json.dumps(forbidden).encode())
        return await metrics(request)


async def test_a_metrics_server_believes_the_front_proxy(up: Up, tmp_path: Path) -> None:
    """Whom to believe it finds by itself, as upstream's does: by a list of one ConfigMap that its account may read."""
    kubectl = Kubectl(up)
    await kubectl.apply(*({"apiVersion": "rbac.authorization.k8s.io/v1", **binding} for binding in BINDINGS))
    read = ("get", "configmaps", "-n", "kube-system", "--field-selector", f"metadata.name={CONFIG}", "--as", ACCOUNT)
    config: dict[str, str] = json.loads(await kubectl.ok(*read, "-o", "json"))["items"][0]["data"]
    backend = Distrustful(config, "eve")
    trust = config["requestheader-client-ca-file"].encode()
    async with listening(backend.handler, tmp_path / "pki", "usage.kube-system.svc", clients=trust) as place:
        await kubectl.apply(
            registration(place),
            service("usage", "kube-system"),
            endpoint_slice("usage", place.host, port=place.port, namespace="kube-system"),
        )
        await kubectl.ok("wait", "apiservice", f"v1beta1.{GROUP}", "--for=condition=Available", "--timeout=10s")
        rows = (await kubectl.ok("top", "pods", "--no-headers", "--as", "eve")).split()
        assert rows == ["web", "123m", "64Mi"]
        refused = await asyncio.to_thread(up.kubectl, "top", "pods", "--as", "mallory")
        assert "mallory may not" in refused.err
        stranger = HttpsClient(f"https://{place.host}:{place.port}", client_context(verify=False))
        try:
            direct = await stranger.send(Request("GET", PODS, headers={backend.header: "eve"}))
        finally:
            await stranger.close()
        assert direct.status == 401, "the header alone is not enough"
        await kubectl.ok("delete", "apiservice", f"v1beta1.{GROUP}")
