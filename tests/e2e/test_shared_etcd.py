"""Three API servers on one etcd while any one of them is killed: nothing lost, nothing twice, nothing stale.

Writers go from server to server; watchers follow servers too and go on elsewhere when theirs dies. What happened in
truth is read from etcd itself at the end.
"""

import asyncio
import json
import random
import re
import ssl
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from msgspec.structs import replace

from podfit.api.core.v1.config.types import ConfigMap, ServiceAccount
from podfit.api.core.v1.services.types import Endpoints
from podfit.api.discovery.v1.types import EndpointSlice
from podfit.api.meta.v1.types import ObjectMeta
from podfit.client.kubeconfig import Access, load
from podfit.client.rest import Client
from podfit.core.errors import ApiError
from podfit.process.control.stores import etcd_store
from podfit.store.etcd.options import EtcdOptions
from podfit.store.protocol import Change
from support.apiserver_processes import ApiProcess
from support.etcd import etcd_cluster
from support.eventually import PATIENCE, eventually_async

pytestmark = pytest.mark.etcd

PREFIX = "/registry/configmaps/default/"
Figure = Callable[[str, object], None]


@dataclass(frozen=True)
class Seen:
    deleted: bool
    name: str
    version: int
    value: str
    uid: str


@dataclass
class Servers:
    """Those that run, with a client for each. A client stays open as long as anybody may wait for an answer of it."""

    all: list[ApiProcess]
    clients: dict[str, Client] = field(default_factory=dict)
    former: list[Client] = field(default_factory=list)

    def alive(self, but: str = "") -> list[str]:
        return [name for name in self.clients if name != but]

    async def kill(self, server: ApiProcess) -> None:
        self.former.append(self.clients.pop(server.name))
        await asyncio.to_thread(server.kill)

    async def close(self) -> None:
        for client in (*self.former, *self.clients.values()):
            await client.close()

    async def start(self, *servers: ApiProcess) -> None:
        for server in servers:
            server.start()
        for server in servers:
            await asyncio.to_thread(server.await_ready)
            self.clients[server.name] = server.client()


class Writer:
    """Creates, changes and deletes what nobody else does; after each acknowledged write reads it through another
    server."""

    def __init__(self, servers: Servers, number: int) -> None:
        self.servers = servers
        self.names = tuple(f"name-{number}-{letter}" for letter in "abcde")
        self.acknowledged: list[Seen] = []
        self.attempted: set[str] = set()  # values
        self._random = random.Random(number)
        self._values = (f"{number}-{value}" for value in count(1))

    async def run(self) -> None:
        while True:
            with suppress(ConnectionError, TimeoutError):
                await self._step()

    async def _step(self) -> None:
        name, value = self._random.choice(self.names), next(self._values)
        through = self._random.choice(self.servers.alive())
        client = self.servers.clients[through]
        self.attempted.add(value)
        wanted = ConfigMap(metadata=ObjectMeta(name=name, namespace="default"), data={"value": value})
        try:
            if self._random.random() < 0.2:
                old = await client.get(ConfigMap, name, "default")
                await client.delete(ConfigMap, name, "default", uid=old.metadata.uid)
                done = None
            elif self._random.random() < 0.5:
                done = await client.create(wanted)
            else:
                done = await client.patch(ConfigMap, name, "default", {"data": {"value": value}})
        except ApiError as error:
            if error.code not in (404, 409, 503):
                raise
            return
        await self._read_back(name, done, but=through)

    async def _read_back(self, name: str, done: ConfigMap | None, *, but: str) -> None:
        if done is not None:
            self.acknowledged.append(_seen(done))
        other = self.servers.clients[self._random.choice(self.servers.alive(but))]
        try:
            found = await other.get(ConfigMap, name, "default")
        except ApiError as error:
            if error.code != 404 or done is not None:
                raise
            return
        assert done is not None, f"{name} was deleted"
        assert _seen(found) == _seen(done)
        page = await other.list(ConfigMap, "default")
        assert _seen(done) in [_seen(config_map) for config_map in page.items]


