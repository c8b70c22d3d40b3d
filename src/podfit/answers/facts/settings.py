"""Settings of a cluster that its objects do not show: how each kubelet is configured, and whether room is made.

A kubelet's manager policies, swap and feature gates are read from /configz through nodes/proxy, a right that not
everybody has. Where it is not read a node is taken for one without static managers and without swap, and whoever
answers says so when it matters. Whether the cluster makes room for resizes (docs/room.md) is in a Lease that the
controller renews.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from podfit.answers.facts.kinds import LEASES
from podfit.client.rest import Client
from podfit.core.errors import ApiError
from podfit.core.features import KNOWN, FeatureGateError, FeatureGates
from podfit.core.times import parse_time

LEASE, NAMESPACE, MODE = "podfit-room", "kube-system", "podfit.dev/make-room"
PREEMPT = "preempt"


class MakeRoomSetting(msgspec.Struct, frozen=True):
    """`mode` is "shrink" or "preempt", empty where no room is made; `problem` says why that is not known."""

    mode: str = ""
    problem: str = ""


async def read_room(client: Client, now: datetime) -> MakeRoomSetting:
    try:
        lease = await client.get(LEASES, LEASE, NAMESPACE)
    except ApiError as error:
        return MakeRoomSetting(problem="" if error.code == 404 else error.message)
    if not lease.spec.renew_time:
        return MakeRoomSetting()
    lasts = timedelta(seconds=lease.spec.lease_duration_seconds or 0)
    if abs(now - parse_time(lease.spec.renew_time)) >= lasts:  # too old, or of a time to come: the clock was set back
        return MakeRoomSetting()
    return MakeRoomSetting(lease.metadata.annotations.get(MODE, ""))


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
