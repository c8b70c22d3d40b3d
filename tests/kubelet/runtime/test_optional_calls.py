"""Calls that not every runtime has, over a socket: each is sent once, and never again where it is lacking."""

import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import grpc.aio
import msgspec
import pytest
from google.protobuf.message import Message

from podfit.decide.lifecycle.facts import LinuxResources
from podfit.kubelet.runtime.cri import runtime_v1_pb2 as pb
from podfit.kubelet.runtime.cri.client import CRIRuntime
from podfit.kubelet.runtime.errors import Unavailable, Unimplemented
from podfit.kubelet.runtime.types import CgroupDriver, EventKind

DRIVER, EVENTS, SANDBOX = "RuntimeConfig", "GetContainerEvents", "UpdatePodSandboxResources"
STATUS = "Status"
SYSTEMD = pb.RuntimeConfigResponse(linux=pb.LinuxRuntimeConfiguration(cgroup_driver=pb.SYSTEMD))
CGROUPFS = pb.RuntimeConfigResponse(linux=pb.LinuxRuntimeConfiguration(cgroup_driver=pb.CGROUPFS))
STOPPED = pb.ContainerEventResponse(container_id="c", container_event_type=pb.CONTAINER_STOPPED_EVENT)
DONE = pb.UpdatePodSandboxResourcesResponse()
Refusal = tuple[grpc.StatusCode, str]


class Flavour(msgspec.Struct, frozen=True, kw_only=True):
    """What a runtime answers; None where it has no such call. `events` are told, and then the stream ends."""

    driver: Message | None = None
    events: tuple[Message, ...] | None = None
    sandbox: Message | Refusal | None = None
    status: Message | None = None


CONTAINERD_1_6 = Flavour()
CONTAINERD_1_7 = Flavour(events=(STOPPED,))
CONTAINERD_2_0 = Flavour(driver=SYSTEMD, events=(STOPPED,))
CONTAINERD_2_2 = Flavour(driver=CGROUPFS, events=(STOPPED,), sandbox=DONE)
# It knew the call before it did anything; its stream of events is in order and empty where they are not switched on.
CRI_O = Flavour(driver=SYSTEMD, events=(), sandbox=(grpc.StatusCode.UNKNOWN, "not implemented"))


class FakeRuntime(grpc.GenericRpcHandler):
    """Counts what it is asked."""

    def __init__(self, flavour: Flavour) -> None:
        self.flavour, self.asked = flavour, Counter[str]()

    def service(self, details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[bytes, bytes] | None":
        name = details.method.rpartition("/")[2]
        self.asked[name] += 1
        events, answer = (
            self.flavour.events,
            {DRIVER: self.flavour.driver, SANDBOX: self.flavour.sandbox, STATUS: self.flavour.status}.get(name),
        )

        async def one(request: bytes, context: "grpc.aio.ServicerContext[bytes, bytes]") -> bytes:
            if isinstance(answer, tuple):
                await context.abort(*answer)
            assert isinstance(answer, Message)
            return answer.SerializeToString()

        async def several(request: bytes, context: object) -> AsyncIterator[bytes]:
            for message in events or ():
                yield message.SerializeToString()

        if name == EVENTS:
            return grpc.unary_stream_rpc_method_handler(several) if events is not None else None
        return grpc.unary_unary_rpc_method_handler(one) if answer is not None else None


@asynccontextmanager
async def runtime_of(flavour: Flavour) -> AsyncIterator[tuple[CRIRuntime, FakeRuntime]]:
    with tempfile.TemporaryDirectory(prefix="cri") as folder:  # a Unix path has 107 bytes at most
        socket, fake = Path(folder, "s"), FakeRuntime(flavour)
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((fake,))
        server.add_insecure_port(f"unix://{socket}")
        await server.start()
        runtime = CRIRuntime(socket)
        try:
            yield runtime, fake
        finally:
            await runtime.close()
            await server.stop(0)


async def updates(runtime: CRIRuntime) -> bool:
    """Whether it takes a sandbox's resources."""
    try:
        await runtime.update_sandbox_resources("s", resources=LinuxResources(cpu_shares=2))
    except Unimplemented:
        return False
    return True


async def told(runtime: CRIRuntime) -> list[EventKind] | None:
    events = await runtime.events()
    return None if events is None else [event.kind async for event in events]


@pytest.mark.parametrize(
    ("flavour", "driver", "events", "updated"),
    [
        pytest.param(CONTAINERD_1_6, None, None, False, id="containerd 1.6"),
        pytest.param(CONTAINERD_1_7, None, [EventKind.STOPPED], False, id="containerd 1.7"),
        pytest.param(CONTAINERD_2_0, "systemd", [EventKind.STOPPED], False, id="containerd 2.0"),
        pytest.param(CONTAINERD_2_2, "cgroupfs", [EventKind.STOPPED], True, id="containerd 2.2"),
        pytest.param(CRI_O, "systemd", [], False, id="CRI-O"),
    ],
)
async def test_what_is_lacking_is_asked_for_once(
    flavour: Flavour, driver: CgroupDriver | None, events: list[EventKind] | None, updated: bool
) -> None:
    async with runtime_of(flavour) as (runtime, fake):
        for _ in range(3):
            assert await runtime.cgroup_driver() == driver
            assert await told(runtime) == events
            assert await updates(runtime) is updated
        wanted = {DRIVER: driver is not None, EVENTS: events is not None, SANDBOX: updated}
        assert fake.asked == {name: 3 if there else 1 for name, there in wanted.items()}


@pytest.mark.parametrize(
    ("handlers", "recursive"), [({}, False), ({"": True, "runc": True}, True), ({"": False, "crun": True}, False)]
)
async def test_recursive_read_only_mounts_are_told_by_the_default_handler(
    handlers: dict[str, bool], recursive: bool
) -> None:
    told = [
        pb.RuntimeHandler(name=name, features=pb.RuntimeHandlerFeatures(recursive_read_only_mounts=able))
        for name, able in handlers.items()
    ]
    async with runtime_of(Flavour(status=pb.StatusResponse(runtime_handlers=told))) as (runtime, _):
        assert (await runtime.status()).recursive_read_only is recursive


async def test_a_runtime_that_has_just_started_is_not_there_yet() -> None:
    starting = Flavour(sandbox=(grpc.StatusCode.UNKNOWN, "server is not initialized yet"))
    async with runtime_of(starting) as (runtime, _):
        with pytest.raises(Unavailable, match="not initialized"):
            await updates(runtime)
