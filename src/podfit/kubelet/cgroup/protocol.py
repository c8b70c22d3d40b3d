"""`Cgroups`: the interface to the kubelet's half of the cgroup tree, `kubepods`, QoS tiers and pod cgroups.

Container cgroups below a pod's belong to the runtime: they are read here to verify, never written. Calls are plain
functions because a cgroup write takes some 0.05 ms; only `set_memory_limit` can take longer, when the kernel has to
reclaim page cache first.

    CgroupError              reading or writing failed; says which file and what was written
    ├── Missing              no such cgroup
    ├── Busy                 EBUSY: v1 refuses a memory limit below usage; rmdir while processes are inside
    ├── Invalid              EINVAL: v1 refuses a pod quota below a container's, or the value itself
    └── Unsupported          the controller is not there
"""

from typing import Literal, Protocol

import msgspec

from podfit.decide.autoscaling.burst import Sample

QOS = Literal["Guaranteed", "Burstable", "BestEffort", "Spare"]
"""The tiers: QoS classes, and pods on spare capacity, which are BestEffort ones."""
Version = Literal["v1", "v2"]

UNLIMITED = -1


class CgroupError(Exception):
    """The message names the file, the value and the kernel's reason."""


class Missing(CgroupError):
    """The cgroup does not exist."""


class Busy(CgroupError):
    """EBUSY."""


class Invalid(CgroupError):
    """EINVAL or ERANGE."""


class PartlyDone(CgroupError):
    """EAGAIN: only a part could be done."""


class Unsupported(CgroupError):
    """The controller that this value belongs to is not available."""


class CgroupConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What to write on creation; None = leave the kernel's default. Quota and period are microseconds, -1 = no limit.

    `memory_min` and `memory_low` are of cgroup v2; v1 has nothing like them.
    """

    cpu_shares: int | None = None
    cpu_quota: int | None = None
    cpu_period: int = 100_000
    memory_limit: int | None = None
    memory_min: int | None = None
    memory_low: int | None = None
    pids_limit: int | None = None


class CPUValues(msgspec.Struct, frozen=True, kw_only=True):
    """`quota` None = unlimited. On v2 `weight` is the kernel's value; `shares` is computed from it, lossily (R-184)."""

    shares: int
    quota: int | None
    period: int
    weight: int | None = None


class ContainerValues(msgspec.Struct, frozen=True, kw_only=True):
    """What the kernel enforces on one container, for verification; None = unlimited, or unknown for `memory_usage`."""

    cpu: CPUValues
    memory_limit: int | None
    memory_usage: int | None
    processes: tuple[int, ...] = ()


class Throttling(msgspec.Struct, frozen=True, kw_only=True):
    """How often a quota held a cgroup back: of so many `periods` in which it ran, and for how many `seconds`."""

    periods: int
    throttled: int
    seconds: float


class Counting(Protocol):
    """Counters of one cgroup, to be read often, until `close`."""

    def read(self, limit: int | None) -> Sample:
        """`limit` is that of memory in bytes, near which idle cache is told apart. Raises Missing when it is gone."""

    def close(self) -> None: ...


