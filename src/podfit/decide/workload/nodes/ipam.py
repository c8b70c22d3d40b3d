"""The ranges of addresses of nodes: of the cluster's range each has a part of its own, the lowest that is free."""

from collections.abc import Iterable
from ipaddress import IPv4Network

import msgspec

DEFAULT_CLUSTER_RANGE = "10.244.0.0/16"
DEFAULT_MASK = 24
WIDEST = 16
"""How many bits a node's mask may have more than the cluster's, as upstream has it."""


class BadRange(ValueError):
    """The text says what is wrong, in terms of the flags."""


class NodeRanges(msgspec.Struct, frozen=True):
    """`cluster` is the cluster's range; a node's part of it has a mask of so many bits."""

    cluster: IPv4Network
    mask: int

    @classmethod
    def of(cls, cluster: str, mask: int) -> "NodeRanges":
        """Raises BadRange."""
        try:
            network = IPv4Network(cluster)
        except ValueError as error:
            raise BadRange(f"--cluster-cidr {cluster}: {error}") from None
        if not network.prefixlen <= mask <= min(30, network.prefixlen + WIDEST):
            least, most = network.prefixlen, min(30, network.prefixlen + WIDEST)
            raise BadRange(f"--node-cidr-mask-size {mask}: for {cluster} it is from {least} to {most}")
        return cls(network, mask)

    def free(self, taken: Iterable[str]) -> str:
        """The lowest part that meets none of the networks `taken`; empty when all are. Networks of others do not count,
        and neither does what is none.
        """
        size = 1 << (32 - self.mask)
        first, count = int(self.cluster.network_address), 1 << (self.mask - self.cluster.prefixlen)
        used = set[int]()
        for text in taken:
            if (network := _network(text)) is not None and network.overlaps(self.cluster):
                low = max(0, int(network.network_address) - first) // size
                high = min(count - 1, (int(network.broadcast_address) - first) // size)
                used.update(range(low, high + 1))
        number = next((number for number in range(count) if number not in used), None)
        return "" if number is None else str(IPv4Network((first + number * size, self.mask)))


def _network(text: str) -> IPv4Network | None:
    try:
        return IPv4Network(text)
    except ValueError:
        return None
