"""networking.k8s.io/v1: ways in from outside, and which pods may talk. They are kept; nothing acts on them yet."""

from typing import Annotated, ClassVar

from msgspec import field

from podfit.api.core.v1.references import TypedLocalObjectReference
from podfit.api.meta.base import ATOMIC, IntOrString, Object, Struct, always
from podfit.api.meta.v1.types import LabelSelector, ObjectMeta


class ServiceBackendPort(Struct):
    whole: ClassVar[bool] = True
    name: str = ""
    number: int = 0


class IngressServiceBackend(Struct):
    name: str = always(default="")
    port: ServiceBackendPort = always(default=ServiceBackendPort())


class IngressBackend(Struct):
    resource: TypedLocalObjectReference | None = None
    service: IngressServiceBackend | None = None


class HTTPIngressPath(Struct):
    backend: IngressBackend = always(default=IngressBackend())
    path: str = ""
    path_type: str | None = always(default=None)


class HTTPIngressRuleValue(Struct):
    paths: Annotated[tuple[HTTPIngressPath, ...], ATOMIC] = ()


class IngressRule(Struct):
    host: str = ""
    http: HTTPIngressRuleValue | None = None


class IngressTLS(Struct):
    hosts: Annotated[tuple[str, ...], ATOMIC] = ()
    secret_name: str = ""


class IngressSpec(Struct):
    default_backend: IngressBackend | None = None
    ingress_class_name: str | None = None
    rules: Annotated[tuple[IngressRule, ...], ATOMIC] = ()
    tls: Annotated[tuple[IngressTLS, ...], ATOMIC] = ()


class IngressPortStatus(Struct):
    error: str | None = None
    port: int = always(default=0)
    protocol: str = always(default="")


class IngressLoadBalancerIngress(Struct):
    hostname: str = ""
    ip: str = ""
    ports: tuple[IngressPortStatus, ...] = ()


class IngressLoadBalancerStatus(Struct):
    ingress: tuple[IngressLoadBalancerIngress, ...] = ()


class IngressStatus(Struct):
    load_balancer: IngressLoadBalancerStatus = always(default=IngressLoadBalancerStatus())


class Ingress(Object):
    kind: str = always(default="Ingress")
    api_version: str = always(default="networking.k8s.io/v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    spec: IngressSpec = always(default=IngressSpec())
    status: IngressStatus = always(default=IngressStatus())


class IngressClassParametersReference(Struct):
    name: str = always(default="")
    api_group: str | None = None
    kind: str = always(default="")
    namespace: str | None = None
    scope: str | None = None


class IngressClassSpec(Struct):
    controller: str = ""
    parameters: IngressClassParametersReference | None = None


class IngressClass(Object):
    kind: str = always(default="IngressClass")
    api_version: str = always(default="networking.k8s.io/v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    spec: IngressClassSpec = always(default=IngressClassSpec())


class NetworkPolicyPort(Struct):
    end_port: int | None = None
    port: IntOrString | None = None
    protocol: str | None = None


class IPBlock(Struct):
    cidr: str = always(default="")
    except_: tuple[str, ...] = field(default=(), name="except")


class NetworkPolicyPeer(Struct):
    ip_block: IPBlock | None = None
    namespace_selector: LabelSelector | None = None
    pod_selector: LabelSelector | None = None


class NetworkPolicyEgressRule(Struct):
    ports: tuple[NetworkPolicyPort, ...] = ()
    to: tuple[NetworkPolicyPeer, ...] = ()


class NetworkPolicyIngressRule(Struct):
    from_: tuple[NetworkPolicyPeer, ...] = field(default=(), name="from")
    ports: tuple[NetworkPolicyPort, ...] = ()


class NetworkPolicySpec(Struct):
    egress: tuple[NetworkPolicyEgressRule, ...] = ()
    ingress: tuple[NetworkPolicyIngressRule, ...] = ()
    pod_selector: LabelSelector = always(default=LabelSelector())
    policy_types: tuple[str, ...] = ()


class NetworkPolicy(Object):
    kind: str = always(default="NetworkPolicy")
    api_version: str = always(default="networking.k8s.io/v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    spec: NetworkPolicySpec = always(default=NetworkPolicySpec())
