"""Export: the allocated sizes of running pods as patches, values or manifests, so that the next rollout keeps them.

Accepted is what the node has allocated. While a resize waits or was found infeasible that is not what the spec says,
and the allocated size is taken: a template must not ask for what no node has granted. All amounts of all containers are
written, not only those that differ from the template, because the template may already hold an earlier export.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from podfit.answers.facts.pod_state import FAILING, IN_PROGRESS, RESOURCES, SETTLED, Size, sizes_of, state_of
from podfit.answers.facts.readable import readable_amount
from podfit.answers.facts.snapshot import Snapshot
from podfit.answers.facts.target import Target
from podfit.api.core.v1.pods.aggregate import all_containers
from podfit.api.core.v1.pods.containers import ResourceRequirements
from podfit.api.core.v1.pods.phase import is_active
from podfit.api.core.v1.pods.types import Pod, PodSpec
from podfit.core.quantity import ZERO, Quantity
from podfit.decide.node.room.annotation import RoomRecord, gave

NAMED = 3  # pods that a note names before it counts


class Form(StrEnum):
    KUSTOMIZE = "kustomize"
    HELM = "helm"
    PATCH = "patch"


class RunningAmount(msgspec.Struct, frozen=True, kw_only=True):
    """One amount that a pod runs with; `amount` is empty where it has none, `container` for the pod as a whole."""

    pod: str
    container: str
    resource: str
    side: str
    desired: str
    amount: str

    @property
    def value(self) -> str:
        """`"app" cpu request`"""
        about = f'"{self.container}"' if self.container else "the pod's"
        return f"{about} {self.resource} {self.side[:-1]}"


class Sized(msgspec.Struct, frozen=True, kw_only=True):
    """A container's amounts, or the pod's when `container` is empty. A limit is None where the template's has to go."""

    container: str
    field: str
    requests: dict[str, str]
    limits: dict[str, str | None]

    @property
    def resources(self) -> dict[str, Any]:
        sides: dict[str, Any] = {"requests": self.requests, "limits": self.limits}
        return {name: amounts for name, amounts in sides.items() if amounts}


class Export(msgspec.Struct, frozen=True, kw_only=True):
    """`pods` are those it was read from, `containers` how many the template has, sized or not; `notes` what has to be
    known before it is deployed.
    """

    target: Target
    pods: tuple[str, ...]
    containers: int
    sizes: tuple[Sized, ...]
    notes: tuple[str, ...]


def export(target: Target, snapshot: Snapshot) -> Export:
    """The largest accepted size of every container that the template has."""
    pods = running(snapshot)
    held = [_own(size, gave(pod)) for pod in pods for size in held_by(pod, snapshot)]
    template = snapshot.template or (pods[0].spec if pods else PodSpec())
    sizes, foreign = _merged(held, template, len(pods))
    return Export(
        target=target,
        pods=tuple(pod.metadata.name for pod in pods),
        containers=len(template.init_containers) + len(template.containers),
        sizes=sizes,
        notes=(
            *_gifts(pods),
            *_notes(held, len(pods)),
            *_foreign(foreign),
            *(f"not read: {line}" for line in snapshot.unread),
        ),
    )


def with_sizes(exported: Export, wanted: Mapping[str, ResourceRequirements]) -> Export:
    """The export with other amounts of CPU and memory for these containers."""

    def sized(size: Sized) -> Sized:
        own = wanted.get(size.container)
        if own is None:
            return size
        requests = {**size.requests, **{name: str(amount) for name, amount in own.requests.items()}}
        limits = {**size.limits, **{name: str(amount) for name, amount in own.limits.items()}}
        return msgspec.structs.replace(size, requests=requests, limits=limits)

    return msgspec.structs.replace(exported, sizes=tuple(map(sized, exported.sizes)))


def running(snapshot: Snapshot) -> list[Pod]:
    """The pods that a node has allocated something to and that are not about to go."""
    return [pod for pod in snapshot.pods if pod.spec.node_name and is_active(pod)]


def held_by(pod: Pod, snapshot: Snapshot) -> Iterator[RunningAmount]:
    """What it runs with. Once a node has granted a resize, the spec says what was allocated, limits included."""
    sizes = tuple(sizes_of(pod, snapshot.age.gates))
    granted = state_of(pod, sizes, snapshot.age)[0] in (SETTLED, IN_PROGRESS, FAILING)
    for size in sizes:
        yield RunningAmount(
            pod=pod.metadata.name,
            container=size.container,
            resource=size.resource,
            side=size.side,
            desired=size.desired,
            amount=_accepted(size, granted=granted),
        )


def _own(held: RunningAmount, gift: RoomRecord | None) -> RunningAmount:
    """The amount that the pod had before it was shrunk for another one, where that was changed."""
    before = gift.before.get(held.container) if gift else None
    amount = getattr(before, held.side).get(held.resource) if before else None
    return held if amount is None else msgspec.structs.replace(held, desired=str(amount), amount=str(amount))


def _accepted(size: Size, *, granted: bool) -> str:
    return size.desired if granted else size.allocated


