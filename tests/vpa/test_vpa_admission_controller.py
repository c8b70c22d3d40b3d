"""The admission controller beside a real API server: what new pods get, which VPAs are refused, and how it is found."""

import json
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from podfit.api.admissionregistration.v1.types import MutatingWebhookConfiguration
from podfit.api.apps.v1.deployments import ReplicaSet
from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.api.coordination.v1.types import Lease
from podfit.api.core.v1.limits.types import LimitRange
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.client.vpa_kinds import VPAS
from podfit.core.errors import ApiError
from podfit.core.quantity import MALFORMED
from podfit.core.times import parse_time
from podfit.decide.autoscaling.gates import Gates
from podfit.net.authority import Authority
from podfit.net.wire import Request
from podfit.vpa.admission.controller import BODY_LIMIT, AdmissionController, AdmissionSettings
from podfit.vpa.admission.registration import NAME, Registration, register
from podfit.vpa.admission.webhook import Webhook, WebhookOptions
from podfit.vpa.certificates import Files, self_made
from support.vpa_world import NAMESPACE, World, recommending

SMALL, LARGE = ("100m", "300Mi"), ("500m", "600Mi")
GATES = Gates(cpu_startup_boost=True)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with recommending(tmp_path) as made:
        yield made


async def admitting(world: World, **settings: Any) -> AdmissionController:
    """In the process of the API server, as in `podfit up`."""
    controller = AdmissionController(world.client, clock=world.clock, settings=AdmissionSettings(**settings))
    world.usage.beside["vpa-webhook"] = controller.handle
    await world.run(controller.run())
    await register(world.client, Registration(), b"")
    await world.clock.settle()
    return controller


async def web(world: World, mode: str = "Initial", **spec: Any) -> None:
    await world.deployment("web")
    await world.replicaset("web-rs", "web", 1)
    await world.vpa("web", updatePolicy={"updateMode": mode}, **spec)
    await world.recommend("web", *LARGE)


@pytest.mark.row("V-064", "V-065", "V-066", "V-121")
@pytest.mark.parametrize(("mode", "expected"), [("Off", SMALL), ("Initial", LARGE), ("Recreate", LARGE)])
async def test_vpa_gives_new_pods_what_is_recommended(world: World, mode: str, expected: tuple[str, str]) -> None:
    await web(world, mode)
    controller = await admitting(world)
    await world.pod("web-1", "web", owner="web-rs")
    assert await world.requests() == {"web-1": expected}
    notes = (await world.client.get(Pod, "web-1", NAMESPACE)).metadata.annotations
    assert notes.get("vpaObservedContainers") == (None if mode == "Off" else "app")
    applied = str(mode != "Off").lower()
    assert f'pods_total{{applied="{applied}"}} 1.0' in controller.metrics.exposition().decode()


@pytest.mark.row("V-067")
async def test_vpa_of_a_pod_is_the_oldest_and_pods_of_nobody_stay(world: World) -> None:
    await web(world)
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    await world.minutes(1)
    await world.vpa("a-younger", target)
    await world.recommend("a-younger", "2", "2Gi")
    await admitting(world)
    await world.pod("web-1", "web", owner="web-rs")
    await world.pod("alone", "web")
    assert await world.requests() == {"web-1": LARGE, "alone": SMALL}


@pytest.mark.parametrize("changed", [{"uid": "another"}, {"apiVersion": "example.org/v1"}])
async def test_vpa_of_a_controller_has_no_pod_that_names_another_of_its_name(
    world: World, changed: dict[str, str]
) -> None:
    await web(world)
    await admitting(world)
    true = await world.reference(ReplicaSet, "web-rs")
    container = {"name": "app", "image": "i", "resources": {"requests": {"cpu": "100m", "memory": "300Mi"}}}
    for name, owner in (("false", true | changed), ("true", true)):
        meta = {"name": name, "namespace": NAMESPACE, "labels": {"app": "web"}, "ownerReferences": [owner]}
        await world.client.create(convert({"metadata": meta, "spec": {"containers": [container]}}, Pod))
    assert await world.requests() == {"false": SMALL, "true": LARGE}


