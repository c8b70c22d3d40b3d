"""A cluster whose disk is full: /readyz says so, deletions free it, and it starts again on the full disk."""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from podfit.api.core.v1.config.types import ConfigMap
from podfit.api.meta.v1.types import ObjectMeta
from podfit.client.kubeconfig import load
from podfit.client.rest import Client
from podfit.core.errors import ApiError
from podfit.net.processes import start_ticks
from support.eventually import eventually_async
from support.small_disk import small_disk
from support.up import Up

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    root = tmp_path / "data"
    root.mkdir()
    with small_disk(root, 48 << 20):
        cluster = Up(root)
        yield cluster
        assert cluster.down().code == 0


def fill(root: Path) -> Path:
    ballast = root / "ballast"
    with ballast.open("ab", buffering=0) as file:
        for size in (1 << 20, 4096):
            try:
                while file.write(b"x" * size):
                    pass
            except OSError:
                continue
    return ballast


async def refusal(client: Client, method: str, path: str, **more: object) -> ApiError:
    with pytest.raises(ApiError) as refused:
        await client.request(method, path, **more)  # type: ignore[arg-type]  # keywords of several types
    return refused.value


async def make_until_full(client: Client, prefix: str) -> tuple[int, ApiError]:
    for number in range(10_000):
        meta = ObjectMeta(name=f"{prefix}-{number}", namespace="default")
        try:
            await client.create(ConfigMap(metadata=meta, data={"text": "x" * 20_000}))
        except ApiError as error:
            return number, error
    raise AssertionError("the disk is not full yet")


def kill(up: Up) -> None:
    pid = up.state()["pid"]
    began = start_ticks(pid)
    os.kill(pid, signal.SIGKILL)
    while start_ticks(pid) == began:
        os.sched_yield()


def test_a_full_disk_is_told_freed_and_survived(up: Up) -> None:
    up.start(node="none")

    async def fill_it() -> int:
        client = load([up.kubeconfig]).client()
        try:
            await asyncio.gather(
                *(
                    client.create(
                        ConfigMap(
                            metadata=ObjectMeta(name=f"first-{number}", namespace="default"), data={"text": "x" * 5000}
                        )
                    )
                    for number in range(100)
                )
            )
            await asyncio.to_thread(fill, up.root)
            made, error = await make_until_full(client, "a")
            assert (error.code, error.reason) == (503, "ServiceUnavailable")
            assert "the disk is full; objects can be deleted" in error.message
            ready = await refusal(client, "GET", "/readyz")
            assert "[-]store-writes failed: the disk is full" in ready.message
            await client.request("GET", "/livez")
            return made
        finally:
            await client.close()

    made = asyncio.run(fill_it())
    port = int(up.state()["server"].rpartition(":")[2])  # the user's kubeconfig on this disk tells of it
    kill(up)
    if (up.root / "store.reserve").exists():  # once it is given up, its room is all that deletions have
        fill(up.root)
    up.start(node="none", port=port)

    async def free_it() -> None:
        client = load([up.kubeconfig]).client()
        try:
            assert len((await client.list(ConfigMap, "default")).items) >= 100 + made
            _, error = await make_until_full(client, "b")
            assert error.code == 503
            await client.request("DELETE", f"{CONFIGMAPS}/first-0")
            await client.request("DELETE", CONFIGMAPS)
            left = (await client.list(ConfigMap, "default")).items
            assert {config_map.metadata.name for config_map in left} <= {"kube-root-ca.crt"}
            (up.root / "ballast").unlink()

            async def is_ready() -> bool:
                """The first has the store look; until then it says what it knows."""
                with suppress(ApiError):
                    await client.request("GET", "/readyz")
                    return True
                return False

            await eventually_async(is_ready, within=20, what="the store has found room")
            await client.request("GET", "/readyz")
            await client.create(ConfigMap(metadata=ObjectMeta(name="again", namespace="default")))
        finally:
            await client.close()

    asyncio.run(free_it())
