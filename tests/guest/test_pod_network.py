"""Pods have addresses where the kernel takes no rules of nftables, and their probes reach them; no Service does."""

from pathlib import Path

import pytest

from support.up import Up, manifest, run, running

pytestmark = [pytest.mark.guest, pytest.mark.node, pytest.mark.kubectl]
SERVE = "mkdir -p /www; hostname > /www/index.html; exec httpd -f -p 8080 -h /www"
PLACES = (Path("/var/lib/cni/results"), Path("/run/netns"), Path("/run/podfit-network"))


def test_addresses_probes_and_teardown(tmp_path: Path) -> None:
    up = Up(tmp_path / "data")
    said = up.start("--pod-network", "pod").out
    assert "note      the kernel lacks CONFIG_NF_TABLES_IPV4: no Service leads to pods" in said
    try:
        probe = {"httpGet": {"port": 8080}, "periodSeconds": 1}
        container = {"name": "app", "command": ["sh", "-c", SERVE], "readinessProbe": probe}
        up.apply(*(manifest(name, container, hostNetwork=False) for name in ("a", "b")))
        ips = [up.pod_when(name, running, "runs", seconds=60)["status"]["podIP"] for name in ("a", "b")]
        assert ips == [f"10.244.0.{number}" for number in (2, 3)] or ips == [f"10.244.0.{number}" for number in (3, 2)]
        asking = f"printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 2 {ips[1]} 8080"
        assert up.ok("exec", "a", "--", "sh", "-c", asking).endswith("b\n")
        up.ok("delete", "pod/a", "--now")
        assert ips[0] not in run("ip", "route").out.split()
    finally:
        assert up.down().code == 0
    assert [entry.name for place in PLACES if place.is_dir() for entry in place.iterdir()] == []
    assert "veth" not in run("ip", "-br", "link").out
    assert Path("/proc/sys/net/ipv4/ip_forward").read_text().strip() == "0"