def _merged(held: Sequence[RunningAmount], template: PodSpec, pods: int) -> tuple[tuple[Sized, ...], list[str]]:
    """Sizes of what the template has, and the names of containers that it has not."""
    found: dict[str, dict[tuple[str, str], list[str]]] = {}
    for size in held:
        found.setdefault(size.container, {}).setdefault((size.side, size.resource), []).append(size.amount)
    places = {"": "resources"} if template.resources is not None else {}
    places |= {container.name: "initContainers" for container in template.init_containers}
    places |= {container.name: "containers" for container in template.containers}
    sizes = tuple(_sized(name, field, found[name], template, pods) for name, field in places.items() if name in found)
    return sizes, [name for name in found if name and name not in places]


def _sized(
    name: str, field: str, amounts: Mapping[tuple[str, str], Sequence[str]], template: PodSpec, pods: int
) -> Sized:
    requests = {resource: _largest(of_pods) for (side, resource), of_pods in amounts.items() if side == "requests"}
    limits: dict[str, str | None] = {}
    for resource in RESOURCES:
        limited = [amount for amount in amounts.get(("limits", resource), ()) if amount]
        if len(limited) == pods:
            limits[resource] = _largest(limited)
        elif resource in _limits_of(name, template):
            limits[resource] = None  # a pod without a limit has the largest one
    return Sized(container=name, field=field, requests={k: v for k, v in requests.items() if v}, limits=limits)


def _limits_of(name: str, template: PodSpec) -> Mapping[str, Quantity]:
    if not name:
        return template.resources.limits if template.resources else {}
    containers = all_containers(template)
    return next(container.resources.limits for container in containers if container.name == name)


def _largest(amounts: Sequence[str]) -> str:
    return max((amount for amount in amounts if amount), key=Quantity.parse, default="")


# -------------------------------------------------------------------- what has to be known


def _notes(held: Sequence[RunningAmount], pods: int) -> Iterator[str]:
    for size in held:
        if size.desired != size.amount:
            yield (
                f"{size.pod} waits: {size.value} {size.desired or 'none'} is asked for, {size.amount or 'none'} is"
                " granted and exported"
            )
    by_value: dict[str, dict[str, list[str]]] = {}
    for size in held:
        by_value.setdefault(size.value, {}).setdefault(size.amount or "none", []).append(size.pod)
    for value, amounts in by_value.items():
        said = sum(len(names) for names in amounts.values())
        if len(amounts) > 1 or said < pods:
            told = ", ".join(f"{amount} ({_named(names)})" for amount, names in amounts.items())
            rest = f", none ({pods - said} more)" if said < pods else ""
            yield f"pods differ: {value} is {told}{rest}; the largest is exported"


def _gifts(pods: Sequence[Pod]) -> Iterator[str]:
    for pod in pods:
        if found := gave(pod):
            yield (
                f"{pod.metadata.name} was shrunk to make room for {found.to} ({found.text}); "
                "the size that it had before is exported"
            )


def _named(pods: Sequence[str]) -> str:
    more = f" and {len(pods) - NAMED} more" if len(pods) > NAMED else ""
    return ", ".join(pods[:NAMED]) + more


def _foreign(names: Sequence[str]) -> Iterator[str]:
    for name in names:
        yield f'container "{name}" is not in the template (a webhook adds it?) and is left out'


# -------------------------------------------------------------------- forms


def document(exported: Export, form: Form) -> dict[str, Any]:
    """The document that is to be written to a file."""
    if form is Form.HELM:
        return _values(exported)
    target, spec = exported.target, _spec(exported.sizes)
    patch: dict[str, Any] = {"spec": {"template": {"spec": spec}} if target.is_workload else spec}
    if form is Form.PATCH:
        return patch
    return {"apiVersion": target.kind.api_version, "kind": target.kind.kind, "metadata": {"name": target.name}, **patch}


def placed(written: dict[str, Any], namespace: str, form: Form) -> dict[str, Any]:
    """One of several documents, which may be of several namespaces; values say none."""
    if form is Form.HELM:
        return written
    return {**written, "metadata": {**written["metadata"], "namespace": namespace}}


def totals(exported: Sequence[Export]) -> Iterator[str]:
    """What all that run request together, with the sizes that are exported."""
    pods = sum(len(one.pods) for one in exported)
    yield f"{len(exported)} workloads, {pods} pods"
    for resource in RESOURCES:
        amounts = [amount for one in exported for amount in _requests(one, resource) for _ in one.pods]
        if amounts:
            yield f"{resource} requests together: {readable_amount(resource, str(sum(amounts, ZERO)))}"


def _requests(exported: Export, resource: str) -> list[Quantity]:
    """What a pod asks for as a whole, else what its containers do."""
    asking = [size for size in exported.sizes if resource in size.requests]
    level = [size for size in asking if not size.container]
    return [Quantity.parse(size.requests[resource]) for size in level or asking]


def _spec(sizes: Sequence[Sized]) -> dict[str, Any]:
    spec: dict[str, Any] = {}
    for size in sizes:
        if not size.container:
            spec["resources"] = size.resources
        else:
            spec.setdefault(size.field, []).append({"name": size.container, "resources": size.resources})
    return spec


def _values(exported: Export) -> dict[str, Any]:
    """`resources` for a chart with one container, as `helm create` makes it; by container name for several."""
    named = [size for size in exported.sizes if size.container]
    values: dict[str, Any] = {size.container: {"resources": size.resources} for size in named if size.resources}
    if exported.containers == 1 and named:
        values = {"resources": named[0].resources}
    level = [size.resources for size in exported.sizes if not size.container]
    return values | ({"podResources": level[0]} if level else {})
