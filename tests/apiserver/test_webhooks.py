"""Admission webhooks: a real HTTPS server is asked, and answers what the test says."""

import json
from pathlib import Path
from typing import Any

import pytest

from podfit.api.admissionregistration.v1.types import ServiceReference
from podfit.apiserver.handlers.patching import MERGE_PATCH, STRATEGIC_PATCH
from podfit.net.wire import Handler, Identity, Request, Response
from support.resizing import (
    BURSTABLE,
    NAMESPACE,
    POD,
    PODS,
    RESIZE,
    asking,
    container,
    cpu,
    create,
    read,
    resize,
    send,
    spec,
    stored,
)
from support.server import Server, running_server
from support.webhooks import REGISTRATION, Hooks, denied, patch, register, setting

CPU_PATH = "/spec/containers/0/resources/requests/cpu"


@pytest.mark.row("R-075")
@pytest.mark.parametrize(("resource", "calls"), [("pods/resize", 1), ("pods/*", 1), ("*/*", 1), ("pods", 0)])
async def test_a_resize_is_asked_about_under_its_subresource(
    server: Server, hooks: Hooks, resource: str, calls: int
) -> None:
    await stored(server)
    await register(server, "validating", hooks.webhook("/v", resource))
    assert (await resize(server, asking(c="1500m")))[0] == 200
    requests = hooks.requests("/v")
    assert len(requests) == calls
    for request in requests:
        assert (request["operation"], request["subResource"]) == ("UPDATE", "resize")
        assert request["resource"] == {"group": "", "version": "v1", "resource": "pods"}


@pytest.mark.row("R-075")
async def test_what_a_webhook_is_told(server: Server, hooks: Hooks) -> None:
    await stored(server, labels={"a": "b"})
    await register(server, "validating", hooks.webhook("/v", "pods/resize"))
    who = Identity("jane", ("system:masters",), "7", {"k": ("v",)})
    code, _ = await send(server, "PATCH", RESIZE, asking(c="1500m"), STRATEGIC_PATCH, who=who)
    assert code == 200
    ((path, review),) = hooks.asked
    request = review["request"]
    assert (path, review["kind"], review["apiVersion"]) == ("/v", "AdmissionReview", "admission.k8s.io/v1")
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    assert (request["kind"], request["requestKind"]) == (kind, kind)
    assert request["requestSubResource"] == "resize"
    assert (request["name"], request["namespace"], request["dryRun"]) == ("p", "default", False)
    assert request["userInfo"] == {
        "username": "jane",
        "uid": "7",
        "groups": ["system:masters", "system:authenticated"],
        "extra": {"k": ["v"]},
    }
    assert request["options"] == {"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1"}
    assert (request["object"]["kind"], request["object"]["apiVersion"]) == ("Pod", "v1")
    assert (cpu(request["object"]), cpu(request["oldObject"])) == ("1500m", "1")
    assert request["object"]["metadata"]["generation"] == 2


@pytest.mark.row("R-076")
async def test_a_mutating_webhook_may_lower_what_was_asked_for(server: Server, hooks: Hooks) -> None:
    await stored(server)
    await register(server, "mutating", hooks.webhook("/m", "pods/resize"))
    hooks.answers["/m"] = lambda _: setting(CPU_PATH, "1200m")
    code, found = await resize(server, asking(c="1500m"))
    assert (code, cpu(found), found["metadata"]["generation"]) == (200, "1200m", 2)


@pytest.mark.row("R-076")
async def test_what_a_webhook_made_is_validated(server: Server, hooks: Hooks) -> None:
    before = await stored(server)
    await register(server, "mutating", hooks.webhook("/m", "pods/resize"))
    hooks.answers["/m"] = lambda _: setting(CPU_PATH, "3")
    code, body = await resize(server, asking(c="1500m"))
    assert (code, "must be less than or equal to cpu limit of 2" in body["message"]) == (422, True)
    assert await read(server) == before


@pytest.mark.row("R-076")
async def test_a_webhook_changes_no_more_than_a_resize_may(server: Server, hooks: Hooks) -> None:
    await stored(server)
    await register(server, "mutating", hooks.webhook("/m", "pods/resize"))
    hooks.answers["/m"] = lambda _: patch(
        {"op": "add", "path": "/metadata/labels", "value": {"x": "y"}},
        {"op": "replace", "path": "/spec/containers/0/image", "value": "other"},
    )
    code, found = await resize(server, asking(c="1500m"))
    assert (code, found["spec"]["containers"][0]["image"], "labels" in found["metadata"]) == (200, "busybox", False)


