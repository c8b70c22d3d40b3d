import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from podfit.api.apiextensions.v1.types import CustomResourceDefinition
from podfit.api.core.v1.config.types import ConfigMap
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.client.informer import Informer
from podfit.client.resource import dynamic
from podfit.client.rest import Client
from podfit.client.transport import Local
from podfit.client.watch_events import BUSY_SECONDS
from podfit.core.backoff import Backoff
from podfit.core.loop_slices import OBJECTS
from podfit.net.system import SeededRandom
from podfit.net.wire import Identity, Request, Response
from support.clock import FakeClock
from support.faulty_server import FaultyServer, faulty_server

POD = {"containers": [{"name": "c", "image": "i"}]}
Background = Callable[[Coroutine[Any, Any, None]], object]


class Lowest(SeededRandom):
    """Delays are not shortened."""

    def below(self, bound: int) -> int:
        return 0


def informer_of(client: Client, clock: FakeClock, **options: Any) -> Informer[ConfigMap]:
    return Informer(client, ConfigMap, clock=clock, backoff=Backoff(1.0, 8.0, random=Lowest(0)), **options)


def record(informer: Informer[ConfigMap]) -> list[str]:
    """What the handlers were told, in order."""
    told: list[str] = []

    def show(obj: ConfigMap) -> str:
        return f"{obj.metadata.name}={obj.data.get('v', '')}"

    informer.add_handler(
        add=lambda obj: told.append(f"add {show(obj)}"),
        update=lambda old, new: told.append(f"update {show(old)} {show(new)}"),
        delete=lambda obj: told.append(f"delete {show(obj)}"),
    )
    return told


async def test_lists_then_follows(api: FaultyServer, client: Client, clock: FakeClock, background: Background) -> None:
    await api.put("a", data={"v": "1"})
    informer = informer_of(client, clock)
    told = record(informer)
    background(informer.run())
    assert not informer.synced.is_set()
    await clock.settle()
    assert informer.synced.is_set()
    await api.put("b", data={"v": "1"})
    await api.put("a", data={"v": "2"})
    await api.remove("b")
    await clock.settle()
    assert told == ["add a=1", "add b=1", "update a=1 a=2", "delete b=1"]
    found = informer.get("a", "default")
    assert found is not None
    assert found.data == {"v": "2"}
    assert informer.list("default") == informer.list() == [found]
    assert informer.list("other") == []
    assert clock.pending == []  # nothing polls


async def test_a_late_handler_hears_of_what_is_there(
    api: FaultyServer, client: Client, clock: FakeClock, background: Background
) -> None:
    await api.put("a")
    informer = informer_of(client, clock)
    background(informer.run())
    await clock.settle()
    assert record(informer) == ["add a="]


async def test_a_watch_that_ends_resumes_where_it_was(
    api: FaultyServer, client: Client, clock: FakeClock, background: Background
) -> None:
    await api.put("a")
    before = api.revision
    informer = informer_of(client, clock)
    told = record(informer)
    background(informer.run())
    await clock.settle()
    await api.put("b")
    await clock.settle()
    api.cut()
    await api.put("c")
    await clock.settle()
    assert told == ["add a=", "add b=", "add c="]
    first, second = (int(r.param("resourceVersion")) for r in api.requests if r.param("watch"))
    assert (first, second) == (before, before + 1)
    assert len([r for r in api.requests if not r.param("watch")]) == 1


async def test_failures_are_retried_more_and_more_slowly(
    api: FaultyServer, client: Client, clock: FakeClock, background: Background
) -> None:
    api.down = True
    informer = informer_of(client, clock)
    background(informer.run())
    for elapsed, attempts in ((0, 1), (0.9, 1), (0.1, 2), (2, 3), (4, 4), (8, 5), (8, 6), (7.9, 6), (0.1, 7)):
        await clock.advance(elapsed)
        assert len(api.requests) == attempts
    api.down = False
    await clock.advance(8)
    assert informer.synced.is_set()
    await api.put("a")
    await clock.settle()
    api.down = True
    api.cut()
    await clock.advance(1)
    assert len(clock.pending) == 1
    assert clock.pending[0] <= 2  # the delays began anew


async def test_lost_history_is_made_up_by_a_new_list(
    api: FaultyServer, client: Client, clock: FakeClock, background: Background
) -> None:
    for name in ("kept", "changed", "deleted", "reborn"):
        await api.put(name, data={"v": "1"})
    informer = informer_of(client, clock)
    told = record(informer)
    background(informer.run())
    await clock.settle()
    told.clear()
    api.down = True
    api.cut()
    await clock.settle()
    await api.put("changed", data={"v": "2"})
    await api.remove("deleted")
    await api.remove("reborn")
    await api.put("reborn", data={"v": "2"})
    await api.put("new", data={"v": "2"})
    await api.compact()
    api.down = False
    await clock.advance(2)
    assert sorted(told) == [
        "add new=2",
        "add reborn=2",
        "delete deleted=1",
        "delete reborn=1",
        "update changed=1 changed=2",
    ]
    assert told.index("delete reborn=1") < told.index("add reborn=2")


