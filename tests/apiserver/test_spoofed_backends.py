"""Webhooks that answer without an end, with a compressed desert, or lead elsewhere: bounded, and one clear refusal."""

import gzip
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from podfit.net.wire import Request, Response
from support.server import running_server
from support.webhooks import Hooks, register, serving_hooks

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
BODY = b'{"metadata":{"name":"a"}}'
MIB = 2**20


async def endless() -> AsyncIterator[bytes]:
    while True:
        yield bytes(64 * 1024)


def compressed(size: int) -> bytes:
    return gzip.compress(bytes(size), 9)


ANSWERS = {
    "without an end": lambda: Response(200, {"content-type": "application/json"}, endless()),
    "100 MB": lambda: Response(200, {"content-type": "application/json"}, b" " * (100 * MIB)),
    "a gzip bomb": lambda: Response(200, {"content-encoding": "gzip"}, compressed(200 * MIB)),
    "a redirect": lambda: Response(307, {"location": "/elsewhere"}, b""),
    "another status": lambda: Response(418, {"set-cookie": "a=b"}, b"x"),
    "nonsense": lambda: Response(200, {}, b"\xff\x00[" * 1000),
    "many headers": lambda: Response(200, {f"x-{number}": "y" * 1000 for number in range(5000)}, b"{}"),
}


@pytest.fixture
def hooks_folder(tmp_path: Path) -> Path:
    return tmp_path / "hooks"


@pytest.mark.parametrize("what", ANSWERS)
async def test_what_a_webhook_may_answer(what: str, tmp_path: Path, hooks_folder: Path) -> None:
    async with running_server(tmp_path) as server, serving_hooks(hooks_folder) as hooks:
        given = ANSWERS[what]()
        hooks.answers["/a"] = lambda _: given
        await register(server, "validating", hooks.webhook("/a", "configmaps"))
        answer = await server.ask("POST", CONFIGMAPS, BODY)
        said = await answer.read()
        assert answer.status == 500, said
        assert b"failed calling webhook" in said
        assert (b"the answer is larger than 3145728 bytes" in said) is (what in ("without an end", "100 MB"))
        assert [path for path, _ in hooks.asked] == ["/a"]


async def test_a_proof_of_identity_that_a_client_sends_is_not_passed_to_a_webhook(
    tmp_path: Path, hooks_folder: Path
) -> None:
    seen: list[Request] = []
    async with running_server(tmp_path) as server, serving_hooks(hooks_folder) as hooks:
        await register(server, "validating", hooks.webhook("/a", "configmaps"))
        original = Hooks.handler

        async def handler(self: Hooks, request: Request) -> Response:
            seen.append(request)
            return await original(self, request)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Hooks, "handler", handler)
            assert (await server.ask("POST", CONFIGMAPS, BODY, x_remote_user="root", cookie="a=b")).status == 201
        assert all(not {"x-remote-user", "cookie", "authorization"} & set(request.headers) for request in seen)
