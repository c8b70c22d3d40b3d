"""Flow control: a client that floods the server waits for itself, and the kubelet does not."""

import asyncio
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from podfit.api.core.v1.config.types import ConfigMap
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.api.meta.v1.types import ObjectMeta
from podfit.api.rbac.v1.types import ClusterRole, ClusterRoleBinding
from podfit.apiserver.http.flow_control import LENT_SECONDS, FlowControl
from podfit.apiserver.http.priority_levels import CATCH_ALL, GLOBAL_DEFAULT, LONGEST_WAIT
from podfit.client.kubeconfig import Access
from podfit.client.rest import Client
from podfit.core.errors import ApiError
from podfit.net.authority import Authority
from podfit.net.http_server import HttpsServer
from podfit.net.system import SystemClock
from podfit.net.tls import server_context
from podfit.net.wire import LARGE, Identity, Request, Response
from support.clock import FakeClock, at_rest
from support.server import Server, running_server

JANE, JOHN = (Identity(name, ("system:authenticated",)) for name in ("jane", "john"))
FLOOD = Path(__file__).parent.parent / "support" / "flood.py"
CONNECTIONS, PATCHES = 200, 25
TIMES = 25.0  # as much may be done until a patch is answered in the flood; 3 to 6 are; without seats it times out


def asking(who: Identity = JANE) -> tuple[Identity, None, Request]:
    return who, None, Request("GET", "/version")


class Crowd:
    """Requests that stay until they are told to go."""

    def __init__(self, flow_control: FlowControl) -> None:
        self._flow_control = flow_control
        self.let_in: list[str] = []
        self._leave = asyncio.Event()

    def come(self, who: Identity = JANE, name: str = "") -> "asyncio.Task[None]":
        return asyncio.ensure_future(self._one(who, name or who.user))

    async def _one(self, who: Identity, name: str) -> None:
        async with self._flow_control.taken(*asking(who)):
            self.let_in.append(name)
            await self._leave.wait()

    def go(self) -> None:
        self._leave.set()


async def test_a_full_level_lets_others_wait_and_then_refuses() -> None:
    flow_control = FlowControl(FakeClock())
    crowd = Crowd(flow_control)
    tasks = [crowd.come() for _ in range(GLOBAL_DEFAULT.seats)]
    await at_rest()
    tasks += [crowd.come() for _ in range(GLOBAL_DEFAULT.waiting)]
    await at_rest()
    assert len(crowd.let_in) == GLOBAL_DEFAULT.seats
    with pytest.raises(ApiError) as refused:
        await crowd.come()
    assert (refused.value.code, refused.value.reason) == (429, "TooManyRequests")
    assert refused.value.details["retryAfterSeconds"] == 1
    found = {name: rest for name, *rest in flow_control.counts()}
    assert found["global-default"] == [GLOBAL_DEFAULT.seats, GLOBAL_DEFAULT.waiting, 1]
    crowd.go()
    await asyncio.gather(*tasks)
    assert {name: rest[:2] for name, *rest in flow_control.counts()}["global-default"] == [0, 0]


async def test_flows_take_turns() -> None:
    flow_control = FlowControl(FakeClock())
    crowd = Crowd(flow_control)
    tasks = [crowd.come(JANE) for _ in range(40)]
    await asyncio.sleep(0)
    tasks += [crowd.come(JOHN) for _ in range(3)]
    await at_rest()
    assert len(crowd.let_in) == 43
    assert max(index for index, name in enumerate(crowd.let_in) if name == "john") < 15
    crowd.go()
    await asyncio.gather(*tasks)


async def test_few_start_in_a_turn_of_the_loop() -> None:
    flow_control = FlowControl(FakeClock())
    crowd = Crowd(flow_control)
    tasks = [crowd.come() for _ in range(20)]
    await asyncio.sleep(0)
    before = len(crowd.let_in)
    await asyncio.sleep(0)
    assert before == GLOBAL_DEFAULT.starts
    assert len(crowd.let_in) <= 2 * GLOBAL_DEFAULT.starts
    await at_rest()
    assert len(crowd.let_in) == 20
    crowd.go()
    await asyncio.gather(*tasks)


