"""`podfit backup` of a server that is being written to, `podfit restore` elsewhere, and kubectl goes on."""

import asyncio
import json
import subprocess
from itertools import count
from pathlib import Path

import pytest
from msgspec.structs import replace

from podfit.api.core.v1.config.types import ConfigMap
from podfit.api.meta.v1.types import ObjectMeta
from podfit.client.kubeconfig import Access, load
from podfit.core.errors import ApiError
from support.apiserver_processes import ApiProcess
from support.up import PODFIT, Answer, run

pytestmark = pytest.mark.kubectl


def _podfit(*arguments: str | Path) -> Answer:
    return run(PODFIT, *map(str, arguments))


async def _backed_up_under_load(server: ApiProcess, file: Path) -> dict[str, str]:
    """The versions of all config maps that were acknowledged before the backup began."""
    client, made, enough = server.client(), dict[str, str](), asyncio.Event()

    async def load_() -> None:
        for number in count():
            obj = ConfigMap(metadata=ObjectMeta(name=f"cm-{number}", namespace="default"), data={"key": "x" * 500})
            done = await client.create(obj)
            made[done.metadata.name] = done.metadata.resource_version
            if number == 20:
                enough.set()

    writing = asyncio.create_task(load_())
    await asyncio.wait_for(enough.wait(), 30)
    before = dict(made)
    answer = await asyncio.to_thread(_podfit, "backup", file, "--data", server.data)
    assert answer.code == 0, answer.err
    assert "with the keys of the cluster" in answer.out
    refused = await asyncio.to_thread(_podfit, "restore", file, "--data", server.data, "--replace")
    assert refused.code == 3
    assert "is in use by" in refused.err
    writing.cancel()
    await asyncio.wait([writing])
    await client.close()
    return before


async def _expired(server: ApiProcess, version: str) -> str:
    client = server.client()
    try:
        async for _ in client.watch(ConfigMap, "default", resource_version=version, timeout=5):
            pass
    except ApiError as error:
        return error.reason
    finally:
        await client.close()
    return ""


def test_a_backup_of_a_running_server_is_a_cluster_elsewhere(tmp_path: Path) -> None:
    server, file = ApiProcess(tmp_path / "data", "a"), tmp_path / "cluster.backup"
    server.start()
    server.await_ready()
    try:
        before = asyncio.run(_backed_up_under_load(server, file))
        administrator = load([server.kubeconfig])
    finally:
        server.kill()
    answer = _podfit("restore", file, "--data", tmp_path / "other")
    assert answer.code == 0, answer.err
    other = ApiProcess(tmp_path / "other", "b")
    other.start()
    other.await_ready()
    try:
        client = ["kubectl", "--kubeconfig", str(other.kubeconfig), "--cache-dir", str(tmp_path / "cache")]
        text = subprocess.run([*client, "get", "configmaps", "-o", "json"], capture_output=True, check=True).stdout
        found = {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in json.loads(text)["items"]}
        assert before.items() <= found.items()
        subprocess.run([*client, "delete", "configmap", "cm-0"], capture_output=True, check=True)
        assert asyncio.run(_expired(other, before["cm-1"])) == "Expired"
        former = replace(administrator, server=load([other.kubeconfig]).server)
        assert asyncio.run(_names(former)) == sorted(set(found) - {"cm-0"})
    finally:
        assert other.stop() == 0


async def _names(access: Access) -> list[str]:
    """As the administrator of before, whose certificate the restored authority signed."""
    client = access.client()
    names = sorted(config_map.metadata.name for config_map in (await client.list(ConfigMap, "default")).items)
    await client.close()
    return names
