"""`KubeletConfig`: a node's configuration, fixed by whoever starts it."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from podfit.api.meta.base import ResourceList
from podfit.decide.lifecycle.effects import Passing
from podfit.decide.node.options import KubeletOptions
from podfit.decide.node.pressure import Threshold
from podfit.decide.node.pressure import parse as parse_thresholds
from podfit.kubelet.managers.config import ManagersConfig


class KubeletConfig(msgspec.Struct, frozen=True, kw_only=True):
    """`capacity` and `allocatable` hold cpu, memory, pods and ephemeral-storage; `root` keeps checkpoints, volumes and
    container logs, unless `files` is False: then none of them is, as nothing runs that could read or write it, and what
    the checkpoints would hold is in the status of the pods. `port` is where the server part listens (0 = nowhere).
    `simulated` is said on the node object. Where the Node is not its own to make, `lease_holder` is who it is in the
    Lease: it keeps what the Node says, and does not register again when that is deleted. It `lends` spare capacity
    (docs/spare.md). `api_server` is the URL that containers are told; empty for none. A passing status is told when it
    lasts `passing_seconds`: a start or a resize that takes less costs one write of the status.
    """

    name: str
    root: Path
    host_ip: str
    capacity: ResourceList
    allocatable: ResourceList
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    annotations: Mapping[str, str] = msgspec.field(default_factory=dict)
    port: int = 0
    simulated: bool = False
    lease_holder: str = ""
    lends: bool = False
    files: bool = True
    passing_seconds: Mapping[Passing, float] = msgspec.field(default_factory=dict)
    api_server: str = ""
    options: KubeletOptions = msgspec.field(default_factory=lambda: KubeletOptions(eviction_hard=""))
    """What it was told; of that, what the machine decides is in the other fields."""
    managers: ManagersConfig = ManagersConfig()
    bursts: bool = False
    """Whether limits move inside burst ceilings: only where the API server judges those."""

    @property
    def manifests(self) -> Path | None:
        return Path(self.options.pod_manifest_path) if self.options.pod_manifest_path else None

    @property
    def eviction_hard(self) -> tuple[Threshold, ...]:
        return parse_thresholds(self.options.eviction_hard)

    @property
    def log_root(self) -> Path:
        return self.root / "logs" / "pods"
