"""Reads VerticalPodAutoscalers, where their CRD is installed.

They belong to the autoscaler project (autoscaling.k8s.io/v1); what is not read here is passed over. Which pods one is
for is decided as its recommender decides it: by the selector of the workload that it names, the oldest of several.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from podfit.answers.facts.target import VPA, WORKLOADS, Target, query_of
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta import codec
from podfit.api.meta.base import ResourceList
from podfit.api.meta.selector_text import parse_labels
from podfit.client.rest import Client
from podfit.core.errors import ApiError
from podfit.core.selectors import Selector


class Reference(msgspec.Struct, frozen=True, rename="camel"):
    kind: str = ""
    name: str = ""
    api_version: str = ""

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


class ContainerPolicy(msgspec.Struct, frozen=True, rename="camel"):
    container_name: str = "*"
    mode: str = "Auto"
    min_allowed: ResourceList = msgspec.field(default_factory=dict)
    max_allowed: ResourceList = msgspec.field(default_factory=dict)
    controlled_resources: tuple[str, ...] = ("cpu", "memory")
    controlled_values: str = "RequestsAndLimits"


class UpdatePolicy(msgspec.Struct, frozen=True, rename="camel"):
    update_mode: str = ""
    min_replicas: int | None = None


class ResourcePolicy(msgspec.Struct, frozen=True, rename="camel"):
    container_policies: tuple[ContainerPolicy, ...] = ()


class Spec(msgspec.Struct, frozen=True, rename="camel"):
    target_ref: Reference = Reference()
    update_policy: UpdatePolicy = UpdatePolicy()
    resource_policy: ResourcePolicy = ResourcePolicy()


class Recommended(msgspec.Struct, frozen=True, rename="camel"):
    container_name: str = ""
    target: ResourceList = msgspec.field(default_factory=dict)
    lower_bound: ResourceList = msgspec.field(default_factory=dict)
    upper_bound: ResourceList = msgspec.field(default_factory=dict)
    uncapped_target: ResourceList = msgspec.field(default_factory=dict)


class Recommendation(msgspec.Struct, frozen=True, rename="camel"):
    container_recommendations: tuple[Recommended, ...] = ()


class Condition(msgspec.Struct, frozen=True, rename="camel"):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""


class Status(msgspec.Struct, frozen=True, rename="camel"):
    recommendation: Recommendation = Recommendation()
    conditions: tuple[Condition, ...] = ()


class _Written(msgspec.Struct, frozen=True, rename="camel"):
    manager: str = ""
    time: str = ""
    subresource: str = ""


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    namespace: str = ""
    creation_timestamp: str = ""
    managed_fields: tuple[_Written, ...] = ()


class Vpa(msgspec.Struct, frozen=True, rename="camel"):
    metadata: _Meta = _Meta()
    spec: Spec = Spec()
    status: Status = Status()

    @property
    def mode(self) -> str:
        """Recreate where none is said."""
        return self.spec.update_policy.update_mode or "Recreate"

    @property
    def updated(self) -> str:
        """When its recommender last wrote the status, by the managed fields; else the last change of a condition."""
        written = [
            field.time
            for field in self.metadata.managed_fields
            if field.time and (field.subresource == "status" or "recommender" in field.manager)
        ]
        return max(written or [condition.last_transition_time for condition in self.status.conditions], default="")

    def recommended(self, container: str) -> Recommended | None:
        found = self.status.recommendation.container_recommendations
        return next((recommendation for recommendation in found if recommendation.container_name == container), None)


class _Vpas(msgspec.Struct, frozen=True, rename="camel"):
    items: tuple[Vpa, ...] = ()


class _Selected(msgspec.Struct, frozen=True, rename="camel"):
    selector: Any = None


class _Scaled(msgspec.Struct, frozen=True, rename="camel"):
    spec: _Selected = _Selected()


class Vpas(msgspec.Struct, frozen=True):
    """`state` says whether there are any: served, absent (no CRD) or unread. `selectors` are those of their targets."""

    state: Literal["served", "absent", "unread"] = "absent"
    items: tuple[Vpa, ...] = ()
    selectors: Mapping[tuple[str, str], Selector] = msgspec.field(default_factory=dict)
    unread: tuple[str, ...] = ()

    def of(self, pod: Pod) -> Vpa | None:
        mine = [
            vpa
            for vpa in self.items
            if vpa.metadata.namespace == pod.metadata.namespace
            and (selector := self.selectors.get((vpa.metadata.namespace, vpa.metadata.name)))
            and selector.matches(pod.metadata.labels)
        ]
        return min(mine, key=lambda vpa: (vpa.metadata.creation_timestamp, vpa.metadata.name), default=None)


async def read_vpas(client: Client, namespace: str) -> Vpas:
    """Of a namespace, or of all; with the selectors of what they are for."""
    where = f"namespaces/{namespace}/" if namespace else ""
    try:
        body = await client.request("GET", f"{VPA.path}/{where}{VPA.resource}")
    except ApiError as error:
        if error.code == 404:
            return Vpas()
        return Vpas("unread", unread=(f"verticalpodautoscalers: {error.message}",))
    items = codec.decode(body, _Vpas).items
    found = await asyncio.gather(*(_selector(client, vpa) for vpa in items))
    selectors = {
        (vpa.metadata.namespace, vpa.metadata.name): selector
        for vpa, selector in zip(items, found, strict=True)
        if isinstance(selector, Selector)
    }
    return Vpas("served", items, selectors, tuple(problem for problem in found if isinstance(problem, str)))


async def read_vpa(client: Client, name: str, namespace: str) -> Vpa:
    """Raises ApiError, with words for a cluster that has no such kind."""
    try:
        body = await client.request("GET", Target(VPA, name).path(namespace))
    except ApiError as error:
        if error.code == 404 and not error.details.get("name"):
            text = "this cluster does not serve verticalpodautoscalers: the autoscaler's CRDs are not installed"
            raise ApiError(404, "NotFound", text) from error
        raise
    return codec.decode(body, Vpa)


async def _selector(client: Client, vpa: Vpa) -> Selector | str:
    """Of the workload that it is for, or why that is not known."""
    told = f"the pods of vpa/{vpa.metadata.name}"
    try:
        return await selector_of(client, vpa)
    except ApiError as error:
        return f"{told}: {error.message}"
    except LookupError as error:
        return f"{told}: {error.args[0]}"


async def selector_of(client: Client, vpa: Vpa) -> Selector:
    """ApiError: the target was not read. LookupError: its kind is not known here."""
    ref = vpa.spec.target_ref
    kind = next((kind for kind in WORKLOADS if kind.kind == ref.kind), None)
    if kind is None:
        raise LookupError(f"its target {ref} is of a kind that is not followed here")
    body = await client.request("GET", Target(kind, ref.name).path(vpa.metadata.namespace))
    return parse_labels(query_of(codec.decode(body, _Scaled).spec.selector))


def selected(pods: Iterable[Pod], selector: Selector) -> tuple[Pod, ...]:
    return tuple(pod for pod in pods if selector.matches(pod.metadata.labels))


class EstimateStep(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One step of the estimate of a target: its value after it."""

    container: str
    resource: str
    step: str
    value: str
    because: str