class PodCgroup(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    uid: str
    qos: QOS


class Layout(msgspec.Struct, frozen=True):
    """Where things are (cgroupfs driver): `<prefix>/kubepods[/burstable|/besteffort]/pod<uid>`, and
    `<prefix>-spare/pod<uid>`.

    A `prefix` such as `/podfit-1a2b3c` keeps two nodes on one machine apart. Guaranteed pods sit directly in kubepods.
    Pods on spare capacity are beside it and not within: a cgroup that always has something to run does not come before
    others when one of its owners wakes, and waits for what the system runs in the meantime.
    """

    prefix: str = ""

    @property
    def root(self) -> str:
        return f"{self.prefix}/kubepods"

    @property
    def spare(self) -> str:
        return f"{self.prefix or self.root}-spare"

    @property
    def trees(self) -> tuple[str, str]:
        """All there is lies below these."""
        return self.prefix or self.root, self.spare

    def qos(self, qos: QOS) -> str:
        match qos:
            case "Guaranteed":
                return self.root
            case "Spare":
                return self.spare
        return f"{self.root}/{qos.lower()}"

    def pod(self, uid: str, qos: QOS) -> str:
        return f"{self.qos(qos)}/pod{uid}"

    def container(self, uid: str, qos: QOS, container_id: str) -> str:
        return f"{self.pod(uid, qos)}/{container_id}"


class Enforcement(msgspec.Struct, frozen=True, kw_only=True):
    """Which limits are real here: `missing` names controllers that this machine or this user cannot use."""

    cpu: bool
    memory: bool
    pids: bool
    missing: tuple[str, ...] = msgspec.field(default=())


class Cgroups(Protocol):
    """Paths are those of `Layout`: absolute within the cgroup tree, whatever the mount point."""

    @property
    def version(self) -> Version: ...

    @property
    def driver(self) -> Literal["cgroupfs"]: ...

    @property
    def layout(self) -> Layout: ...

    @property
    def enforced(self) -> Enforcement: ...

    def create(self, path: str, config: CgroupConfig) -> None:
        """Make the directory and its parents in every hierarchy and write the values; fine if it is there already."""

    def exists(self, path: str) -> bool:
        """True when it is there for every controller that this machine has."""

    def read_cpu(self, path: str) -> CPUValues: ...

    def read_memory(self, path: str) -> int | None:
        """The limit in bytes; None = unlimited."""

    def set_cpu_shares(self, path: str, shares: int) -> None:
        """v2 gets the linear weight of 6.1."""

    def set_idle(self, path: str) -> bool:
        """Its processes run when no other wants the CPU (cpu.idle, since Linux 5.15), whatever its weight, which cannot
        be written any more. False where the kernel has nothing like it."""

    def set_cpu_limit(self, path: str, *, quota: int, period: int) -> None:
        """Microseconds; quota -1 = no limit. v1 raises `Invalid` when a child has more."""

    def set_memory_limit(self, path: str, limit: int) -> None:
        """Bytes; -1 = no limit. Below usage: v1 raises `Busy`, v2 accepts it and OOM-kills."""

    def memory_usage(self, path: str) -> int | None:
        """Bytes in use, file cache included; None when the memory controller is missing."""

    def working_set(self, path: str) -> int | None:
        """The same without file pages that nobody has touched for long, as the kubelet counts it."""

    def memory_high(self, path: str) -> int | None:
        """Bytes from which on the kernel throttles and reclaims; None = never. v2 only, else `Unsupported`."""

    def set_memory_high(self, path: str, high: int) -> None:
        """-1 = never. The kernel reclaims what is above before this returns, as far as it can; nothing is killed."""

    def reclaim(self, path: str, amount: int) -> None:
        """Ask for so many bytes back now (memory.reclaim, since Linux 5.19); where it is missing nothing happens."""

    def memory_stall(self, path: str) -> int | None:
        """Microseconds in which everything in it waited for memory, ever (memory.pressure); None without PSI."""

    def throttling(self, path: str) -> Throttling | None:
        """None when nothing is counted, because there is no quota or no kernel."""

    def counters(self, path: str) -> Counting:
        """The counters of a container, to be read often; to be closed."""

    def read_container(self, path: str) -> ContainerValues: ...

    def remove(self, path: str) -> None:
        """rmdir it with everything below, deepest first. Kills nothing: `Busy` while processes are inside."""

    def kill(self, path: str) -> tuple[int, ...]:
        """Send SIGKILL to every process in it and below. Returns their pids; none where there is no such cgroup."""

    def list_pods(self) -> tuple[PodCgroup, ...]:
        """Every pod cgroup present under this layout, wanted or orphaned."""
