"""Addresses of pods on simulated nodes: no two of a cluster are alike, and nothing on any network leads to them.

They are of 240.0.0.0/8, which is reserved for a use that never came (RFC 1112, 4): no machine routes it.
"""

from ipaddress import IPv4Network

from podfit.kubelet.runtime.errors import CRIError

RANGE = IPv4Network("240.0.0.0/8")
MASK = 20
MOST_NODES = 1 << (MASK - RANGE.prefixlen)


class SimulatedAddresses:
    """Those of the node with this number, from 0; of `MOST_NODES` and more some share theirs."""

    def __init__(self, number: int) -> None:
        first = int(RANGE.network_address) + (number % MOST_NODES << (32 - MASK))
        self.network = IPv4Network((first, MASK))
        self._next = 1
        self._taken: dict[str, str] = {}
        self._free: list[str] = []

    def take(self, owner: str) -> str:
        """Raises CRIError when all are taken."""
        if self._free:
            address = self._free.pop()
        elif self._next < self.network.num_addresses - 1:
            address = str(self.network[self._next])
            self._next += 1
        else:
            raise CRIError(f"every address of {self.network} is taken")
        self._taken[owner] = address
        return address

    def give_back(self, owner: str) -> None:
        if (address := self._taken.pop(owner, None)) is not None:
            self._free.append(address)