async def test_a_server_that_forgets_at_once_is_not_hammered(
    api: FaultyServer, client: Client, clock: FakeClock, background: Background
) -> None:
    await api.put("a")

    async def forgetful(request: Request) -> Response:
        answered = await api(request)
        await api.put("a", data={"v": answered.headers.get("date", "")})
        await api.compact()
        return answered

    informer = informer_of(Client(Local(forgetful, Identity("tester"))), clock)
    background(informer.run())
    await clock.advance(0.5)
    assert len(api.requests) == 2


async def test_long_lists_come_in_pages(
    api: FaultyServer, client: Client, clock: FakeClock, background: Background
) -> None:
    for number in range(1201):
        await api.put(f"c{number:04}")
    informer = informer_of(client, clock)
    background(informer.run())
    await clock.settle()
    assert len(informer.list()) == 1201
    assert [r.param("limit") for r in api.requests] == ["500", "500", "500", ""]


async def test_indexes_follow_the_objects(
    api: FaultyServer, client: Client, clock: FakeClock, background: Background
) -> None:
    informer = informer_of(client, clock, indexes={"app": lambda obj: obj.metadata.labels.values()})
    background(informer.run())
    await clock.settle()
    await api.put("a", labels={"app": "x"})
    await api.put("b", labels={"app": "x", "too": "y"})
    await clock.settle()
    assert [obj.metadata.name for obj in informer.by_index("app", "x")] == ["a", "b"]
    await api.put("a", labels={"app": "y"})
    await api.remove("b")
    await clock.settle()
    assert informer.by_index("app", "x") == []
    assert [obj.metadata.name for obj in informer.by_index("app", "y")] == ["a"]


async def test_a_handler_that_fails_does_not_stop_the_others(
    api: FaultyServer, client: Client, clock: FakeClock, background: Background, caplog: pytest.LogCaptureFixture
) -> None:
    informer = informer_of(client, clock)
    informer.add_handler(add=lambda obj: 1 / 0)  # type: ignore[arg-type]  # it raises
    told = record(informer)
    background(informer.run())
    await clock.settle()
    await api.put("a")
    await clock.settle()
    assert told == ["add a="]
    assert "handler failed resource=configmaps object=default/a" in caplog.text


async def test_objects_without_a_struct_stay_dicts(tmp_path: Path, clock: FakeClock, background: Background) -> None:
    widgets = dynamic("example.com", "v1", "widgets")
    async with faulty_server(tmp_path, widgets) as api:
        await api.server.client.create(convert(WIDGETS, CustomResourceDefinition))
        informer = Informer(Client(Local(api, Identity("tester"))), widgets, clock=clock)
        background(informer.run())
        await api.put("w", kind="Widget", apiVersion="example.com/v1", spec={"size": 3})
        await clock.settle()
        found = informer.get("w", "default")
        assert found is not None
        assert found["spec"] == {"size": 3}
        assert {r.path for r in api.requests} == {"/apis/example.com/v1/widgets"}


WIDGETS = {
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
                    }
                },
            }
        ],
    },
}
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "remove", "cut", "compact", "down", "up", "wait"]), st.sampled_from("abc")
    ),
    max_size=30,
)


@given(steps=STEPS)
@settings(max_examples=60, deadline=None)
async def test_whatever_happens_the_copy_and_the_handlers_agree_with_the_server(steps: list[tuple[str, str]]) -> None:
    logging.disable(logging.WARNING)
    try:
        with TemporaryDirectory() as directory:
            async with faulty_server(Path(directory)) as api:
                await follow(api, steps)
    finally:
        logging.disable(logging.NOTSET)


async def take(api: FaultyServer, clock: FakeClock, step: str, name: str, number: int) -> None:
    match step:
        case "put":
            await api.put(name, data={"v": str(number)})
        case "remove" if ("default", name) in api.objects:
            await api.remove(name)
        case "down" | "up":
            api.down = step == "down"
            api.cut()
        case "cut":
            api.cut()
        case "compact":
            await api.compact()
        case "wait":
            await clock.advance(3)
        case _:
            pass  # removing what is not there