class Watcher:
    """Goes on from the last version that it saw, wherever it can."""

    def __init__(self, servers: Servers, seed: int, since: str) -> None:
        self.servers = servers
        self.seen: list[Seen] = []
        self.joined = 0
        self._random = random.Random(seed)
        self._version = since

    async def run(self) -> None:
        while True:
            with suppress(ConnectionError, TimeoutError):
                client = self.servers.clients[self._random.choice(self.servers.alive())]
                self.joined += 1
                async for event in client.watch(ConfigMap, "default", resource_version=self._version, timeout=20):
                    self._version = event.object.metadata.resource_version
                    if event.type != "BOOKMARK":
                        self.seen.append(_seen(event.object, deleted=event.type == "DELETED"))


def _seen(obj: ConfigMap, *, deleted: bool = False) -> Seen:
    meta = obj.metadata
    return Seen(deleted, meta.name, int(meta.resource_version), obj.data.get("value", ""), meta.uid)


async def _truth(url: str, since: int) -> list[Seen]:
    """What etcd itself says that happened."""
    store = await etcd_store(EtcdOptions(servers=(url,)))
    until, watch = store.revision, store.watch(PREFIX, after=since)
    changes: list[Change] = []

    async def read() -> None:
        async for batch in watch:
            changes.extend(batch)

    reading = asyncio.create_task(read())  # it waits for more when all is read

    async def revision() -> int:
        return watch.revision

    await eventually_async(revision, lambda revision: revision >= until, within=20, what=f"revision {until} is read")
    reading.cancel()
    await store.close()
    return [_happened(change) for change in changes]


def _happened(change: Change) -> Seen:
    text = change.record.value.decode()
    value, uid = (re.search(rf'"{key}":"([^"]*)"', text) for key in ("value", "uid"))
    assert value is not None
    assert uid is not None
    name = change.record.key.rpartition("/")[2]
    return Seen(change.deleted, name, change.record.mod_revision, value[1], uid[1])


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[tuple[str, list[ApiProcess]]]:
    with etcd_cluster() as (member,):
        options = ("--etcd-servers", member.client)
        servers = [ApiProcess(tmp_path / "data", name, options) for name in "abc"]
        try:
            yield member.client, servers
        finally:
            for server in servers:
                server.kill()


async def _storm(
    url: str, processes: list[ApiProcess], *, kills: int, pause: float, writes: int = 0, writing: int = 1
) -> tuple[list[Seen], list[Watcher]]:
    """So many kills, and more until there are so many acknowledged writes of as many clients as are `writing`."""
    servers = Servers(processes)
    await servers.start(*processes)  # all at once: they make one authority
    since = (await servers.clients["a"].list(ConfigMap, "default")).resource_version
    writers = [Writer(servers, number) for number in range(writing)]
    watchers = [Watcher(servers, seed, since) for seed in range(4)]
    work = [*(writer.run() for writer in writers), *(watcher.run() for watcher in watchers)]
    tasks = [asyncio.create_task(running) for running in work]
    for number in count():
        if number >= kills and sum(len(writer.acknowledged) for writer in writers) >= writes:
            break
        await asyncio.sleep(pause)
        victim = processes[number % len(processes)]
        await servers.kill(victim)
        await asyncio.sleep(pause)
        await servers.start(victim)
    await asyncio.sleep(pause)
    for task in tasks[:writing]:
        task.cancel()
    await asyncio.wait(tasks[:writing])
    truth = await _truth(url, int(since))

    async def seen() -> list[int]:
        assert not any(task.done() for task in tasks[writing:])
        return [len(watcher.seen) for watcher in watchers]

    what = f"all see {len(truth)} changes"
    await eventually_async(seen, lambda counts: min(counts) >= len(truth), within=20, what=what)
    for task in tasks[writing:]:
        task.cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [outcome for outcome in outcomes if not isinstance(outcome, asyncio.CancelledError)] == []
    await servers.close()
    for watcher in watchers:
        assert watcher.seen == truth
    acknowledged = [write for writer in writers for write in writer.acknowledged]
    happened = Counter(truth)
    assert [write for write in acknowledged if happened[write] != 1] == []
    assert {write.value for write in truth} <= set().union(*(writer.attempted for writer in writers))
    assert len({write.version for write in truth}) == len(truth)
    return acknowledged, watchers


