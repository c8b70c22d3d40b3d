"""Kubelet settings that a Node object does not show: manager policies, swap and feature gates.

Read from /configz through nodes/proxy, a right that not everybody has. Where it is not read a node is taken for one
without static managers and without swap, and whoever answers says so when it matters.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from podfit.client.rest import Client
from podfit.core.errors import ApiError
from podfit.core.features import KNOWN, FeatureGateError, FeatureGates


class Policies(msgspec.Struct, frozen=True, kw_only=True):
    """`problem` says why nothing is known; then the rest is how most nodes are."""

    cpu_manager: str = "none"
    memory_manager: str = "None"
    swap: bool = False
    gates: Mapping[str, bool] = msgspec.field(default_factory=dict)
    problem: str = ""

    @property
    def fixed(self) -> tuple[str, ...]:
        """Resources that a Guaranteed pod holds for itself here, and so cannot have more or less of."""
        static = (("cpu", self.cpu_manager == "static"), ("memory", self.memory_manager == "Static"))
        return tuple(name for name, holds in static if holds)

    def on(self, gates: FeatureGates) -> FeatureGates:
        """The gates of a release with those that this kubelet was told. A set that cannot be is not its set."""
        told = {name: on for name, on in self.gates.items() if name in KNOWN and not KNOWN[name].locked}
        try:
            return FeatureGates({**gates.overrides, **told})
        except FeatureGateError:
            return gates


async def read_policies(client: Client, node: str) -> Policies:
    try:
        body = await client.request("GET", f"/api/v1/nodes/{node}/proxy/configz")
        return policies_of(msgspec.json.decode(body))
    except ApiError as error:
        return Policies(problem=error.message)
    except (msgspec.DecodeError, AttributeError) as error:
        return Policies(problem=f"its configuration cannot be read: {error}")


def policies_of(configz: Any) -> Policies:
    config: Mapping[str, Any] = configz.get("kubeletconfig") or {}
    return Policies(
        cpu_manager=config.get("cpuManagerPolicy") or "none",
        memory_manager=config.get("memoryManagerPolicy") or "None",
        swap=(config.get("memorySwap") or {}).get("swapBehavior") == "LimitedSwap",
        gates=config.get("featureGates") or {},
    )
