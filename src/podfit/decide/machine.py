"""What a machine can run, judged from facts about it: the checks of `podfit doctor` and of `podfit up`.

A check is about one part of the machine. What a real node, or the API server, cannot do without is `lacking`; that
without which something named does not work is a `note`. Each carries the command that mends it on Debian and Ubuntu.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

import msgspec

GIB, MIB = 2**30, 2**20
LEAST_DISK = GIB  # images of the demo, a store and its write-ahead log
LEAST_INODES = 10_000
NODE_PRESSURE = 0.10  # of the file system: below it a kubelet tells DiskPressure (upstream's nodefs.available<10%)
LEAST_FILES = 4096  # connections of an API server (`net.http_accept`)
LEAST_WATCHES = 128  # inotify instances; containerd and each kubelet hold a few
NEEDED_CONTROLLERS = ("cpu", "memory")
USED_CONTROLLERS = ("cpuset", "pids", "hugetlb", "cpuacct", "blkio", "freezer", "devices", "io")
CAPABILITIES = {"SYS_ADMIN": 21, "NET_ADMIN": 12, "SYS_RESOURCE": 24, "SYS_PTRACE": 19, "CHOWN": 0, "KILL": 5}
NEEDED_CAPABILITIES = ("SYS_ADMIN", "CHOWN", "KILL")
EXTRA = "pip install 'podfit[node]'"
HISTORY = "pip install 'podfit[history]'"
ELSEWHERE = "podfit up --data DIRECTORY"
INSTALL = "apt-get install --no-install-recommends "


class State(StrEnum):
    OK = "ok"
    NOTE = "note"
    LACKING = "lacking"


class Check(msgspec.Struct, frozen=True):
    """`found` is what the machine has; `fix` a command, empty where nothing needs mending or no command can."""

    part: str
    state: State
    found: str
    fix: str = ""


FILTER = "filter"
PLUGINS = ("ptp", "host-local", "loopback")
"""CNI plugins of the distribution that give pods their addresses."""


class Cgroups(msgspec.Struct, frozen=True):
    """`version` is `v1`, `v1 (hybrid)`, `v2` or empty where none is mounted."""

    version: str = ""
    controllers: tuple[str, ...] = ()
    writable: bool = False


class Disk(msgspec.Struct, frozen=True):
    """The file system of the data directory; sizes in bytes. `error` says why files cannot be made there."""

    path: str
    kind: str = ""
    free: int = 0
    size: int = 0
    free_inodes: int | None = None
    error: str = ""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What was found on a machine. `programs` and `modules` map names to versions or places, missing ones left out;
    `ports` maps what listens there to the reason why it cannot.
    """

    system: str = "Linux"
    release: str = ""
    user: int = 0
    capabilities: int = 0  # the effective set, a bit each
    programs: Mapping[str, str] = {}
    static_busybox: bool = True
    hosts_file: bool = True
    plugins: str = ""
    modules: frozenset[str] = frozenset()
    cgroups: Cgroups = Cgroups()
    filter_lacks: tuple[str, ...] = ()  # options of the kernel that nft cannot do without
    switches: bool = True  # those below /proc/sys/net may be set
    overlay: bool = True  # the kernel has the file system of images
    namespaces: frozenset[str] = frozenset()
    seccomp: bool = True
    pressure: bool = True
    disk: Disk = Disk("")
    ports: Mapping[str, str] = {}
    open_files: int = LEAST_FILES
    inotify_instances: int = LEAST_WATCHES
    random_ready: bool = True
    clock_behind: str = ""  # the file of which the clock says that it was made in the future
    clock_step: float = 0.0  # seconds between two ticks of the monotonic clock


def node_checks(facts: Facts, *, private: bool = True) -> list[Check]:
    """What a real node stands on; `private` is one with a containerd of its own."""
    if facts.system != "Linux":
        return [Check("system", State.LACKING, f"this is {facts.system}, not Linux")]
    own = [_program(facts, "containerd"), _program(facts, "runc"), _busybox(facts)] if private else []
    return [
        _rights(facts),
        *own,
        _extra(facts),
        _cgroups(facts),
        _kernel(facts),
        *([_snapshots(facts), _hosts_file(facts)] if private else []),
    ]


def network_checks(facts: Facts) -> list[Check]:
    """What a real node with a containerd of its own needs besides, so that its pods have addresses of their own."""
    if facts.system != "Linux" or facts.user != 0:
        return []
    return [
        _plugins(facts),
        _network_tool(facts, "nft", "nftables"),
        _network_tool(facts, "ip", "iproute2"),
        _network_rights(facts),
        _packet_filter(facts),
    ]


def node_notes(facts: Facts) -> list[Check]:
    """What a real node runs without, and what it then cannot do."""
    if facts.system != "Linux":
        return []
    return [
        *([_capabilities(facts)] if facts.user == 0 else []),
        _used_controllers(facts),
        _optional(facts, "pressure", "pressure stall information", facts.pressure, "no PSI metrics; boot with psi=1"),
        _tool(facts, "catatonit", "catatonit", "the pause container is busybox's shell"),
        _tool(facts, "conntrack", "conntrack", "flows of UDP to a pod that is gone go on until their client is silent"),
    ]