async def test_mutating_comes_before_validating_and_one_after_the_other(server: Server, hooks: Hooks) -> None:
    await register(server, "validating", hooks.webhook("/v", "pods"), name="a")
    await register(server, "mutating", hooks.webhook("/second", "pods"), name="z")
    await register(server, "mutating", hooks.webhook("/first", "pods"), name="b")
    hooks.answers["/first"] = lambda _: patch({"op": "add", "path": "/metadata/labels", "value": {"a": "1"}})
    hooks.answers["/second"] = lambda _: patch({"op": "add", "path": "/metadata/labels/b", "value": "2"})
    code, made = await create(server, BURSTABLE)
    assert (code, made["metadata"]["labels"]) == (201, {"a": "1", "b": "2"})
    assert [path for path, _ in hooks.asked] == ["/first", "/second", "/v"]
    (seen,) = hooks.requests("/v")
    assert seen["object"]["metadata"]["labels"] == {"a": "1", "b": "2"}
    assert (seen["operation"], seen["oldObject"], seen["options"]["kind"]) == ("CREATE", None, "CreateOptions")


async def test_defaults_and_the_class_of_a_pod_follow_what_a_webhook_made(server: Server, hooks: Hooks) -> None:
    await register(server, "mutating", hooks.webhook("/m", "pods"))
    resources = {"limits": {"cpu": "1", "memory": "1Gi"}}
    hooks.answers["/m"] = lambda _: setting("/spec/containers/0/resources", resources)
    _, made = await create(server, spec(container("c")))
    assert made["spec"]["containers"][0]["resources"] == resources | {"requests": resources["limits"]}
    assert made["status"]["qosClass"] == "Guaranteed"


async def test_quotas_charge_what_webhooks_left(server: Server, hooks: Hooks) -> None:
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"requests.cpu": "2"}}}
    assert (await send(server, "POST", f"{NAMESPACE}/resourcequotas", quota))[0] == 201
    await register(server, "mutating", hooks.webhook("/m", "pods"))
    await register(server, "validating", hooks.webhook("/v", "pods"))
    hooks.answers["/m"] = lambda _: setting(CPU_PATH, "1500m")
    code, body = await create(server, spec(container("c", {"cpu": "4"})))
    assert (code, cpu(body)) == (201, "1500m")
    hooks.answers["/v"] = lambda _: denied(message="no")
    hooks.answers["/m"] = lambda _: setting(CPU_PATH, "5")
    other = {"metadata": {"name": "q"}, "spec": spec(container("c", {"cpu": "1"}))}
    code, body = await send(server, "POST", PODS, other)
    assert (code, body["message"]) == (400, 'admission webhook "v.example.com" denied the request: no')


@pytest.mark.parametrize(
    ("status", "code", "reason", "text"),
    [
        ({}, 400, None, "denied the request without explanation"),
        ({"message": "too big"}, 400, None, "denied the request: too big"),
        ({"message": "too big", "code": 403, "reason": "Forbidden"}, 403, "Forbidden", "denied the request: too big"),
        ({"reason": "Invalid", "code": 422}, 422, "Invalid", "denied the request: Invalid"),
        ({"message": "fine", "code": 200, "status": "Success"}, 400, None, "denied the request: fine"),
    ],
)
@pytest.mark.parametrize("kind", ["mutating", "validating"])
async def test_a_refusal_is_in_the_webhooks_words(
    server: Server, hooks: Hooks, kind: str, status: dict[str, Any], code: int, reason: str | None, text: str
) -> None:
    before = await stored(server)
    await register(server, kind, hooks.webhook("/no", "pods/resize"))
    hooks.answers["/no"] = lambda _: denied(**status)
    got, body = await resize(server, asking(c="1500m"))
    assert (got, body["code"], body["status"]) == (code, code, "Failure")
    assert (body["message"], body.get("reason") or None) == (f'admission webhook "no.example.com" {text}', reason)
    assert await read(server) == before


