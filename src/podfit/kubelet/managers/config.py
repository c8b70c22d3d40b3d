"""The managers' options under the kubelet's names, checked against the machine they are for."""

import re
from collections.abc import Mapping
from typing import Literal

import msgspec

from podfit.core.quantity import Quantity
from podfit.decide.managers.cpu import NONE, BadCpuSet, Cpus, Topology, parse, show
from podfit.decide.managers.memory import Bank


class ManagerError(Exception):
    """A manager cannot work as it is set up, or not with the state it finds. The text says what to do."""


class ManagersConfig(msgspec.Struct, frozen=True, kw_only=True):
    """`topology`: the machine's CPUs, `banks`: its NUMA nodes; each may be empty where its policy reserves nothing."""

    cpu_policy: Literal["none", "static"] = "none"
    memory_policy: Literal["None", "Static"] = "None"
    topology: Topology = msgspec.field(default_factory=dict)
    banks: Mapping[int, Bank] = msgspec.field(default_factory=dict)
    reserved_cpus: Cpus = NONE

    def check(self) -> None:
        """Raises ManagerError."""
        absent = self.reserved_cpus - frozenset(self.topology)
        if absent:
            raise ManagerError(f"--reserved-cpus names CPUs {show(absent)}, which this machine does not have")
        if self.cpu_policy == "static" and not self.reserved_cpus:
            raise ManagerError("the static CPU manager policy needs CPUs for everybody: --reserved-cpus 0")
        if self.cpu_policy == "static" and len(self.reserved_cpus) == len(self.topology):
            raise ManagerError("--reserved-cpus leaves the static CPU manager policy no CPU to give away")
        if self.memory_policy == "Static" and not any(bank.reserved for bank in self.banks.values()):
            raise ManagerError(
                "the Static memory manager policy needs memory for the system: --reserved-memory 0:memory=500Mi"
            )

    @property
    def reserved_memory(self) -> int:
        """Bytes on all nodes."""
        return sum(bank.reserved for bank in self.banks.values())


def read_reserved_cpus(text: str) -> Cpus:
    """The CPUs of `--reserved-cpus`, such as `0-1,4`. Raises ManagerError."""
    try:
        return parse(text)
    except BadCpuSet as error:
        raise ManagerError(f"--reserved-cpus: {error}") from error


def read_reserved_memory(text: str) -> dict[int, int]:
    """Bytes by NUMA node of `--reserved-memory`, such as `0:memory=1Gi;1:memory=500Mi`. Raises ManagerError."""
    found: dict[int, int] = {}
    for part in filter(None, text.split(";")):
        match = re.fullmatch(r"(\d+):memory=(\S+)", part.strip())
        try:
            amount = Quantity.parse(match[2]).value() if match else 0
        except ValueError:
            amount = 0
        if not match or amount <= 0:
            raise ManagerError(f"--reserved-memory: cannot read {part!r}; it reads NODE:memory=AMOUNT")
        found[int(match[1])] = amount
    return found
