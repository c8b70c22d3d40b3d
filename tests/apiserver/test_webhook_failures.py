"""Webhooks that cannot be asked, or answer nothing that counts: `failurePolicy` decides."""

import asyncio
import base64
from pathlib import Path
from typing import Any

import pytest

from podfit.net.authority import Authority
from podfit.net.system import SystemClock
from podfit.net.wire import Response
from support.clock import FakeClock
from support.resizing import asking, resize, send, stored
from support.server import Server, running_server
from support.webhooks import HOST, REGISTRATION, Hooks, denied, patch, register, setting


async def said(server: Server, webhook: dict[str, Any], kind: str = "validating") -> str:
    """Why the resize fails; under `Ignore` it has to pass."""
    await stored(server)
    await register(server, kind, webhook)
    code, body = await resize(server, asking(c="1500m"))
    assert (code, body["reason"]) == (500, "InternalError")
    text: str = body["message"]
    assert body["details"]["causes"] == [{"message": text.removeprefix("Internal error occurred: ")}]
    assert (await send(server, "DELETE", f"{REGISTRATION}/{kind}webhookconfigurations/hooks"))[0] == 200
    await register(server, kind, webhook | {"failurePolicy": "Ignore"})
    assert (await resize(server, asking(c="1500m")))[0] == 200
    return text.removeprefix(f'Internal error occurred: failed calling webhook "{webhook["name"]}": ')


async def test_nobody_listens(server: Server, hooks: Hooks) -> None:
    webhook = hooks.webhook("/v", "pods/resize")
    webhook["clientConfig"]["url"] = f"https://{HOST}:1/v"
    assert await said(server, webhook) == (
        f'failed to call webhook: Post "https://{HOST}:1/v?timeout=10s": dial tcp {HOST}:1: connect: connection refused'
    )


@pytest.mark.parametrize("place", [f"{HOST}:99999", "no-such-host.invalid", "[::1", "a..b"])
async def test_a_place_that_there_is_not(server: Server, hooks: Hooks, place: str) -> None:
    webhook = hooks.webhook("/v", "pods/resize")
    webhook["clientConfig"]["url"] = f"https://{place}/v"
    path = f"{REGISTRATION}/validatingwebhookconfigurations"
    code, _ = await send(server, "POST", path, {"metadata": {"name": "hooks"}, "webhooks": [webhook]})
    if code == 201:
        await stored(server)
        code, body = await resize(server, asking(c="1500m"))
        assert code == 500
        assert f'failed to call webhook: Post "https://{place}/v?timeout=10s": ' in body["message"]
    else:
        assert code == 422


async def test_a_server_that_the_bundle_does_not_vouch_for(server: Server, hooks: Hooks, tmp_path: Path) -> None:
    webhook = hooks.webhook("/v", "pods/resize")
    other = Authority.load(tmp_path / "other", clock=SystemClock()).certificate
    webhook["clientConfig"]["caBundle"] = base64.b64encode(other).decode()
    text = await said(server, webhook)
    assert text.endswith(": tls: failed to verify certificate: x509: certificate signed by unknown authority")
    assert hooks.asked == []


async def test_a_service_that_is_not_there(server: Server, hooks: Hooks) -> None:
    service = {"namespace": "ns", "name": "svc", "path": "/x"}
    webhook = hooks.webhook("/v", "pods/resize") | {"clientConfig": {"service": service}}
    assert await said(server, webhook) == (
        'failed to call webhook: Post "https://svc.ns.svc:443/x?timeout=10s": service "svc" not found'
    )


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (404, "the server could not find the requested resource"),
        (500, 'an error on the server ("boom") has prevented the request from succeeding'),
        (418, "the server responded with the status code 418 but did not return more information"),
    ],
)
async def test_an_error_status(server: Server, hooks: Hooks, status: int, text: str) -> None:
    hooks.answers["/v"] = lambda _: Response(status, {}, b"boom")
    assert await said(server, hooks.webhook("/v", "pods/resize")) == f"failed to call webhook: {text}"


