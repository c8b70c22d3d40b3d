"""Whether the cluster autoscaler makes a place for pods whose resize waits, before anybody evicts them.

Who holds its Lease says so there. Whoever may not read it does as if nobody did.
"""

from podfit.api.coordination.v1.types import Lease
from podfit.client.election import is_renewed, told_by_holder
from podfit.client.resource import known
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.core.errors import ApiError

LEASE, NAMESPACE, MAKES_PLACES = "cluster-autoscaler", "kube-system", "podfit.dev/makes-places"
_LEASES = known(Lease, "leases", group="coordination.k8s.io")


def told(*, makes_places: bool) -> dict[str, str]:
    """Annotations of the Lease."""
    return {MAKES_PLACES: "true"} if makes_places else {}


async def makes_places(client: Client, clock: Clock) -> bool:
    try:
        lease = await client.get(_LEASES, LEASE, NAMESPACE)
    except (ApiError, ConnectionError):
        return False
    return is_renewed(lease, clock.now()) and told_by_holder(lease).get(MAKES_PLACES) == "true"
