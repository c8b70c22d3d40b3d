"""The largest size that running pods can have now (`podfit plan --fit`), and who stands in the way of more.

Each resource is tried by itself, the other stays. A size fits when a plan of it does, for all of the target's pods
together; the largest is found by halving what is between today's request and the largest node. The plan of the next
step says what speaks against more.
"""

from collections.abc import Iterable

import msgspec

from podfit.answers.facts.snapshot import Snapshot
from podfit.answers.plan.amounts import Amount
from podfit.answers.plan.plan import plan
from podfit.answers.plan.resize_request import ResizeRequest, meant, resources_of
from podfit.answers.plan.result import FITS, NOT_KNOWN, Plan, PodPlan
from podfit.core.quantity import ZERO, Quantity
from podfit.core.resources import CPU, MEMORY

STEPS = {CPU: Quantity.of_milli(1), MEMORY: Quantity.of_bytes(1 << 20)}
"""By resource, what sizes are multiples of."""
MOST_HOLDERS = 5


class LargestSize(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One resource: `now` is the largest request of the pods, `largest` what all of them can have; empty when not even
    `now` is theirs, or the node may not be asked. `restarts` are containers that a resize to it would restart.

    `more` is the next size, `pod` the first that cannot have it, `verdict` and `text` why not, `blocked_by` who holds
    the room, largest first.
    """

    resource: str
    now: str
    largest: str = ""
    restarts: tuple[str, ...] = ()
    more: str = ""
    pod: str = ""
    verdict: str = ""
    text: str = ""
    short_by: str = ""
    blocked_by: tuple[str, ...] = ()

    @property
    def grows(self) -> bool:
        return bool(self.largest) and Quantity.parse(self.largest) > Quantity.parse(self.now or "0")


class Fit(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`sizes` is empty when no pod runs."""

    server: str
    namespace: str
    pods: tuple[str, ...] = ()
    sizes: tuple[LargestSize, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        """Whether the pods can have what they have now, and nothing is unknown."""
        return bool(self.sizes) and all(size.largest for size in self.sizes)


def fit(snapshot: Snapshot, container: str = "") -> Fit:
    """Raises RequestError when a pod has several containers and none is named, or has no such one."""
    sizes = tuple(_largest(snapshot, container, name) for name in STEPS) if snapshot.pods else ()
    return Fit(
        server=snapshot.age.version,
        namespace=snapshot.namespace,
        pods=tuple(pod.metadata.name for pod in snapshot.pods),
        sizes=sizes,
        notes=tuple(f"not read: {line}" for line in snapshot.unread),
    )


def _largest(snapshot: Snapshot, container: str, resource: str) -> LargestSize:
    step = STEPS[resource].nano

    def planned(steps: int) -> Plan:
        amount = Quantity(steps * step, STEPS[resource].format)
        return plan(snapshot, ResizeRequest({resource: Amount(amount)}, container))

    has = (resources_of(meant(container, pod), pod).requests for pod in snapshot.pods)
    now = max(requests.get(resource, ZERO) for requests in has)
    least = max(-(-now.nano // step), 1)
    fits, plan_that_fits = least - 1, None
    refused, plan_refused = least, planned(least)
    if plan_refused.good:
        fits, plan_that_fits = least, plan_refused
        refused = max(_whole_nodes(snapshot, resource) // step, least) + 1
        plan_refused = planned(refused)
    while refused - fits > 1:
        middle = (fits + refused) // 2
        tried = planned(middle)
        if tried.good:
            fits, plan_that_fits = middle, tried
        else:
            refused, plan_refused = middle, tried
    against = next(pod for pod in plan_refused.pods if not pod.good)  # there is one: the size exceeds every node
    known = against.verdict != NOT_KNOWN
    return LargestSize(
        resource=resource,
        now=str(now) if now else "",
        largest=_text(fits, resource) if plan_that_fits is not None and known else "",
        restarts=_restarts(plan_that_fits.pods) if plan_that_fits is not None and fits > least else (),
        more=_text(refused, resource),
        pod=against.pod,
        verdict=against.verdict,
        text=against.text,
        short_by=against.short_by,
        blocked_by=against.blocked_by[:MOST_HOLDERS],
    )


def _text(steps: int, resource: str) -> str:
    return str(Quantity(steps * STEPS[resource].nano, STEPS[resource].format))


def _whole_nodes(snapshot: Snapshot, resource: str) -> int:
    """The size of the largest node that is known, in nano units."""
    amounts = (node.status.allocatable.get(resource, ZERO).nano for node in snapshot.nodes.values())
    return max(amounts, default=0)


def _restarts(pods: Iterable[PodPlan]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(restart.container for pod in pods if pod.verdict == FITS for restart in pod.restarts))
