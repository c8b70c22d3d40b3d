"""PodSecurity on a server: who is told what, in which order, and what a namespace full of pods costs."""

import asyncio
import json
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest

from apiserver.test_audit import audited
from podfit.api.core.v1.namespaces.types import Namespace
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta import codec
from podfit.api.registry import info_for
from podfit.apiserver.admission.pod_security import PodSecurity
from podfit.apiserver.admission.pod_security_standards.existing import MOST_PODS
from podfit.apiserver.context import Attributes, Context
from podfit.apiserver.handlers.answers import LONGEST_WARNINGS
from podfit.apiserver.handlers.patching import MERGE_PATCH, STRATEGIC_PATCH
from podfit.apiserver.registry import stored
from podfit.core.errors import ApiError
from support.clock import FakeClock
from support.server import ADMIN, Server, document
from support.webhooks import Hooks, register, setting

T = TypeVar("T")
SPACE = "/api/v1/namespaces/default"
PODS = f"{SPACE}/pods"
LABEL = "pod-security.kubernetes.io/"
PRIVILEGED: dict[str, Any] = {"securityContext": {"privileged": True}}
DETAIL = 'privileged (container "a" must not set securityContext.privileged=true)'
VIOLATES = f'violates PodSecurity "baseline:latest": {DETAIL}'


def manifest(name: str = "p", **container: Any) -> dict[str, Any]:
    containers = [{"name": "a", "image": "i"} | container]
    return {"metadata": {"name": name}, "spec": {"automountServiceAccountToken": False, "containers": containers}}


async def label(server: Server, **labels: str | None) -> tuple[int, str, dict[str, Any]]:
    """Code, warnings and answer of a change of the namespace's labels; `_` in a name is a hyphen."""
    wanted = {LABEL + name.replace("_", "-"): value for name, value in labels.items()}
    return await ask(server, "PATCH", SPACE, {"metadata": {"labels": wanted}}, MERGE_PATCH)


async def ask(
    server: Server, method: str, path: str, body: Any = None, kind: str = "application/json"
) -> tuple[int, str, dict[str, Any]]:
    answer = await server.ask(method, path, b"" if body is None else json.dumps(body).encode(), content_type=kind)
    return answer.status, answer.headers.get("warning", ""), document(await answer.read())


async def test_it_judges_what_webhooks_made_of_a_pod(server: Server, hooks: Hooks) -> None:
    await label(server, enforce="baseline")
    await register(server, "mutating", hooks.webhook("/m", "pods", operations=["CREATE"]))
    hooks.answers["/m"] = lambda _: setting("/spec/containers/0/securityContext", {"privileged": True})
    code, _, answer = await ask(server, "POST", PODS, manifest())
    assert (code, answer["message"]) == (403, f'pods "p" is forbidden: {VIOLATES}')
    hooks.answers["/m"] = lambda _: setting("/spec/containers/0/securityContext", {"privileged": False})
    assert (await ask(server, "POST", PODS, manifest(**PRIVILEGED)))[0] == 201


async def test_ephemeral_containers_and_images_by_every_patch(server: Server) -> None:
    assert (await ask(server, "POST", PODS, manifest(**PRIVILEGED)))[0] == 201
    await label(server, enforce="baseline")
    image = {"spec": {"containers": [{"name": "a", "image": "j"}]}}
    for body, kind in (
        (image, STRATEGIC_PATCH),
        ({"spec": manifest(image="j", **PRIVILEGED)["spec"]}, MERGE_PATCH),
        ([{"op": "replace", "path": "/spec/containers/0/image", "value": "j"}], "application/json-patch+json"),
    ):
        code, _, answer = await ask(server, "PATCH", f"{PODS}/p", body, kind)
        assert (code, answer["message"]) == (403, f'pods "p" is forbidden: {VIOLATES}'), kind
    guest = {"spec": {"ephemeralContainers": [{"name": "e", "image": "i"}]}}
    code, _, answer = await ask(server, "PATCH", f"{PODS}/p/ephemeralcontainers", guest, STRATEGIC_PATCH)
    assert (code, answer["message"]) == (403, f'pods "p" is forbidden: {VIOLATES}')


async def test_bad_labels_that_are_there_can_stay_and_count_as_restricted(server: Server) -> None:
    code, _, answer = await label(server, enforce="strict", audit_version="x")
    assert (code, [cause["field"] for cause in answer["details"]["causes"]]) == (
        422,
        [f"metadata.labels[{LABEL}enforce]", f"metadata.labels[{LABEL}audit-version]"],
    )
    record = await server.context.store.get("/registry/namespaces/default")
    assert record is not None
    value = json.loads(record.value)
    value["metadata"].setdefault("labels", {})[LABEL + "enforce"] = "strict"
    written = json.dumps(value, separators=(",", ":")).encode()
    await server.context.store.update(record.key, written, expected=record.mod_revision)
    assert (await label(server, audit="baseline"))[0] == 200
    assert (await label(server, warn="nonsense"))[0] == 422
    code, _, answer = await ask(server, "POST", PODS, manifest())
    assert code == 403
    assert 'violates PodSecurity "restricted:latest"' in answer["message"]


async def test_a_dry_run_of_labels_warns_and_changes_nothing(server: Server) -> None:
    await ask(server, "POST", PODS, manifest(**PRIVILEGED))
    body = {"metadata": {"labels": {LABEL + "enforce": "baseline"}}}
    code, warning, _ = await ask(server, "PATCH", f"{SPACE}?dryRun=All", body, MERGE_PATCH)
    assert (code, '299 - "p: privileged"' in warning) == (200, True)
    assert (await ask(server, "POST", PODS, manifest("q", **PRIVILEGED)))[0] == 201


