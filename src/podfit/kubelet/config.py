"""What a node is told about itself, decided once by whoever starts it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from podfit.api.base import ResourceList
from podfit.decide.pressure import Threshold
from podfit.kubelet.managers.config import ManagersConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletConfig:
    """`capacity` and `allocatable` hold cpu, memory, pods and ephemeral-storage; `root` keeps checkpoints, volumes and
    container logs. `manifests` is the directory of static pods. `port` is where the server part listens (0 = nowhere).
    `simulated` is said on the node object.
    """

    name: str
    root: Path
    host_ip: str
    capacity: ResourceList
    allocatable: ResourceList
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    port: int = 0
    simulated: bool = False
    manifests: Path | None = None
    eviction_hard: tuple[Threshold, ...] = ()
    managers: ManagersConfig = ManagersConfig()  # noqa: RUF009  (frozen)

    @property
    def log_root(self) -> Path:
        return self.root / "logs" / "pods"