async def follow(api: FaultyServer, steps: list[tuple[str, str]]) -> None:
    clock = FakeClock()
    informer = informer_of(Client(Local(api, Identity("tester"))), clock)
    mirror: dict[str, str] = {}

    def set_(obj: ConfigMap) -> None:
        mirror[obj.metadata.name] = obj.metadata.resource_version

    def added(obj: ConfigMap) -> None:
        assert obj.metadata.name not in mirror
        set_(obj)

    def deleted(obj: ConfigMap) -> None:
        del mirror[obj.metadata.name]

    informer.add_handler(add=added, update=lambda _, new: set_(new), delete=deleted)
    task = asyncio.create_task(informer.run())
    for number, (step, name) in enumerate(steps):
        await take(api, clock, step, name, number)
    api.down = False
    await clock.advance(60)
    expected = {name: obj["metadata"]["resourceVersion"] for (_, name), obj in api.objects.items()}
    assert mirror == expected
    assert {obj.metadata.name: obj.metadata.resource_version for obj in informer.list()} == expected
    assert not task.done()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_long_list_leaves_others_their_turn(
    api: FaultyServer, client: Client, clock: FakeClock, background: Background
) -> None:
    """What hears of 10,000 pods at once would hold the event loop for a second."""
    for number in range(4 * OBJECTS):
        await api.put(f"c{number}")
    informer = informer_of(client, clock)
    told = record(informer)
    heard = [0]

    async def other() -> None:
        while not informer.synced.is_set():
            heard.append(len(told))
            await asyncio.sleep(0)

    background(informer.run())
    background(other())
    await clock.settle()
    assert len(told) == 4 * OBJECTS
    assert max(later - before for before, later in pairwise(heard)) == OBJECTS


async def test_pods_are_kept_without_the_managers_of_their_fields(
    tmp_path: Path, clock: FakeClock, background: Background
) -> None:
    """They are most of what a decoded pod takes, and every component follows all pods."""
    async with faulty_server(tmp_path, Pod) as api:
        informer = Informer(Client(Local(api, Identity("tester")), user_agent="tests"), Pod, clock=clock)
        await api.put("a", labels={"app": "web"}, spec=POD)
        assert api.objects["default", "a"]["metadata"]["managedFields"]
        background(informer.run())
        await clock.settle()
        pod = informer.get("a", "default")
        assert pod is not None
        assert (pod.metadata.labels, pod.metadata.managed_fields) == ({"app": "web"}, ())


async def test_versions_of_a_pod_share_what_did_not_change(
    tmp_path: Path, clock: FakeClock, background: Background
) -> None:
    async with faulty_server(tmp_path, Pod) as api:
        await share(api, clock, background)


async def share(api: FaultyServer, clock: FakeClock, background: Background) -> None:
    client = api.server.client
    informer = Informer(Client(Local(api, Identity("tester")), user_agent="tests"), Pod, clock=clock)
    background(informer.run())
    versions = []

    async def run() -> None:
        await client.patch(Pod, "a", "default", {"status": {"phase": "Running"}}, subresource="status")

    for change in (
        partial(api.put, "a", labels={"app": "web"}, spec=POD),
        partial(client.bind, "default", "a", "n1"),
        run,
    ):
        await change()
        await clock.settle()
        pod = informer.get("a", "default")
        assert pod is not None
        versions.append(pod)
    new, bound, running = versions
    assert [(pod.status.phase, pod.spec.node_name) for pod in versions] == [
        ("Pending", ""),
        ("Pending", "n1"),
        ("Running", "n1"),
    ]
    assert running.spec is bound.spec
    assert running.metadata.labels is new.metadata.labels


async def test_keeps_what_it_was_told_to(
    api: FaultyServer, client: Client, clock: FakeClock, background: Background
) -> None:
    await api.put("a", data={"v": "1", "large": "x" * 100})
    informer = informer_of(client, clock, keep=lambda obj: replace(obj, data={"v": obj.data["v"]}))
    told = record(informer)
    background(informer.run())
    await clock.settle()
    found = informer.get("a", "default")
    assert found is not None
    assert (found.data, told) == ({"v": "1"}, ["add a=1"])


class Ticking(FakeClock):
    """Each look at it takes a little."""

    def monotonic(self) -> float:
        self._elapsed += BUSY_SECONDS
        return super().monotonic()


async def test_handlers_that_take_long_let_others_have_their_turn(
    api: FaultyServer, client: Client, background: Background
) -> None:
    clock = Ticking()
    informer, turns, seen = informer_of(client, clock), 0, list[int]()
    informer.add_handler(add=lambda _: seen.append(turns))
    background(informer.run())
    await clock.settle()

    async def others() -> None:
        nonlocal turns
        while len(seen) < 20:
            turns += 1
            await asyncio.sleep(0)

    background(others())
    await asyncio.gather(*(api.put(f"c{number}") for number in range(20)))
    await clock.settle()
    assert len(set(seen)) > 9
