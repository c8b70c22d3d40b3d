"""Sessions on a real containerd, which keeps 1,000 that nobody has come for, a minute each."""

import asyncio
from pathlib import Path

import pytest

from podfit.net.wire import Identity, Request, Response
from support.real_node import container, real_node
from support.websocket import HANDSHAKE, Pipe

pytestmark = [pytest.mark.node, pytest.mark.xdist_group("node")]
MANY = 1300
SPDY = {"upgrade": "SPDY/3.1", "connection": "Upgrade", "x-stream-protocol-version": "v4.channel.k8s.io"}
PATH = "/exec/default/web/c1"
QUERY = {"command": ("echo", "hi"), "output": ("1",)}


async def test_refused_sessions_cost_the_runtime_nothing(tmp_path: Path) -> None:
    """One tenant asks 1,300 times by a protocol that is not spoken; another one's exec works."""
    async with real_node(tmp_path) as node:
        await node.runs("web", container("c1"))
        bad, good = (Identity(name, ("system:authenticated",)) for name in ("mallory", "alice"))

        async def ask(who: Identity, headers: dict[str, str]) -> Response:
            return await node.kubelet.handler(Request("GET", PATH, QUERY, headers, identity=who))

        answers = [await ask(bad, SPDY) for _ in range(MANY)]
        assert {answer.status for answer in answers} == {400}
        answer = await ask(good, {**HANDSHAKE, "sec-websocket-protocol": "v5.channel.k8s.io"})
        assert answer.upgrade is not None
        pipe = Pipe()
        await asyncio.wait_for(answer.upgrade(pipe), 20)
        assert (2, b"\x01hi\n") in pipe.frames
        await node.delete("web")
