"""apiregistration.k8s.io/v1: group versions, and who serves those that the API server does not serve itself."""

from typing import Annotated

from msgspec import field

from podfit.api.meta.base import Object, Struct, Time, always, keyed
from podfit.api.meta.v1.types import ObjectMeta


class ServiceReference(Struct):
    name: str = ""
    namespace: str = ""
    port: int | None = None


class APIServiceSpec(Struct):
    ca_bundle: bytes = b""
    group: str = ""
    group_priority_minimum: int = always(default=0)
    insecure_skip_tls_verify: bool = field(default=False, name="insecureSkipTLSVerify")
    service: ServiceReference | None = None
    version: str = ""
    version_priority: int = always(default=0)


class APIServiceCondition(Struct):
    type: str = always(default="")
    last_transition_time: Time | None = None
    message: str = ""
    reason: str = ""
    status: str = always(default="")


class APIServiceStatus(Struct):
    conditions: Annotated[tuple[APIServiceCondition, ...], keyed("type")] = ()


class APIService(Object):
    kind: str = always(default="APIService")
    api_version: str = always(default="apiregistration.k8s.io/v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    spec: APIServiceSpec = always(default=APIServiceSpec())
    status: APIServiceStatus = always(default=APIServiceStatus())
