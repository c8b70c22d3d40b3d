"""Machines on this one: each a network namespace of its own, on a bridge.

Only the network is separate. (`ip netns exec` would also hide the cgroups, so programs are entered with `nsenter`.)
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

BRIDGE, NETWORK = "podfit-br0", "10.213.77"
HOST = f"{NETWORK}.1"


def ip(*arguments: str) -> None:
    subprocess.run(("ip", *arguments), check=True, capture_output=True, text=True)


@dataclass(frozen=True)
class Machine:
    number: int

    @property
    def name(self) -> str:
        return f"podfit-m{self.number}"

    @property
    def address(self) -> str:
        return f"{NETWORK}.{10 + self.number}"

    def inside(self, *command: str) -> tuple[str, ...]:
        """The command in this machine's network."""
        return "nsenter", f"--net=/run/netns/{self.name}", *command

    def cut_off(self) -> None:
        ip("link", "set", self.name, "down")

    def connect(self) -> None:
        ip("link", "set", self.name, "up")

    def make(self) -> None:
        ip("netns", "add", self.name)
        ip("link", "add", self.name, "type", "veth", "peer", "name", "eth0", "netns", self.name)
        ip("link", "set", self.name, "master", BRIDGE, "up")
        ip("-n", self.name, "link", "set", "lo", "up")
        ip("-n", self.name, "address", "add", f"{self.address}/24", "dev", "eth0")
        ip("-n", self.name, "link", "set", "eth0", "up")
        ip("-n", self.name, "route", "add", "default", "via", HOST)


@contextmanager
def machines(count: int) -> Iterator[list[Machine]]:
    made = [Machine(number) for number in range(1, count + 1)]
    _remove(made)
    try:
        ip("link", "add", BRIDGE, "type", "bridge")
        ip("address", "add", f"{HOST}/24", "dev", BRIDGE)
        ip("link", "set", BRIDGE, "up")
        for machine in made:
            machine.make()
        yield made
    finally:
        _remove(made)


def _remove(made: list[Machine]) -> None:
    """Also what a run that was killed has left."""
    for machine in made:
        with suppress(subprocess.CalledProcessError):
            ip("netns", "delete", machine.name)
        with suppress(subprocess.CalledProcessError):
            ip("link", "delete", machine.name)
    with suppress(subprocess.CalledProcessError):
        ip("link", "delete", BRIDGE)
