"""Defaults of ingress classes and network policies."""

from collections.abc import Callable, Mapping
from typing import Any

from podfit.api.meta.base import Object
from podfit.api.meta.defaulting import fill, inside
from podfit.api.networking.v1.types import IngressClass, IngressClassSpec, NetworkPolicy, NetworkPolicySpec


def _class(ingress_class: IngressClass) -> IngressClass:
    return inside(ingress_class, spec=_class_spec)


def _class_spec(spec: IngressClassSpec) -> IngressClassSpec:
    return inside(spec, parameters=lambda parameters: fill(parameters, scope="Cluster"))


def _policy(policy: NetworkPolicy) -> NetworkPolicy:
    return inside(policy, spec=_policy_spec)


def _policy_spec(spec: NetworkPolicySpec) -> NetworkPolicySpec:
    """A policy is about what comes in; about what goes out only if it says something of that."""
    spec = fill(spec, policy_types=("Ingress", "Egress") if spec.egress else ("Ingress",))
    return inside(spec, ingress=_rule, egress=_rule)


def _rule(rule: Any) -> Any:
    return inside(rule, ports=lambda port: fill(port, protocol="TCP"))


DEFAULTS: Mapping[type[Object], Callable[[Any], Any]] = {IngressClass: _class, NetworkPolicy: _policy}