def server_checks(facts: Facts) -> list[Check]:
    """What API server, controllers and simulated nodes stand on."""
    ports = [
        Check(name, State.LACKING if why else State.OK, why or "free", "podfit up --port 0" if why else "")
        for name, why in facts.ports.items()
    ]
    return [_disk(facts.disk), *ports, _files(facts), _clock(facts), _random(facts)]


def server_notes(facts: Facts) -> list[Check]:
    """What they run without, and what they then cannot do."""
    if keeps_history(facts):
        return [Check("history", State.OK, "podfit[history] is installed")]
    found = "podfit was installed without the extra history: what containers use is not kept"
    return [Check("history", State.NOTE, found, HISTORY)]


def keeps_history(facts: Facts) -> bool:
    return "duckdb" in facts.modules


def lacking(checks: Iterable[Check]) -> list[Check]:
    return [check for check in checks if check.state is State.LACKING]


def commands(checks: Iterable[Check]) -> tuple[str, ...]:
    """What mends them; packages by one command."""
    fixes = [check.fix for check in checks if check.fix]
    packages = dict.fromkeys(fix.removeprefix(INSTALL) for fix in fixes if fix.startswith(INSTALL))
    install = [INSTALL + " ".join(packages)] if packages else []
    return tuple(dict.fromkeys((*install, *(fix for fix in fixes if not fix.startswith(INSTALL)))))


def _rights(facts: Facts) -> Check:
    if facts.user != 0:
        return Check("rights", State.LACKING, f"not root (uid {facts.user}), so no cgroups", "sudo podfit up")
    missing = _without(facts.capabilities, NEEDED_CAPABILITIES)
    if missing:
        found = f"root without {_listed(f'CAP_{name}' for name in missing)}: a container that is not privileged?"
        return Check("rights", State.LACKING, found)
    return Check("rights", State.OK, "root")


def _capabilities(facts: Facts) -> Check:
    missing = _without(facts.capabilities, tuple(CAPABILITIES))
    if not missing:
        return Check("capabilities", State.OK, "all that are used")
    effects = {
        "SYS_RESOURCE": "no container gets a lower oom_score_adj than podfit has",
        "NET_ADMIN": "pods cannot have interfaces",
        "SYS_PTRACE": "processes of other users are not looked at",
    }
    told = (f"no CAP_{name} ({effects.get(name, 'some containers fail')})" for name in missing)
    return Check("capabilities", State.NOTE, "; ".join(told))


def _without(capabilities: int, names: Sequence[str]) -> list[str]:
    return [name for name in names if not capabilities >> CAPABILITIES[name] & 1]


def _program(facts: Facts, name: str) -> Check:
    if found := facts.programs.get(name):
        return Check(name, State.OK, found)
    return Check(name, State.LACKING, f"{name} is not installed", INSTALL + name)


def _busybox(facts: Facts) -> Check:
    """The images that a node starts with are made of it (`kubelet.runtime.images`)."""
    if facts.static_busybox:
        return Check("busybox", State.OK, "static")
    return Check("busybox", State.LACKING, "no static busybox", INSTALL + "busybox-static")


def _extra(facts: Facts) -> Check:
    missing = sorted({"grpc", "google.protobuf"} - facts.modules)
    if missing:
        return Check("extra", State.LACKING, f"podfit was installed without the extra node ({_listed(missing)})", EXTRA)
    return Check("extra", State.OK, "podfit[node] is installed")


def _cgroups(facts: Facts) -> Check:
    cgroups = facts.cgroups
    if not cgroups.version:
        return Check("cgroups", State.LACKING, "no cgroup hierarchy is mounted")
    missing = [name for name in NEEDED_CONTROLLERS if name not in cgroups.controllers]
    if missing:
        found = f"{cgroups.version} without the {' and '.join(missing)} controller"
        return Check("cgroups", State.LACKING, found, "boot with cgroup_enable=memory" if "memory" in missing else "")
    if not cgroups.writable and facts.user == 0:
        return Check(
            "cgroups", State.LACKING, f"{cgroups.version}, mounted read-only", "mount -o remount,rw /sys/fs/cgroup"
        )
    return Check("cgroups", State.OK, f"{cgroups.version} with cpu and memory")


def _used_controllers(facts: Facts) -> Check:
    named = [name for name in USED_CONTROLLERS if name in facts.cgroups.controllers]
    missing = [name for name in ("cpuset", "pids") if name not in facts.cgroups.controllers]
    if missing:
        effects = {"cpuset": "no exclusive CPUs", "pids": "no limit on processes"}
        told = "; ".join(f"no {name} ({effects[name]})" for name in missing)
        return Check("controllers", State.NOTE, told)
    return Check("controllers", State.OK, _listed(named))


