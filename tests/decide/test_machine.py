"""What a machine can run: each part taken away in turn, and the command that mends it."""

from typing import Any

import msgspec
import pytest

from podfit.decide.machine import (
    CAPABILITIES,
    Cgroups,
    Check,
    Disk,
    Facts,
    State,
    commands,
    lacking,
    network_checks,
    node_checks,
    node_notes,
    server_checks,
)

GIB = 2**30
ALL = sum(1 << bit for bit in CAPABILITIES.values())
WHOLE = Facts(
    release="6.1",
    capabilities=ALL,
    programs={name: f"{name} 1" for name in ("containerd", "runc", "nft", "ip", "catatonit", "conntrack")},
    plugins="/usr/lib/cni",
    modules=frozenset({"grpc", "google.protobuf"}),
    cgroups=Cgroups("v2", ("cpu", "cpuset", "memory", "pids"), writable=True),
    namespaces=frozenset({"ipc", "mnt", "net", "pid", "uts"}),
    disk=Disk("/data", kind="ext4", free=50 * GIB, size=100 * GIB, free_inodes=1_000_000),
    ports={"port": ""},
)


def all_checks(facts: Facts) -> list[Check]:
    return [*server_checks(facts), *node_checks(facts), *network_checks(facts), *node_notes(facts)]


def without(**changes: Any) -> Facts:
    return msgspec.structs.replace(WHOLE, **changes)


def programs(*names: str) -> dict[str, str]:
    return {name: "1" for name in WHOLE.programs if name not in names}


def disk(**changes: Any) -> Facts:
    return without(disk=msgspec.structs.replace(WHOLE.disk, **changes))


def cgroups(**changes: Any) -> Facts:
    return without(cgroups=msgspec.structs.replace(WHOLE.cgroups, **changes))


def test_a_whole_machine_lacks_nothing() -> None:
    assert {check.state for check in all_checks(WHOLE)} == {State.OK}
    assert not commands(all_checks(WHOLE))


LACKS = [
    (without(system="Darwin"), "system", "not Linux", ""),
    (without(user=1000), "rights", "uid 1000", "sudo podfit up"),
    (without(capabilities=ALL & ~(1 << 21)), "rights", "CAP_SYS_ADMIN", ""),
    (
        without(programs=programs("containerd")),
        "containerd",
        "not installed",
        "apt-get install --no-install-recommends containerd",
    ),
    (without(programs=programs("runc")), "runc", "not installed", "apt-get install --no-install-recommends runc"),
    (
        without(plugins=""),
        "cni",
        "no CNI plugins ptp, host-local, loopback",
        "apt-get install --no-install-recommends containernetworking-plugins",
    ),
    (without(programs=programs("nft")), "nft", "not installed", "apt-get install --no-install-recommends nftables"),
    (without(switches=False), "interfaces", "/proc/sys/net is read-only", "mount -o remount,rw /proc/sys"),
    (without(capabilities=ALL & ~(1 << 12)), "interfaces", "no CAP_NET_ADMIN", ""),
    (without(filter_lacks=("CONFIG_NFT_NAT", "CONFIG_NFT_CT")), "filter", "lacks CONFIG_NFT_NAT, CONFIG_NFT_CT", ""),
    (without(programs=programs("ip")), "ip", "not installed", "apt-get install --no-install-recommends iproute2"),
    (without(static_busybox=False), "busybox", "no static", "apt-get install --no-install-recommends busybox-static"),
    (without(modules=frozenset({"grpc"})), "extra", "google.protobuf", "pip install 'podfit[node]'"),
    (cgroups(version=""), "cgroups", "no cgroup hierarchy", ""),
    (cgroups(controllers=("cpu",)), "cgroups", "memory controller", "boot with cgroup_enable=memory"),
    (cgroups(controllers=("memory",)), "cgroups", "cpu controller", ""),
    (cgroups(writable=False), "cgroups", "read-only", "mount -o remount,rw /sys/fs/cgroup"),
    (without(namespaces=frozenset({"ipc", "mnt", "net", "pid"})), "kernel", "uts namespaces", ""),
    (without(seccomp=False), "kernel", "seccomp", ""),
    (without(overlay=False), "overlay", "no overlay", "modprobe overlay"),
    (disk(kind="overlay"), "overlay", "overlay file system itself", "podfit up --data DIRECTORY"),
    (without(hosts_file=False), "hosts", "no /etc/hosts", "echo 127.0.0.1 localhost >/etc/hosts"),
    (disk(error="read-only"), "disk", "cannot be written: read-only", "podfit up --data DIRECTORY"),
    (disk(free=GIB - 1), "disk", "at least 1 GiB", "podfit up --data DIRECTORY"),
    (disk(free_inodes=10), "disk", "10 inodes", "podfit up --data DIRECTORY"),
    (without(ports={"port": "127.0.0.1:16443 is in use"}), "port", "in use", "podfit up --port 0"),
    (without(clock_behind="/data/pki/ca.crt"), "clock", "made in the future", "date --set '@SECONDS'"),
    (without(random_ready=False), "entropy", "not ready", "apt-get install --no-install-recommends haveged"),
]


@pytest.mark.parametrize(("facts", "part", "found", "fix"), LACKS)
def test_a_part_that_is_needed_is_lacking_alone(facts: Facts, part: str, found: str, fix: str) -> None:
    [check] = lacking(all_checks(facts))
    assert (check.part, check.fix) == (part, fix)
    assert found in check.found


@pytest.mark.parametrize("lacks", [without(plugins=""), without(programs=programs("nft", "ip"))])
def test_pods_on_the_hosts_network_need_no_tools_of_networks(lacks: Facts) -> None:
    assert not lacking(node_checks(lacks))
    assert lacking(network_checks(lacks))


NOTES = [
    (without(capabilities=ALL & ~(1 << 24)), "capabilities", "oom_score_adj"),
    (cgroups(controllers=("cpu", "memory", "pids")), "controllers", "no exclusive CPUs"),
    (cgroups(controllers=("cpu", "memory", "cpuset")), "controllers", "no limit on processes"),
    (without(pressure=False), "pressure", "psi=1"),
    (without(programs=programs("catatonit")), "catatonit", "not installed"),
    (without(programs=programs("conntrack")), "conntrack", "flows of UDP"),
    (without(open_files=1024), "limits", "1024 open files"),
    (without(inotify_instances=8), "limits", "8 inotify instances"),
    (without(clock_step=0.01), "clock", "10 ms"),
    (disk(free=5 * GIB), "disk", "DiskPressure"),
]


@pytest.mark.parametrize(("facts", "part", "found"), NOTES)
def test_a_part_that_is_of_use_is_a_note(facts: Facts, part: str, found: str) -> None:
    checks = all_checks(facts)
    assert not lacking(checks)
    [check] = [check for check in checks if check.state is State.NOTE]
    assert check.part == part
    assert found in check.found


def test_another_runtime_needs_no_containerd_and_no_images_of_ours() -> None:
    facts = without(programs={}, static_busybox=False, overlay=False)
    assert len(lacking(node_checks(facts))) == 4
    assert not lacking(node_checks(facts, private=False))


def test_packages_are_installed_by_one_command() -> None:
    facts = without(programs=programs("containerd", "runc"), overlay=False)
    assert commands(node_checks(facts)) == (
        "apt-get install --no-install-recommends containerd runc",
        "modprobe overlay",
    )
