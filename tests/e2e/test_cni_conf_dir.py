"""Pods whose addresses somebody else's plugins give: `--cni-conf-dir` on podfit's own containerd (docs/network.md)."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.test_pod_network import killed, server
from podfit.net.processes import CNI_FOLDERS
from support import netexec
from support.eventually import eventually
from support.up import PODFIT, Up, run, running

pytestmark = [pytest.mark.node, pytest.mark.kubectl, pytest.mark.xdist_group("node")]
THEIRS = "10.231.7"


@pytest.fixture
def theirs(tmp_path: Path) -> Iterator[Path]:
    """The distribution's plugins by a configuration of another range. `ptp` switches forwarding on, whoever asks it."""
    switch = Path("/proc/sys/net/ipv4/ip_forward")
    before = switch.read_text()
    addresses = {"type": "host-local", "subnet": f"{THEIRS}.0/24", "dataDir": str(tmp_path / "addresses")}
    plugins = [{"type": "ptp", "ipam": addresses | {"routes": [{"dst": "0.0.0.0/0"}]}}]
    directory = tmp_path / "net.d"
    directory.mkdir()
    made = {"cniVersion": "0.4.0", "name": "theirs", "plugins": plugins}
    (directory / "10-theirs.conflist").write_text(json.dumps(made))
    yield directory
    switch.write_text(before)


def taken(directory: Path) -> list[str]:
    folder = directory.parent / "addresses" / "theirs"
    return [path.name for path in folder.iterdir() if path.name[0].isdigit()]


def test_pods_have_the_addresses_of_the_plugins_that_were_named(cluster_dir: Up, theirs: Path) -> None:
    up, option = cluster_dir, ("--cni-conf-dir", str(theirs))
    folder = next(folder for folder in CNI_FOLDERS if Path(folder, "ptp").exists())
    up.start(*option, "--cni-bin-dir", folder)
    up.apply(server("a"), server("b"))
    found = {name: up.pod_when(name, running, "runs")["status"]["podIP"] for name in "ab"}
    assert sorted(taken(theirs)) == sorted(found.values())
    assert all(one.startswith(f"{THEIRS}.") for one in found.values())
    assert [netexec.ask("tcp", one, 8080, "/index.html").strip() for one in found.values()] == ["a", "b"]

    pid = up.state()["pid"]
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: Path(f"/proc/{pid}/exe").exists(), lambda there: not there, within=10, what="killed")
    refused = run(PODFIT, "up", "--data", str(up.root), "--port", "0", "--node", "real")
    assert refused.code == 3
    assert f"its containerd runs with the CNI configurations of {theirs}" in refused.err
    assert "podfit down" in refused.err

    up.start(*option)
    up.ok("delete", "pod/a", "--now")
    eventually(lambda: taken(theirs), lambda now: now == [found["b"]], within=20, what="an address is free")
    killed(up)
    answer = up.down()
    assert answer.code == 0, answer.err
    assert taken(theirs) == [], "they were asked to take it back, by a containerd that was started for that"
