"""The objects that register a metrics-server: its account and rights, its service, and its APIService, as in upstream's
manifest.
"""

import asyncio
from collections.abc import Iterator

from podfit.api.apiregistration.v1.types import APIService, APIServiceSpec, ServiceReference
from podfit.api.core.v1.config.types import ServiceAccount
from podfit.api.core.v1.services.types import Service, ServicePort, ServiceSpec
from podfit.api.discovery.v1.types import SERVICE_NAME_LABEL, Endpoint, EndpointConditions, EndpointPort, EndpointSlice
from podfit.api.meta.base import Object
from podfit.api.meta.v1.types import ObjectMeta
from podfit.api.metrics.v1beta1.types import GROUP, VERSION
from podfit.api.rbac.v1.types import ClusterRole, ClusterRoleBinding, PolicyRule, RoleBinding, RoleRef, Subject
from podfit.client.authorized_api import register as register_one
from podfit.client.rest import Client

NAME, NAMESPACE = "metrics-server", "kube-system"
API_SERVICE = f"{VERSION}.{GROUP}"
RBAC = "rbac.authorization.k8s.io"
PORT = 443
_LABELS = {"k8s-app": NAME}
_READER = {f"{RBAC}/aggregate-to-{role}": "true" for role in ("view", "edit", "admin")}
_SUBJECTS = (Subject(kind="ServiceAccount", name=NAME, namespace=NAMESPACE),)


def objects(address: str = "", port: int = 0) -> Iterator[Object]:
    """The objects; with an `address` those that lead to it from outside of the cluster; without, the API server calls
    it."""
    yield ServiceAccount(metadata=_meta(NAME, NAMESPACE))
    yield ClusterRole(
        metadata=ObjectMeta(name="system:aggregated-metrics-reader", labels={**_LABELS, **_READER}),
        rules=(PolicyRule(api_groups=(GROUP,), resources=("pods", "nodes"), verbs=("get", "list", "watch")),),
    )
    yield ClusterRole(
        metadata=_meta("system:metrics-server"),
        rules=(
            PolicyRule(api_groups=("",), resources=("nodes/metrics",), verbs=("get",)),
            PolicyRule(api_groups=("",), resources=("pods", "nodes"), verbs=("get", "list", "watch")),
        ),
    )
    yield RoleBinding(
        metadata=_meta("metrics-server-auth-reader", NAMESPACE),
        role_ref=RoleRef(api_group=RBAC, kind="Role", name="extension-apiserver-authentication-reader"),
        subjects=_SUBJECTS,
    )
    for name, role in (
        ("metrics-server:system:auth-delegator", "system:auth-delegator"),
        ("system:metrics-server", "system:metrics-server"),
    ):
        yield ClusterRoleBinding(
            metadata=_meta(name), role_ref=RoleRef(api_group=RBAC, kind="ClusterRole", name=role), subjects=_SUBJECTS
        )
    https = ServicePort(name="https", app_protocol="https", port=PORT, protocol="TCP", target_port=port or PORT)
    yield Service(metadata=_meta(NAME, NAMESPACE), spec=ServiceSpec(ports=(https,)))
    if address:
        yield EndpointSlice(
            metadata=ObjectMeta(name=NAME, namespace=NAMESPACE, labels={**_LABELS, SERVICE_NAME_LABEL: NAME}),
            address_type="IPv6" if ":" in address else "IPv4",
            endpoints=(Endpoint(addresses=(address,), conditions=EndpointConditions(ready=True)),),
            ports=(EndpointPort(name="https", port=port, protocol="TCP"),),
        )
    yield APIService(
        metadata=_meta(API_SERVICE),
        spec=APIServiceSpec(
            group=GROUP,
            version=VERSION,
            group_priority_minimum=100,
            version_priority=100,
            insecure_skip_tls_verify=True,  # it signs its own certificate, as upstream's
            service=ServiceReference(name=NAME, namespace=NAMESPACE, port=PORT),
        ),
    )


async def register(client: Client, address: str = "", port: int = 0) -> None:
    """Make what is missing; where it is (`EndpointSlice`) is told anew. What somebody changed stays."""
    await asyncio.gather(*(register_one(client, obj) for obj in objects(address, port)))


def _meta(name: str, namespace: str = "") -> ObjectMeta:
    return ObjectMeta(name=name, namespace=namespace, labels=_LABELS)
