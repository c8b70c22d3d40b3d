"""A runtime that takes connections and never answers: a call ends by its deadline and says which one it was."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import grpc.aio
import pytest

from podfit.decide.lifecycle.facts import LinuxResources
from podfit.kubelet.runtime.cri import channel, client
from podfit.kubelet.runtime.cri.client import CRIRuntime
from podfit.kubelet.runtime.errors import Unavailable


class Silence(grpc.GenericRpcHandler):
    def service(self, details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[bytes, bytes]":
        async def wait(request: bytes, context: object) -> bytes:
            await asyncio.Event().wait()
            return b""

        return grpc.unary_unary_rpc_method_handler(wait)


@pytest.fixture
async def runtime() -> AsyncIterator[CRIRuntime]:
    with tempfile.TemporaryDirectory(prefix="cri") as folder:  # a Unix path has 107 bytes at most
        socket = Path(folder, "s")
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((Silence(),))
        server.add_insecure_port(f"unix://{socket}")
        await server.start()
        made = CRIRuntime(socket)
        yield made
        await made.close()
        await server.stop(0)


@pytest.mark.row("R-174")
async def test_each_kind_of_call_has_its_patience(runtime: CRIRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "QUICK_SECONDS", 0.1)
    monkeypatch.setattr(client, "UPDATE_SECONDS", 0.2)
    monkeypatch.setattr(client, "WORK_SECONDS", 0.3)
    for name, seconds, call in (
        ("ListContainers", "0.1", runtime.list_containers()),
        ("UpdateContainerResources", "0.2", runtime.update_container_resources("c", LinuxResources(cpu_shares=2))),
        ("StartContainer", "0.3", runtime.start_container("c")),
        ("RemoveContainer", "0.3", runtime.remove_container("c")),
    ):
        with pytest.raises(Unavailable, match=rf"^{name}: the runtime did not answer within {seconds} s$"):
            await call


def test_a_resize_is_tried_again_before_a_minute_is_over() -> None:
    """A killed containerd once left an update without an answer; at two minutes a call the pod hung as long."""
    assert channel.QUICK_SECONDS + client.UPDATE_SECONDS < 60 < client.WORK_SECONDS