def _kernel(facts: Facts) -> Check:
    missing = [f"{name} namespaces" for name in ("ipc", "mnt", "net", "pid", "uts") if name not in facts.namespaces]
    if not facts.seccomp:
        missing.append("seccomp")
    if missing:
        return Check("kernel", State.LACKING, f"Linux {facts.release} without {_listed(missing)}")
    return Check("kernel", State.OK, f"Linux {facts.release}, namespaces and seccomp")


def _snapshots(facts: Facts) -> Check:
    """containerd keeps images in overlay file systems, which cannot lie on another of their kind."""
    if not facts.overlay:
        return Check("overlay", State.LACKING, "the kernel knows no overlay file system", "modprobe overlay")
    if facts.disk.kind == "overlay":
        where = f"{facts.disk.path} is an overlay file system itself"
        return Check("overlay", State.LACKING, where, ELSEWHERE)
    return Check("overlay", State.OK, f"on {facts.disk.kind or 'the data directory'}")


def _hosts_file(facts: Facts) -> Check:
    """containerd begins each sandbox's own with it."""
    if facts.hosts_file:
        return Check("hosts", State.OK, "/etc/hosts")
    return Check("hosts", State.LACKING, "there is no /etc/hosts", "echo 127.0.0.1 localhost >/etc/hosts")


def _plugins(facts: Facts) -> Check:
    if facts.plugins:
        return Check("cni", State.OK, facts.plugins)
    missing = f"no CNI plugins {_listed(PLUGINS)}"
    return Check("cni", State.LACKING, missing, INSTALL + "containernetworking-plugins")


def _network_tool(facts: Facts, name: str, package: str) -> Check:
    if found := facts.programs.get(name):
        return Check(name, State.OK, found)
    return Check(name, State.LACKING, f"{name} is not installed", INSTALL + package)


def _network_rights(facts: Facts) -> Check:
    if _without(facts.capabilities, ("NET_ADMIN",)):
        return Check("interfaces", State.LACKING, "no CAP_NET_ADMIN, so no interfaces can be made")
    if not facts.switches:
        return Check("interfaces", State.LACKING, "/proc/sys/net is read-only", "mount -o remount,rw /proc/sys")
    return Check("interfaces", State.OK, "may be made")


def _packet_filter(facts: Facts) -> Check:
    """Without nft nobody knows, and that is said already."""
    if facts.filter_lacks:
        return Check(FILTER, State.LACKING, f"the kernel lacks {_listed(facts.filter_lacks)}")
    return Check(FILTER, State.OK, "the kernel has what rules of Services need")


def _tool(facts: Facts, name: str, package: str, without: str) -> Check:
    if found := facts.programs.get(name):
        return Check(name, State.OK, found)
    return Check(name, State.NOTE, f"not installed: {without}", INSTALL + package)


def _optional(facts: Facts, part: str, found: str, there: bool, without: str) -> Check:
    return Check(part, State.OK if there else State.NOTE, found if there else without)


def _disk(disk: Disk) -> Check:
    if disk.error:
        return Check("disk", State.LACKING, f"{disk.path} cannot be written: {disk.error}", ELSEWHERE)
    found = f"{disk.free / GIB:.1f} of {disk.size / GIB:.1f} GiB free for {disk.path}"
    if disk.free < LEAST_DISK:
        return Check("disk", State.LACKING, f"{found}, at least 1 GiB is needed", ELSEWHERE)
    if disk.free_inodes is not None and disk.free_inodes < LEAST_INODES:
        return Check("disk", State.LACKING, f"{disk.free_inodes} inodes free for {disk.path}", ELSEWHERE)
    if disk.free < NODE_PRESSURE * disk.size:
        return Check("disk", State.NOTE, f"{found}: below 10 % a node is under DiskPressure and takes no pods")
    return Check("disk", State.OK, found)


def _files(facts: Facts) -> Check:
    if facts.open_files < LEAST_FILES:
        found = f"{facts.open_files} open files are allowed, an API server may need {LEAST_FILES}"
        return Check("limits", State.NOTE, found, f"ulimit -n {LEAST_FILES}")
    if facts.inotify_instances < LEAST_WATCHES:
        found = f"{facts.inotify_instances} inotify instances are allowed"
        return Check("limits", State.NOTE, found, f"sysctl fs.inotify.max_user_instances={LEAST_WATCHES}")
    return Check("limits", State.OK, f"{facts.open_files} open files")


def _clock(facts: Facts) -> Check:
    """Certificates made under a clock that is behind are not valid yet for everybody else."""
    if facts.clock_behind:
        return Check(
            "clock",
            State.LACKING,
            f"the clock is behind: {facts.clock_behind} was made in the future",
            "date --set '@SECONDS'",
        )
    if facts.clock_step > 0.001:
        return Check("clock", State.NOTE, f"ticks of {1000 * facts.clock_step:.0f} ms: times of a resize are as coarse")
    return Check("clock", State.OK, "not behind, fine enough")


def _random(facts: Facts) -> Check:
    if facts.random_ready:
        return Check("entropy", State.OK, "the kernel's random numbers are ready")
    found = "the kernel's random numbers are not ready, so no key can be made"
    return Check("entropy", State.LACKING, found, INSTALL + "haveged")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
