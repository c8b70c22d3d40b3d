"""The kinds of networking.k8s.io."""

from collections.abc import Sequence
from typing import Any

from podfit.api.core.v1.services.columns import balanced
from podfit.api.meta import selectors
from podfit.api.meta.columns import AGE, NAME, NONE, age
from podfit.api.meta.resource_info import STATUS, Column, ResourceInfo
from podfit.api.networking.v1.types import Ingress, IngressClass, IngressRule, NetworkPolicy

_GROUP = "networking.k8s.io"
_HOSTS = 3


def _ingress_row(ingress: Ingress, now: str) -> list[Any]:
    spec = ingress.spec
    ports = "80, 443" if spec.tls else "80"
    return [
        ingress.metadata.name,
        NONE if spec.ingress_class_name is None else spec.ingress_class_name,
        _hosts(spec.rules),
        balanced(ingress.status.load_balancer.ingress),
        ports,
        age(ingress, now),
    ]


def _hosts(rules: Sequence[IngressRule]) -> str:
    """The first three hosts, and how many rules there are beyond three when one comes after them."""
    named = [index for index, rule in enumerate(rules) if rule.host][:_HOSTS]
    shown = ",".join(rules[index].host for index in named) or "*"
    more = len(named) == _HOSTS and named[-1] < len(rules) - 1
    return f"{shown} + {len(rules) - _HOSTS} more..." if more else shown


def _class_row(ingress_class: IngressClass, now: str) -> list[Any]:
    parameters = ingress_class.spec.parameters
    shown = NONE
    if parameters is not None:
        group = "" if parameters.api_group is None else f".{parameters.api_group}"
        shown = f"{parameters.kind}{group}/{parameters.name}"
    return [ingress_class.metadata.name, ingress_class.spec.controller, shown, age(ingress_class, now)]


def _policy_row(policy: NetworkPolicy, now: str) -> list[Any]:
    return [policy.metadata.name, selectors.text(policy.spec.pod_selector) or NONE, age(policy, now)]


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
        upstream_key="ingress",
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