async def test_warnings_reach_the_client(server: Server, hooks: Hooks) -> None:
    await register(server, "mutating", hooks.webhook("/m", "pods"))
    await register(server, "validating", hooks.webhook("/v", "pods"))
    hooks.answers |= {"/m": lambda _: {"warnings": ["one"]}, "/v": lambda _: {"warnings": ["two"]}}
    answer = await server.ask("POST", PODS, json.dumps({"metadata": {"name": "p"}, "spec": BURSTABLE}).encode())
    assert answer.headers["warning"] == '299 - "one", 299 - "two"'


class TestWhoIsAsked:
    async def test_selectors(self, server: Server, hooks: Hooks) -> None:
        await send(server, "PATCH", "/api/v1/namespaces/default", {"metadata": {"labels": {"team": "a"}}}, MERGE_PATCH)
        of_team = {"matchLabels": {"team": "a"}}
        await register(
            server,
            "validating",
            hooks.webhook("/ours", "pods", namespaceSelector=of_team),
            hooks.webhook("/theirs", "pods", namespaceSelector={"matchLabels": {"team": "b"}}),
            hooks.webhook("/labelled", "pods", objectSelector={"matchLabels": {"a": "b"}}),
            hooks.webhook("/other", "pods", objectSelector={"matchLabels": {"a": "c"}}),
        )
        assert (await create(server, BURSTABLE, labels={"a": "b"}))[0] == 201
        assert sorted(path for path, _ in hooks.asked) == ["/labelled", "/ours"]

    async def test_a_namespace_is_selected_by_its_own_labels(self, server: Server, hooks: Hooks) -> None:
        selector = {"matchLabels": {"kubernetes.io/metadata.name": "new"}}
        await register(server, "validating", hooks.webhook("/n", "namespaces", namespaceSelector=selector))
        for name in ("new", "old"):
            assert (await send(server, "POST", "/api/v1/namespaces", {"metadata": {"name": name}}))[0] == 201
        (request,) = hooks.requests("/n")
        assert (request["name"], request["namespace"]) == ("new", "new")

    async def test_deletion(self, server: Server, hooks: Hooks) -> None:
        await stored(server)
        await register(server, "validating", hooks.webhook("/v", "pods"))
        await register(server, "mutating", hooks.webhook("/m", "pods"))
        hooks.answers["/v"] = lambda _: denied(message="stays")
        code, body = await send(server, "DELETE", POD)
        assert (code, body["message"]) == (400, 'admission webhook "v.example.com" denied the request: stays')
        for path in ("/m", "/v"):
            (request,) = hooks.requests(path)
            assert (request["operation"], request["object"], cpu(request["oldObject"])) == ("DELETE", None, "1")
        hooks.answers["/m"] = lambda _: patch({"op": "add", "path": "/metadata/labels", "value": {}})
        code, body = await send(server, "DELETE", POD)
        assert (code, "attempted to modify the object" in body["message"]) == (500, True)

    async def test_a_dry_run_says_so(self, server: Server, hooks: Hooks) -> None:
        await stored(server)
        await register(server, "validating", hooks.webhook("/v", "pods/resize", sideEffects="NoneOnDryRun"))
        assert (await resize(server, asking(c="1500m"), query="?dryRun=All"))[0] == 200
        (request,) = hooks.requests("/v")
        assert request["dryRun"] is True
        assert request["options"]["dryRun"] == ["All"]

    async def test_nobody_is_asked_about_webhooks(self, server: Server, hooks: Hooks) -> None:
        everything = hooks.webhook("/v", "*/*")
        hooks.answers["/v"] = lambda _: denied()
        await register(server, "validating", everything, name="a")
        await register(server, "mutating", everything, name="b")
        for kind, name in (("validating", "a"), ("mutating", "b")):
            assert (await send(server, "DELETE", f"{REGISTRATION}/{kind}webhookconfigurations/{name}"))[0] == 200
        assert hooks.asked == []

    async def test_the_version_is_the_first_that_both_speak(self, server: Server, hooks: Hooks) -> None:
        await register(server, "validating", hooks.webhook("/v", "pods", admissionReviewVersions=["v9", "v1beta1"]))
        hooks.answers["/v"] = lambda _: {"uid": ""}
        assert (await create(server, BURSTABLE))[0] == 201
        assert [review["apiVersion"] for _, review in hooks.asked] == ["admission.k8s.io/v1beta1"]


