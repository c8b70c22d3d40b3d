"""The data directory: everything a cluster keeps, and nothing outside it.

DIR/
  lock          held by the running `podfit up`; the kernel lets go of it when the process dies, however it dies
  up.json       the running cluster: process, address, nodes (mode 0600)
  up.log        what a detached cluster says
  pki/          the authority and what it issued; in front-proxy/ the one that other API servers believe
  store.db      the API server's objects
  admin.kubeconfig
  kubelet/NAME/ a node's checkpoints, volumes and container logs
  containerd/   the private runtime: images, containers
"""

import os
from pathlib import Path

import msgspec

DEFAULT_PORT = 16443


def default_data_dir() -> Path:
    """`/var/lib/podfit` for root, else the user's data home."""
    if os.geteuid() == 0:
        return Path("/var/lib/podfit")
    home = os.environ.get("XDG_DATA_HOME")
    return (Path(home) if home else Path.home() / ".local" / "share") / "podfit"


class DataDir(msgspec.Struct, frozen=True):
    root: Path

    @classmethod
    def at(cls, path: Path | None) -> "DataDir":
        return cls((path or default_data_dir()).expanduser().absolute())

    def create(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)

    @property
    def lock(self) -> Path:
        return self.root / "lock"

    @property
    def state(self) -> Path:
        return self.root / "up.json"

    @property
    def log(self) -> Path:
        return self.root / "up.log"

    @property
    def pki(self) -> Path:
        return self.root / "pki"

    @property
    def store(self) -> Path:
        return self.root / "store.db"

    @property
    def kubeconfig(self) -> Path:
        return self.root / "admin.kubeconfig"

    @property
    def containerd(self) -> Path:
        return self.root / "containerd"

    def kubelet(self, node: str) -> Path:
        return self.root / "kubelet" / node