async def _fill(context: Context, count: int) -> None:
    """Pods in the store, each of a controller of ten."""
    info = info_for(Pod)
    for number in range(count):
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": f"u{number % 10}"}
        made = manifest(f"p{number:05}", **PRIVILEGED)
        owners = [owner | {"controller": True}]
        made["metadata"] |= {"namespace": "default", "uid": str(number), "ownerReferences": owners}
        pod = codec.convert(made, Pod)
        await context.store.create(stored.key(info, "default", pod.metadata.name), stored.encoded(pod))


async def _overtaken(server: Server, work: Coroutine[Any, Any, T]) -> T:
    """What comes of the work, which was begun before a request that is answered before it is done."""
    working = asyncio.ensure_future(work)
    await asyncio.sleep(0)
    assert (await server.ask("GET", SPACE)).status == 200
    assert not working.done()
    return await working


async def test_others_are_answered_while_a_large_pod_is_checked(server: Server) -> None:
    await label(server, enforce="restricted")
    containers = [{"name": f"c{number}", "image": "i"} for number in range(2000)]
    pod = codec.convert(manifest() | {"spec": {"containers": containers}}, Pod)
    attributes = Attributes(
        operation="CREATE",
        info=info_for(Pod),
        subresource="",
        namespace="default",
        name="p",
        identity=ADMIN,
        dry_run=False,
    )
    with pytest.raises(ApiError, match="violates PodSecurity"):
        await _overtaken(server, PodSecurity(server.context).validate(attributes, pod))


async def test_so_many_existing_pods_are_looked_at_while_others_are_answered(server: Server) -> None:
    await _fill(server.context, MOST_PODS + 7)
    code, warning, _ = await _overtaken(server, label(server, enforce="baseline"))
    assert code == 200
    checked = f"the first {MOST_PODS} of {MOST_PODS + 7} existing pods"
    violating = 'existing pods in namespace \\"default\\" violate the new PodSecurity enforce level'
    assert warning == ", ".join(
        (
            f'299 - "new PodSecurity enforce level only checked against {checked}"',
            f'299 - "{violating} \\"baseline:latest\\""',
            f'299 - "p00000 (and {MOST_PODS - 1} other pods): privileged"',
        )
    )


async def test_existing_pods_are_looked_at_for_a_second(server: Server) -> None:
    class Slow(FakeClock):
        """Each look at it takes a quarter of a second."""

        def monotonic(self) -> float:
            self.late = getattr(self, "late", 0.0) + 0.25
            return super().monotonic() + self.late

    await _fill(server.context, 100)
    store = server.context.store
    plugin = PodSecurity(Context(store, Slow(), server.context.gates, server.context.kubelet))
    old = await server.context.find(Namespace, "default")
    assert old is not None
    new = codec.convert({"metadata": {"name": "default", "labels": {LABEL + "enforce": "baseline"}}}, Namespace)
    attributes = Attributes(
        operation="UPDATE",
        info=info_for(Namespace),
        subresource="",
        namespace="",
        name="default",
        identity=ADMIN,
        dry_run=False,
        old=old,
    )
    await plugin.validate(attributes, new)
    told = attributes.reinvocations.warnings[0]
    assert told == "new PodSecurity enforce level only checked against the first 2 of 100 existing pods"


async def test_the_audit_log_says_what_was_enforced_and_what_would_not_pass(tmp_path: Path) -> None:
    async with audited(tmp_path) as made:
        labels = {LABEL + "enforce": "privileged", LABEL + "audit": "baseline"}
        await made.ask(
            "PATCH", SPACE, json.dumps({"metadata": {"labels": labels}}).encode(), headers={"content-type": MERGE_PATCH}
        )
        await made.ask("POST", PODS, json.dumps(manifest(**PRIVILEGED)).encode())
        events = {line["verb"]: line.get("annotations") for line in await made.lines()}
    assert events["patch"] is None
    assert events["create"] == {
        LABEL + "enforce-policy": "privileged:latest",
        LABEL + "audit-violations": "would " + VIOLATES.replace("violates", "violate"),
    }


async def test_a_large_pod_gets_short_warnings(server: Server) -> None:
    await label(server, warn="restricted")
    containers = [{"name": f"c{number:060}", "image": "i"} for number in range(900)]
    body = manifest()
    body["spec"]["containers"] = containers
    code, warning, _ = await ask(server, "POST", PODS, body)
    assert code == 201
    assert len(warning) <= LONGEST_WARNINGS
    await label(server, enforce="restricted")
    body["metadata"]["name"] = "q"
    code, _, answer = await ask(server, "POST", PODS, body)
    assert (code, len(answer["message"]) < 100_000) == (403, True)


async def test_what_is_deprecated_is_told_with_refusals_too(server: Server) -> None:
    await label(server, enforce="baseline")
    body = manifest(**PRIVILEGED)
    body["metadata"]["annotations"] = {"seccomp.security.alpha.kubernetes.io/pod": "unconfined"}
    body["spec"]["volumes"] = [{"name": "v", "rbd": {"monitors": ["m"], "image": "i"}}]
    code, warning, _ = await ask(server, "POST", PODS, body)
    assert code == 403
    assert warning == (
        '299 - "spec.volumes[0].rbd: deprecated in v1.28, non-functional in v1.31+", '
        '299 - "metadata.annotations[seccomp.security.alpha.kubernetes.io/pod]: '
        'non-functional in v1.27+; use the \\"seccompProfile\\" field instead"'
    )