async def test_nobody_waits_for_ever_and_who_leaves_leaves_no_trace() -> None:
    clock = FakeClock()
    flow_control = FlowControl(clock)
    crowd = Crowd(flow_control)
    anonymous = Identity("system:anonymous", ("system:unauthenticated",))
    sitting = [crowd.come(anonymous) for _ in range(CATCH_ALL.seats)]
    await at_rest()
    gone, late = crowd.come(anonymous), crowd.come(anonymous)
    await at_rest()
    gone.cancel()
    await clock.advance(LONGEST_WAIT + 1)
    with pytest.raises(ApiError, match="waited too long"):
        await late
    with pytest.raises(asyncio.CancelledError):
        await gone
    crowd.go()
    await asyncio.gather(*sitting)
    assert {name: rest[:2] for name, *rest in flow_control.counts()}["catch-all"] == [0, 0]


class Silent:
    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        raise StopAsyncIteration


async def test_streams_are_counted_until_they_are_closed() -> None:
    flow_control = FlowControl(FakeClock())
    seat = flow_control.taken(Identity("jane"), None, Request("GET", "/"))
    opened = [flow_control.streaming(seat, JANE, Response(body=Silent())) for _ in range(CATCH_ALL.watches)]
    with pytest.raises(ApiError, match="watches open"):
        flow_control.check_streams(CATCH_ALL, JANE)
    flow_control.check_streams(CATCH_ALL, JOHN)
    for _ in range(2):
        await opened[0].body.aclose()  # type: ignore[union-attr]  # every body that is streamed has it
    flow_control.check_streams(CATCH_ALL, JANE)


class Caller:
    """A connection whose client has taken nothing for so many seconds."""

    def __init__(self, quiet: float) -> None:
        self.quiet = quiet
        self.sent: Callable[[], None] = lambda: None

    def belongs_to(self, user: str) -> None:
        """Nothing is counted here."""

    def keep_until_sent(self, release: Callable[[], None]) -> None:
        self.sent = release


async def answered(flow_control: FlowControl, who: Identity, caller: Caller, size: int = LARGE + 1) -> None:
    async with flow_control.taken(who, None, Request("GET", "/", caller=caller)) as seat:
        flow_control.streaming(seat, who, Response(body=bytes(size)))


async def test_an_answer_keeps_its_seat_until_it_is_sent() -> None:
    clock = FakeClock()
    flow_control = FlowControl(clock)
    callers = [Caller(quiet=0.0) for _ in range(GLOBAL_DEFAULT.seats)]
    await asyncio.gather(*(answered(flow_control, JANE, caller) for caller in callers))
    other = asyncio.create_task(answered(flow_control, JOHN, Caller(quiet=0.0)))
    await at_rest()
    assert not other.done()
    callers[0].sent()
    await other
    for caller in callers[1:]:
        caller.sent()
    for _ in range(2 * GLOBAL_DEFAULT.seats):  # small ones are with the kernel when they are written
        await answered(flow_control, JANE, Caller(quiet=0.0), LARGE)
    callers = [Caller(quiet=0.0) for _ in range(GLOBAL_DEFAULT.seats - 1)]
    await asyncio.gather(*(answered(flow_control, JANE, caller) for caller in callers))
    assert {name: rest[:2] for name, *rest in flow_control.counts()}["global-default"] == [GLOBAL_DEFAULT.seats, 0]


