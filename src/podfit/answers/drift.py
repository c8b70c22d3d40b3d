"""Drift: compares the sizes that pods run with to those that their workload's template gives.

Compared is what a pod made from the template today would get: defaults of the API and of LimitRanges count as said.
"""

from collections.abc import Iterator, Sequence

import msgspec

from podfit.answers.export import held_by, running
from podfit.answers.facts.pod_state import RESOURCES
from podfit.answers.facts.snapshot import Snapshot
from podfit.answers.facts.target import Target
from podfit.answers.plan.amounts import RequestError
from podfit.answers.plan.resize_request import NOTHING
from podfit.api.core.v1.pods.aggregate import all_containers
from podfit.api.core.v1.pods.defaults import default_pod
from podfit.api.core.v1.pods.types import Pod, PodSpec
from podfit.core.quantity import Quantity
from podfit.decide.limits.limit_range import add_defaults
from podfit.decide.pod.allocated import resizable

Place = tuple[str, str, str]


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """Amounts of one pod and value: said by the template, asked for, granted. Empty where there is none."""

    pod: str
    container: str
    resource: str
    side: str
    template: str
    desired: str
    allocated: str


class Drift(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`against` is "template", or the name of the manifest."""

    target: str
    namespace: str
    against: str
    drifted: bool
    pods: int
    differences: tuple[Difference, ...]
    notes: tuple[str, ...] = ()


def drift(target: Target, snapshot: Snapshot, *, manifest: PodSpec | None = None, name: str = "") -> Drift:
    """Compared with the manifest, or with the workload's own template. RequestError: a pod without manifest."""
    template = manifest or snapshot.template
    if template is None:
        raise RequestError(f"{target} has no template to compare with: name its manifest with -f")
    pods = running(snapshot)
    said = dict(_said(template, snapshot))
    found = tuple(difference for pod in pods for difference in _differences(pod, said, snapshot))
    names = {container.name for container in all_containers(template)}
    return Drift(
        target=str(target),
        namespace=snapshot.namespace,
        against=name or "template",
        drifted=bool(found),
        pods=len(pods),
        differences=found,
        notes=tuple(_notes(pods, names, snapshot)),
    )


def _said(template: PodSpec, snapshot: Snapshot) -> Iterator[tuple[Place, str]]:
    """What a pod of this template would ask for."""
    gates = snapshot.age.gates
    pod = add_defaults(default_pod(Pod(spec=template), gates), snapshot.limit_ranges)
    pod = default_pod(pod, gates)
    levels = [("", pod.spec.resources or NOTHING)] + [
        (container.name, container.resources) for container in resizable(pod, gates)
    ]
    for name, resources in levels:
        for resource in RESOURCES:
            for side in ("requests", "limits"):
                amount = getattr(resources, side).get(resource)
                yield (name, resource, side), "" if amount is None else str(amount)


def _differences(pod: Pod, said: dict[Place, str], snapshot: Snapshot) -> Iterator[Difference]:
    held = {(size.container, size.resource, size.side): size for size in held_by(pod, snapshot)}
    containers = {container.name for container in resizable(pod, snapshot.age.gates)} | {""}
    for place in dict.fromkeys((*said, *held)):
        has, template = held.get(place), said.get(place)
        if template is None or place[0] not in containers:
            continue  # a container that only one of them has is no size
        desired, allocated = (has.desired, has.amount) if has else ("", "")
        if not _same(template, desired) or not _same(template, allocated):
            name, resource, side = place
            yield Difference(
                pod=pod.metadata.name,
                container=name,
                resource=resource,
                side=side,
                template=template,
                desired=desired,
                allocated=allocated,
            )


def _same(one: str, other: str) -> bool:
    return one == other or bool(one and other and Quantity.parse(one) == Quantity.parse(other))


def _notes(pods: Sequence[Pod], names: set[str], snapshot: Snapshot) -> Iterator[str]:
    run = {container.name for pod in pods for container in all_containers(pod.spec)}
    for name in sorted(run - names):
        yield f'container "{name}" runs but is not in the template, and is not compared'
    for name in sorted(names - run) if pods else ():
        yield f'container "{name}" of the template does not run yet'
    yield from (f"not read: {line}" for line in snapshot.unread)
