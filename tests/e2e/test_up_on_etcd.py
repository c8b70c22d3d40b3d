"""`podfit up --etcd-servers`: the whole cluster keeps its objects in etcd, and finds them there again."""

from pathlib import Path

import pytest

from podfit.process.control.stores import etcd_store
from podfit.store.etcd.options import EtcdOptions
from support.etcd import etcd_cluster
from support.up import Up, manifest, running

pytestmark = [pytest.mark.etcd, pytest.mark.kubectl]


async def _keys(url: str, prefix: str) -> list[str]:
    store = await etcd_store(EtcdOptions(servers=(url,)))
    try:
        return [record.key for record in (await store.list(prefix)).records]
    finally:
        await store.close()


async def test_a_cluster_comes_back_from_etcd(tmp_path: Path) -> None:
    up = Up(tmp_path / "data")
    with etcd_cluster() as (member,):
        try:
            up.start("--etcd-servers", member.client, node="simulated")
            up.ok("wait", "--for=create", "serviceaccount/default", "--timeout=30s")
            up.apply(manifest("web"))
            before = up.pod_when("web", running, "ran")
            assert await _keys(member.client, "/registry/pods/default/") == ["/registry/pods/default/web"]
            assert not list(up.root.glob("*.db")), "nothing is kept beside etcd"
            up.down()
            up.start("--etcd-servers", member.client, node="simulated")
            after = up.pod_when("web", running, "ran again")
            assert after["metadata"]["uid"] == before["metadata"]["uid"]
        finally:
            up.down()