async def test_who_does_not_read_lends_its_seat_to_those_who_wait() -> None:
    clock = FakeClock()
    flow_control = FlowControl(clock)
    callers = [Caller(quiet=0.0) for _ in range(GLOBAL_DEFAULT.seats)]
    await asyncio.gather(*(answered(flow_control, JANE, caller) for caller in callers))
    other = asyncio.create_task(answered(flow_control, JOHN, Caller(quiet=0.0)))
    await at_rest()
    assert not other.done()
    for caller in callers:
        caller.quiet = LENT_SECONDS
    await clock.advance(LENT_SECONDS)
    await other
    for caller in callers:
        caller.sent()
    assert {name: rest[:2] for name, *rest in flow_control.counts()}["global-default"] == [1, 0]


# ---------------------------------------------------------------------- the flood


@asynccontextmanager
async def served(server: Server, directory: Path) -> AsyncIterator[tuple[int, Authority]]:
    authority = Authority.load(directory / "pki", clock=SystemClock())
    https = HttpsServer(
        server.api.handler,
        server_context(authority.server("server", hosts=("127.0.0.1",))),
        clients=authority.certificate,
    )
    port = await https.listen("127.0.0.1", 0)
    try:
        yield port, authority
    finally:
        await https.close(deadline=1)


def client(port: int, authority: Authority, user: str, *groups: str) -> Client:
    pair = authority.client(user.rpartition(":")[2], user=user, groups=groups)
    access = Access(
        server=f"https://127.0.0.1:{port}",
        authorities=authority.certificate,
        certificate=pair.certificate,
        key=pair.key,
    )
    return access.client()


async def patches(kubelet: Client) -> float:
    """What this process, which is the server's, does in seconds of CPU from a status patch's question to its answer, as
    a median: what stood in line before it counts, and not what else the machine does.
    """
    taken = []
    for number in range(PATCHES):
        status: dict[str, Any] = {"status": {"message": f"{number} {time.perf_counter()}"}}
        began = time.process_time()
        await kubelet.patch(Pod, "p", "default", status, subresource="status")
        taken.append(time.process_time() - began)
    return statistics.median(taken)


async def prepared(server: Server) -> None:
    await server.client.create(Node(metadata=ObjectMeta(name="n1")))
    pod = {
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]},
    }
    await server.client.create(convert(pod, Pod))
    for number in range(20):
        await server.client.create(
            ConfigMap(metadata=ObjectMeta(name=f"m{number}", namespace="default"), data={"k": "x" * 500})
        )
    rules = {"rules": [{"verbs": ["list"], "apiGroups": [""], "resources": ["configmaps"]}]}
    await server.client.create(convert({"metadata": {"name": "reader"}} | rules, ClusterRole))
    await server.client.create(
        convert(
            {
                "metadata": {"name": "reader"},
                "subjects": [{"kind": "User", "name": "jane"}],
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
            },
            ClusterRoleBinding,
        )
    )


@pytest.mark.timeout(60)
async def test_a_flood_does_not_starve_the_kubelet(tmp_path: Path) -> None:
    """200 connections of one user, each with a request under way all the time, against a kubelet's status patches."""
    async with running_server(tmp_path, clock=SystemClock()) as server, served(server, tmp_path) as (port, authority):
        await prepared(server)
        kubelet = client(port, authority, "system:node:n1", "system:nodes")
        await patches(kubelet)
        quiet = await patches(kubelet)
        jane = authority.client("jane", user="jane", groups=())
        paths = [tmp_path / name for name in ("ca", "jane.crt", "jane.key")]
        for path, text in zip(paths, (authority.certificate, jane.certificate, jane.key), strict=True):
            path.write_bytes(text)
        flood = await asyncio.create_subprocess_exec(
            sys.executable,
            str(FLOOD),
            str(port),
            *map(str, paths),
            str(CONNECTIONS),
            "/api/v1/namespaces/default/configmaps",
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            assert flood.stdout is not None
            assert await flood.stdout.readline() == b"flooding\n"
            flooded = await patches(kubelet)
        finally:
            flood.kill()
            await flood.wait()
        await kubelet.close()
        assert flooded < TIMES * quiet, f"{1000 * flooded:.1f} ms in the flood, {1000 * quiet:.1f} ms without"