class TestReinvocation:
    async def test_who_asked_for_it_sees_what_came_after(self, server: Server, hooks: Hooks) -> None:
        await register(
            server,
            "mutating",
            hooks.webhook("/again", "pods", reinvocationPolicy="IfNeeded"),
            hooks.webhook("/once", "pods"),
            hooks.webhook("/last", "pods", reinvocationPolicy="IfNeeded"),
        )
        hooks.answers["/last"] = lambda _: patch({"op": "add", "path": "/metadata/labels", "value": {"a": "b"}})
        assert (await create(server, BURSTABLE))[0] == 201
        assert [path for path, _ in hooks.asked] == ["/again", "/once", "/last", "/again"]
        assert hooks.requests("/again")[1]["object"]["metadata"]["labels"] == {"a": "b"}

    async def test_without_a_change_everyone_is_asked_once(self, server: Server, hooks: Hooks) -> None:
        await register(server, "mutating", hooks.webhook("/again", "pods", reinvocationPolicy="IfNeeded"))
        hooks.answers["/again"] = lambda request: setting(CPU_PATH, cpu(request["object"]))
        assert (await create(server, BURSTABLE))[0] == 201
        assert len(hooks.asked) == 1

    async def test_there_is_no_third_round(self, server: Server, hooks: Hooks) -> None:
        def counted(request: dict[str, Any]) -> dict[str, Any]:
            count = str(int(request["object"]["metadata"].get("labels", {}).get("n", "0")) + 1)
            return patch({"op": "add", "path": "/metadata/labels", "value": {"n": count}})

        both = (hooks.webhook(path, "pods", reinvocationPolicy="IfNeeded") for path in ("/one", "/two"))
        await register(server, "mutating", *both)
        hooks.answers |= {"/one": counted, "/two": counted}
        _, made = await create(server, BURSTABLE)
        assert [path for path, _ in hooks.asked] == ["/one", "/two", "/one", "/two"]
        assert made["metadata"]["labels"] == {"n": "4"}

    async def test_built_in_plugins_see_it_again(self, server: Server, hooks: Hooks) -> None:
        default = {"type": "Container", "defaultRequest": {"cpu": "1"}}
        limits = {"metadata": {"name": "l"}, "spec": {"limits": [default]}}
        assert (await send(server, "POST", f"{NAMESPACE}/limitranges", limits))[0] == 201
        await register(server, "mutating", hooks.webhook("/m", "pods", reinvocationPolicy="IfNeeded"))
        added = patch({"op": "add", "path": "/spec/containers/-", "value": {"name": "new", "image": "busybox"}})
        hooks.answers["/m"] = lambda request: added if len(request["object"]["spec"]["containers"]) == 1 else {}
        _, made = await create(server, BURSTABLE)
        assert cpu(made, "new") == "1"
        assert len(hooks.asked) == 2


async def test_a_service_is_found_by_the_resolver(tmp_path: Path, hooks: Hooks) -> None:
    asked: list[ServiceReference] = []

    def services(service: ServiceReference) -> Handler:
        asked.append(service)

        async def handler(request: Request) -> Response:
            assert request.param("timeout") == "10s"
            return await hooks.handler(request)

        return handler

    async with running_server(tmp_path, services=services) as server:
        service = {"namespace": "kube-system", "name": "vpa", "path": "/m", "port": 8443}
        await register(server, "mutating", hooks.webhook("/m", "pods") | {"clientConfig": {"service": service}})
        hooks.answers["/m"] = lambda _: setting(CPU_PATH, "1200m")
        _, made = await create(server, BURSTABLE)
    assert cpu(made) == "1200m"
    assert (asked[0].namespace, asked[0].name, asked[0].port) == ("kube-system", "vpa", 8443)


async def test_generations_and_columns_of_configurations(server: Server, hooks: Hooks) -> None:
    await register(server, "validating", hooks.webhook("/v", "pods"))
    path = f"{REGISTRATION}/validatingwebhookconfigurations/hooks"
    _, labelled = await send(server, "PATCH", path, {"metadata": {"labels": {"a": "b"}}}, MERGE_PATCH)
    assert labelled["metadata"]["generation"] == 1
    _, changed = await send(server, "PATCH", path, {"webhooks": []}, MERGE_PATCH)
    assert changed["metadata"]["generation"] == 2
    _, table = await send(server, "GET", path, accept="application/json;as=Table;g=meta.k8s.io;v=v1")
    assert table["rows"][0]["cells"] == ["hooks", 0, "0s"]