@pytest.mark.parametrize(
    ("kind", "answer", "text"),
    [
        ("validating", {"uid": "other"}, 'got "other"'),
        ("validating", patch(), "validating webhook may not return response.patch"),
        ("validating", {"patchType": "JSONPatch"}, "validating webhook may not return response.patchType"),
        ("mutating", {"patch": "W10="}, "webhook returned response.patch but not response.patchType"),
        ("mutating", {"patchType": "JSONPatch"}, "webhook returned response.patchType but not response.patch"),
        ("mutating", {"patch": "W10=", "patchType": "Merge"}, 'unsupported patch type "Merge"'),
        ("mutating", {"patch": "no base64!", "patchType": "JSONPatch"}, "received invalid webhook response: "),
        ("mutating", {"allowed": "maybe"}, "received invalid webhook response: "),
    ],
)
async def test_an_answer_that_does_not_count(
    server: Server, hooks: Hooks, kind: str, answer: dict[str, Any], text: str
) -> None:
    hooks.answers["/v"] = lambda _: answer
    assert text in await said(server, hooks.webhook("/v", "pods/resize"), kind)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"hello", "received invalid webhook response: "),
        (b"{}", "received invalid webhook response: webhook response was absent"),
        (b"[" * 5000, "received invalid webhook response: "),
    ],
)
async def test_an_answer_that_is_none(server: Server, hooks: Hooks, body: bytes, text: str) -> None:
    hooks.answers["/v"] = lambda _: Response(200, {}, body)
    assert (await said(server, hooks.webhook("/v", "pods/resize"))).startswith(text)


async def test_a_webhook_that_takes_too_long(tmp_path: Path, hooks: Hooks) -> None:
    clock, called, never = FakeClock(), asyncio.Event(), asyncio.Event()

    async def hang() -> Response:
        called.set()
        await never.wait()
        return Response()

    hooks.answers["/v"] = lambda _: hang()
    async with running_server(tmp_path, clock=clock) as server:
        await stored(server)
        await register(server, "validating", hooks.webhook("/v", "pods/resize", timeoutSeconds=3))
        asking_ = asyncio.ensure_future(resize(server, asking(c="1500m")))
        await called.wait()
        await clock.advance(2.9)
        assert not asking_.done()
        await clock.advance(0.1)
        code, body = await asking_
    assert code == 500
    assert body["message"].endswith(f'{hooks.port}/v?timeout=3s": context deadline exceeded')
    never.set()


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
async def test_a_patch_that_does_not_fit_fails_whatever_the_policy(server: Server, hooks: Hooks, policy: str) -> None:
    await stored(server)
    await register(server, "mutating", hooks.webhook("/m", "pods/resize", failurePolicy=policy))
    for wrong in (setting("/spec/nowhere/x", 1), setting("/spec", "text")):
        hooks.answers["/m"] = lambda _, wrong=wrong: wrong  # type: ignore[misc]  # bound in the loop
        code, body = await resize(server, asking(c="1500m"))
        assert (code, body["reason"]) == (500, "InternalError")


async def test_calls_are_counted_by_their_outcome(server: Server, hooks: Hooks) -> None:
    await stored(server)
    await register(server, "mutating", hooks.webhook("/m", "pods/resize"))
    await register(server, "validating", hooks.webhook("/v", "pods/resize", failurePolicy="Ignore"))
    answers: list[dict[str, Any] | Response] = [{}, denied(code=403), Response(500)]
    hooks.answers["/v"] = lambda _: answers.pop(0)
    assert [(await resize(server, asking(c=cpu)))[0] for cpu in ("1100m", "1200m", "1300m")] == [200, 403, 200]
    text = (await (await server.ask("GET", "/metrics")).read()).decode()
    labels = '{{code="{}",name="{}",operation="UPDATE",rejected="{}",type="{}"}} {}'
    series = f"apiserver_admission_webhook_request_total{labels}"
    for values in (
        (200, "m.example.com", "false", "admit", "3.0"),
        (200, "v.example.com", "false", "validating", "1.0"),
        (403, "v.example.com", "true", "validating", "1.0"),
        (500, "v.example.com", "false", "validating", "1.0"),
    ):
        assert series.format(*values) in text
    assert 'apiserver_admission_webhook_admission_duration_seconds_count{name="m.example.com"' in text