async def test_any_one_of_three_may_be_killed(shared: tuple[str, list[ApiProcess]]) -> None:
    acknowledged, watchers = await _storm(*shared, kills=2, pause=0.3)
    assert len(acknowledged) > 10
    assert sum(watcher.joined for watcher in watchers) > len(watchers), "somebody had to go on elsewhere"


@pytest.mark.campaign
@pytest.mark.timeout(900)
async def test_any_one_of_three_is_killed_again_and_again(shared: tuple[str, list[ApiProcess]], figure: Figure) -> None:
    """One of three API servers on one etcd is killed and started, again and again, while four clients write and four
    watch, until 10,000 writes are acknowledged. None is lost, and the watches are complete."""
    acknowledged, watchers = await _storm(*shared, kills=15, pause=2, writes=10_000, writing=4)
    figure("acknowledged writes", len(acknowledged))
    figure("watches resumed", sum(watcher.joined - 1 for watcher in watchers))


async def test_servers_that_share_a_directory_trust_the_same(shared: tuple[str, list[ApiProcess]]) -> None:
    """An administrator's certificate and a service account's token that one gave are good for another."""
    _, (one, other, _) = shared
    servers = Servers([one, other])
    await servers.start(one, other)
    by_one, by_other = load([one.kubeconfig]), load([other.kubeconfig])
    swapped = replace(by_one, server=by_other.server).client()
    await swapped.create(ServiceAccount(metadata=ObjectMeta(name="robot", namespace="default")))
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    path = "/api/v1/namespaces/default/serviceaccounts/robot/token"
    answer = json.loads(await swapped.request("POST", path, json.dumps(asked).encode()))
    assert await asyncio.to_thread(_bearer, by_one, answer["status"]["token"]) == 403
    assert await asyncio.to_thread(_bearer, by_one, "invalid") == 401
    await swapped.close()
    await servers.close()


async def _named(client: Client) -> set[str]:
    """Ports of the servers that the service `kubernetes` leads to."""
    found = await client.get(Endpoints, "kubernetes", "default")
    slices = await client.list(EndpointSlice, "default")
    ports = {
        (endpoint_slice.ports or ())[0].port
        for endpoint_slice in slices.items
        if endpoint_slice.metadata.name.startswith("kubernetes")
    }
    assert ports == {subset.ports[0].port for subset in found.subsets}
    return {f"{address.ip}:{subset.ports[0].port}" for subset in found.subsets for address in subset.addresses}


async def _until_named(client: Client, *ports: int) -> None:
    wanted = {f"127.0.0.1:{port}" for port in ports}
    await eventually_async(partial(_named, client), wanted.__eq__, within=60, what=f"{wanted} are named", every=0.2)


async def test_who_serves_is_named_until_it_stops(shared: tuple[str, list[ApiProcess]]) -> None:
    _, (one, other, _) = shared
    servers = Servers([one, other])
    await servers.start(one, other)
    client = servers.clients["a"]
    await _until_named(client, one.port, other.port)
    assert await asyncio.to_thread(other.stop) == 0
    await _until_named(client, one.port)
    await servers.close()


@pytest.mark.campaign
async def test_who_is_killed_is_named_no_more(shared: tuple[str, list[ApiProcess]], figure: Figure) -> None:
    """One of two API servers on one etcd is killed: its address leaves the service `kubernetes`."""
    _, (one, other, _) = shared
    servers = Servers([one, other])
    await servers.start(one, other)
    client = servers.clients["a"]
    await _until_named(client, one.port, other.port)
    await servers.kill(other)
    began = time.monotonic()
    await _until_named(client, one.port)
    figure("seconds until its address left", round(time.monotonic() - began, 1))
    await servers.close()


def _bearer(access: Access, token: str) -> int:
    """What a server says to a token that may read nothing."""
    trust = ssl.create_default_context(cadata=(access.authorities or b"").decode())
    asked = urllib.request.Request(f"{access.server}/api/v1/secrets", headers={"authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(asked, context=trust, timeout=10 * PATIENCE) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code
