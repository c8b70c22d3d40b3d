"""The kinds of networking.k8s.io."""

from typing import Any

from podfit.api.columns import AGE, NAME, NONE, age
from podfit.api.meta.v1.types import LabelSelector
from podfit.api.networking.v1.types import Ingress, IngressClass, NetworkPolicy
from podfit.api.registry import STATUS, Column, ResourceInfo

_GROUP = "networking.k8s.io"
_HOSTS = 3


def _ingress_row(ingress: Ingress, now: str) -> list[Any]:
    spec = ingress.spec
    hosts = [rule.host for rule in spec.rules if rule.host]
    shown = ",".join(hosts[:_HOSTS]) or "*"
    if len(hosts) > _HOSTS:
        shown += f" + {len(hosts) - _HOSTS} more..."
    addresses = ",".join(each.ip or each.hostname for each in ingress.status.load_balancer.ingress)
    ports = "80, 443" if spec.tls else "80"
    return [ingress.metadata.name, spec.ingress_class_name or NONE, shown, addresses, ports, age(ingress, now)]


def _class_row(found: IngressClass, now: str) -> list[Any]:
    parameters = found.spec.parameters
    shown = NONE
    if parameters is not None:
        group = f".{parameters.api_group}" if parameters.api_group else ""
        shown = f"{parameters.kind}{group}/{parameters.name}"
    return [found.metadata.name, found.spec.controller, shown, age(found, now)]


def _policy_row(policy: NetworkPolicy, now: str) -> list[Any]:
    return [policy.metadata.name, _selector(policy.spec.pod_selector), age(policy, now)]


def _selector(selector: LabelSelector) -> str:
    parts = [f"{key}={value}" for key, value in sorted(selector.match_labels.items())]
    for each in selector.match_expressions:
        values = ",".join(sorted(each.values))
        match each.operator:
            case "In":
                parts.append(f"{each.key} in ({values})")
            case "NotIn":
                parts.append(f"{each.key} notin ({values})")
            case "Exists":
                parts.append(each.key)
            case _:
                parts.append(f"!{each.key}")
    return ",".join(parts) or NONE


KINDS: tuple[ResourceInfo, ...] = (
    ResourceInfo(
        type=IngressClass,
        group=_GROUP,
        resource="ingressclasses",
        singular="ingressclass",
        namespaced=False,
        counted=lambda o: o.spec,
        row=_class_row,
        columns=(
            NAME,
            Column("Controller", description="Who serves it."),
            Column("Parameters", description="What configures it."),
            AGE,
        ),
    ),
    ResourceInfo(
        type=Ingress,
        group=_GROUP,
        resource="ingresses",
        singular="ingress",
        short_names=("ing",),
        subresources=(STATUS,),
        counted=lambda o: o.spec,
        row=_ingress_row,
        columns=(
            NAME,
            Column("Class", description="The class of it."),
            Column("Hosts", description="The hosts."),
            Column("Address", description="Where it is reached."),
            Column("Ports", description="Its ports."),
            AGE,
        ),
    ),
    ResourceInfo(
        type=NetworkPolicy,
        group=_GROUP,
        resource="networkpolicies",
        singular="networkpolicy",
        short_names=("netpol",),
        counted=lambda o: o.spec,
        row=_policy_row,
        columns=(NAME, Column("Pod-Selector", description="The pods that it is about."), AGE),
    ),
)
