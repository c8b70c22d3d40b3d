"""The data directory: the paths of everything that a cluster keeps.

DIR/
  lock          held by the running `podfit up`; the kernel lets go of it when the process dies, however it dies
  up.json       the running cluster: process, address, nodes (mode 0600)
  up.log        what a detached cluster says
  version.json  the versions of what lies here (`data_version`)
  setup.json    only until the first start is complete: what may still be made (`data_state`)
  pki/          the authority and what it issued; in front-proxy/ the one that other API servers believe
  store.db      the API server's objects
  admin.kubeconfig
  controllers.kubeconfig, scheduler.kubeconfig, proxy.kubeconfig, dns.kubeconfig    written by `podfit apiserver`
  kubelet/NAME/ a node's checkpoints, volumes and container logs
  containerd/   the private runtime: images, containers, their addresses
  history/      what containers used (docs/history.md)
  pod-range     of which network the pods' addresses are
"""

import os
import shlex
from pathlib import Path

import msgspec

from podfit.process.errors import MachineError, reason

DEFAULT_PORT = 16443


def default_data_dir() -> Path:
    """`/var/lib/podfit` for root, else the user's data home."""
    if os.geteuid() == 0:
        return Path("/var/lib/podfit")
    home = os.environ.get("XDG_DATA_HOME")
    return (Path(home) if home else Path.home() / ".local" / "share") / "podfit"


def unusable(data: "DataDir", error: OSError) -> MachineError:
    """The directory cannot be made or written to."""
    said = f"--data: {data.root} cannot be written ({reason(error)})"
    return MachineError(said, fix=("choose another directory with --data",))


class DataDir(msgspec.Struct, frozen=True):
    root: Path

    @classmethod
    def at(cls, path: Path | None) -> "DataDir":
        return cls((path or default_data_dir()).expanduser().absolute())

    def command(self, *words: str) -> str:
        """A podfit command about this directory, as advice quotes it."""
        usual = self.root == DataDir.at(None).root
        return shlex.join(("podfit", *words, *(() if usual else ("--data", str(self.root)))))

    def create(self) -> None:
        """Raises MachineError."""
        try:
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise unusable(self, error) from error

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
    def version(self) -> Path:
        return self.root / "version.json"

    @property
    def setup(self) -> Path:
        return self.root / "setup.json"

    @property
    def pki(self) -> Path:
        return self.root / "pki"

    @property
    def store(self) -> Path:
        return self.root / "store.db"

    @property
    def kubeconfig(self) -> Path:
        return self.root / "admin.kubeconfig"

    def component_kubeconfig(self, name: str) -> Path:
        """The kubeconfig of `podfit NAME`, written by `podfit apiserver`."""
        return self.root / f"{name}.kubeconfig"

    @property
    def containerd(self) -> Path:
        return self.root / "containerd"

    @property
    def cgroup_root(self) -> Path:
        """Says below which cgroup the pods are, where that is not the root."""
        return self.root / "cgroup-root"

    @property
    def pod_range(self) -> Path:
        """Says of which network the pods' addresses are."""
        return self.root / "pod-range"

    @property
    def history(self) -> Path:
        """What containers used."""
        return self.root / "history"

    @property
    def volumes(self) -> Path:
        """Directories of the storage class `local`."""
        return self.root / "volumes"

    def kubelet(self, node: str) -> Path:
        return self.root / "kubelet" / node

    def played(self, node: str) -> Path:
        """The folder of the kubelet of a Node that somebody else has made; it goes with the Node."""
        return self.root / "played" / node