@pytest.mark.row("V-067")
async def test_vpa_that_is_off_leaves_its_pods_to_a_younger_one(world: World) -> None:
    await web(world, "Off")
    await world.minutes(1)
    await world.vpa("younger", {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"})
    await world.recommend("younger", "2", "2Gi")
    await admitting(world)
    await world.pod("web-1", "web", owner="web-rs")
    assert await world.requests() == {"web-1": ("2", "2Gi")}


@pytest.mark.row("V-061")
async def test_vpa_keeps_new_pods_within_a_limit_range(world: World) -> None:
    await web(world)
    spec = {"limits": [{"type": "Container", "max": {"memory": "400Mi"}}]}
    await world.client.create(convert({"metadata": {"name": "l", "namespace": NAMESPACE}, "spec": spec}, LimitRange))
    await admitting(world)
    await world.pod("web-1", "web", owner="web-rs")
    assert (await world.requests())["web-1"] == ("500m", "300Mi")  # its limit, by default the maximum, keeps its ratio


@pytest.mark.row("V-107")
async def test_vpa_boosts_a_start_also_when_it_is_off(world: World) -> None:
    await web(world, "Off", startupBoost={"cpu": {"type": "Factor", "factor": 3}})
    await admitting(world, gates=GATES)
    await world.pod("web-1", "web", owner="web-rs")
    assert (await world.requests())["web-1"] == ("300m", "300Mi")


@pytest.mark.row("V-004", "V-006", "V-007")
async def test_vpa_objects_are_checked_defaulted_and_warned_about(world: World) -> None:
    await admitting(world)
    await world.deployment("web")
    await world.vpa("web")
    found = await world.seen("web")
    assert found.spec.update_policy is not None
    assert found.spec.update_policy.update_mode == "Recreate"
    with pytest.raises(ApiError) as refused:
        await world.vpa("two", recommenders=[{"name": "a"}, {"name": "b"}])
    assert "spec.recommenders: Too many: 2: must have at most 1 item" in refused.value.message
    wrong = {"metadata": {"name": "none", "namespace": NAMESPACE}, "spec": {"targetRef": {"kind": "a", "name": "b"},
             "updatePolicy": {"updateMode": "InPlace"}}}  # fmt: skip
    with pytest.raises(ApiError, match="you must enable feature gate InPlace"):
        await world.client.create_in(VPAS, convert(wrong, VerticalPodAutoscaler))


def hamster(name: str, smallest: dict[str, Any]) -> bytes:
    """The VPA that upstream's tests make."""
    spec = {
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "hamster"},
        "resourcePolicy": {"containerPolicies": [{"containerName": "*", "minAllowed": smallest}]},
    }
    kind = {"kind": "VerticalPodAutoscaler", "apiVersion": "autoscaling.k8s.io/v1"}
    return json.dumps(kind | {"metadata": {"name": name}, "spec": spec}).encode()


async def installed(world: World, name: str, smallest: dict[str, Any]) -> tuple[int, str]:
    path = f"/apis/autoscaling.k8s.io/v1/namespaces/{NAMESPACE}/verticalpodautoscalers"
    answer = await world.server.ask("POST", path, hamster(name, smallest))
    return answer.status, json.loads(await answer.read()).get("message", "")


DENIED = f'admission webhook "vpa.k8s.io" denied the request: {MALFORMED}'


async def test_accepts_valid_and_rejects_invalid_vpa_object(world: World) -> None:
    """Upstream's spec of that name, of the VPA's own end-to-end tests."""
    await admitting(world)
    assert await installed(world, "hamster-vpa-valid", {"cpu": "50m"}) == (201, "")
    assert await installed(world, "hamster-vpa-invalid", {"requests": {"cpu": "50m"}}) == (400, DENIED)


@pytest.mark.row("V-069")
async def test_what_a_vpa_object_cannot_be_is_said(world: World) -> None:
    await admitting(world)
    assert await installed(world, "a", {"cpu": "50x"}) == (400, DENIED)
    path = f"/apis/autoscaling.k8s.io/v1/namespaces/{NAMESPACE}/verticalpodautoscalers"
    body = json.loads(hamster("b", {})) | {"spec": {"updatePolicy": {"updateMode": 5}}}
    answer = await world.server.ask("POST", path, json.dumps(body).encode())
    said = json.loads(await answer.read())["message"]
    assert said.startswith('admission webhook "vpa.k8s.io" denied the request: ')
    assert "spec.updatePolicy.updateMode" in said


@pytest.mark.row("V-069")
@pytest.mark.parametrize(
    ("body", "code"),
    [(b"{", 200), (b"[]", 200), (b'{"request": 1}', 200), (b"x" * (BODY_LIMIT + 1), 413), (b"[" * 100_000, 200)],
    ids=["cut", "list", "number", "large", "deep"],
)
async def test_vpa_lets_pass_what_it_cannot_read(world: World, body: bytes, code: int) -> None:
    controller = await admitting(world)
    answer = await controller.handle(Request("POST", "/", {}, {"content-type": "application/json"}, body))
    assert answer.status == code
    if code == 200:
        response = json.loads(await answer.read())["response"]
        assert (response["allowed"], response.get("patch")) == (True, None)


@pytest.mark.row("V-069")
async def test_vpa_lets_a_pod_pass_that_it_cannot_work_out(world: World) -> None:
    """A boost that says nothing of how much is let in by an older definition."""
    controller = await admitting(world, gates=GATES)
    request = {
        "uid": "u",
        "resource": {"version": "v1", "resource": "pods"},
        "operation": "CREATE",
        "object": {"spec": 1},
    }
    body = json.dumps({"apiVersion": "admission.k8s.io/v1", "request": request}).encode()
    answer = await controller.handle(Request("POST", "/", {}, {"content-type": "application/json"}, body))
    assert json.loads(await answer.read())["response"] == {"uid": "u", "allowed": True}
    assert 'latency_seconds_count{resource="Pod",status="error"} 1.0' in controller.metrics.exposition().decode()


@pytest.mark.row("V-068")
async def test_vpa_webhook_is_registered_anew_in_place_of_the_old_one(world: World) -> None:
    await register(world.client, Registration(), b"first")
    await register(
        world.client, Registration(fails=True, ignored=frozenset(["kube-system"]), labels={"a": "b"}), b"two"
    )
    found = await world.client.get(MutatingWebhookConfiguration, NAME)
    (webhook,) = found.webhooks
    assert found.metadata.labels == {"a": "b"}
    assert (webhook.name, webhook.failure_policy, webhook.side_effects) == ("vpa.k8s.io", "Fail", "None")
    assert (webhook.timeout_seconds, webhook.client_config.ca_bundle) == (30, b"two")
    assert [(rule.operations, rule.api_groups, rule.resources) for rule in webhook.rules] == [
        (("CREATE",), ("",), ("pods",)),
        (("CREATE", "UPDATE"), ("autoscaling.k8s.io",), ("verticalpodautoscalers",)),
    ]
    assert webhook.namespace_selector is not None
    (term,) = webhook.namespace_selector.match_expressions
    assert (term.key, term.operator, term.values) == ("kubernetes.io/metadata.name", "NotIn", ("kube-system",))


@pytest.mark.row("V-080")
async def test_vpa_lease_is_renewed_every_ten_seconds(world: World) -> None:
    await admitting(world)
    times = []
    for _ in range(3):
        lease = await world.client.get(Lease, "vpa-admission-controller", "kube-system")
        assert lease.spec.renew_time is not None
        times.append(parse_time(lease.spec.renew_time))
        await world.clock.advance(10)
    assert [(later - times[0]).total_seconds() for later in times] == [0, 10, 20]


@pytest.mark.row("V-068", "V-070")
async def test_reloads_the_webhook_leaf_and_ca_certificate(world: World, tmp_path: Path) -> None:
    """Upstream's spec of that name: pods and VPA objects are reviewed under the certificates that came, too."""
    await web(world)
    controller = AdmissionController(world.client, clock=world.clock, settings=AdmissionSettings())
    await world.run(controller.run())
    files = Files(tmp_path / "tls.crt", tmp_path / "tls.key", tmp_path / "ca.crt")

    def write(name: str) -> None:
        (tmp_path / name).mkdir()
        authority = Authority.load(tmp_path / name, clock=world.clock)
        pair = authority.server("webhook", hosts=("127.0.0.1",))
        for file, content in zip(
            (files.certificate, files.key, files.authorities),
            (pair.certificate, pair.key, authority.certificate),
            strict=True,
        ):
            file.write_bytes(content)

    write("one")
    options = WebhookOptions(address="127.0.0.1", port=0, registration=None)
    webhook = Webhook(controller.handle, world.client, world.clock, options, files.read)
    await world.run(webhook.run())
    where = f"https://127.0.0.1:{webhook.port}"
    reached = Webhook(
        controller.handle,
        world.client,
        world.clock,
        WebhookOptions(address="127.0.0.1", port=0, registration=Registration(url=where, fails=True)),
        files.read,
    )
    await world.run(reached.run())
    await world.pod("web-1", "web", owner="web-rs")
    assert await world.requests() == {"web-1": LARGE}
    write("two")
    files.certificate.write_bytes(b"")
    await world.clock.advance(10)
    first = (await world.client.get(MutatingWebhookConfiguration, NAME)).webhooks[0].client_config.ca_bundle
    assert first != files.authorities.read_bytes()
    with suppress(FileExistsError):
        write("three")
    await world.clock.advance(10)
    bundle = (await world.client.get(MutatingWebhookConfiguration, NAME)).webhooks[0].client_config.ca_bundle
    assert bundle == files.authorities.read_bytes()
    await world.pod("web-2", "web", owner="web-rs")
    assert (await world.requests())["web-2"] == LARGE
    assert await installed(world, "hamster-vpa-valid", {"cpu": "50m"}) == (201, "")
    assert await installed(world, "hamster-vpa-invalid", {"requests": {"cpu": "50m"}}) == (400, DENIED)


async def test_vpa_makes_a_certificate_of_its_own(world: World) -> None:
    with self_made(world.clock, ("vpa-webhook.kube-system.svc",), "webhook") as certificates:
        first, second = certificates(), certificates()
        assert first.whole
        assert first == second
