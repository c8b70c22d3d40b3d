"""The defaults of every kind, for the server to apply whenever it decodes an object."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from podfit.api.admissionregistration.v1.defaults import DEFAULTS as OF_ADMISSIONREGISTRATION
from podfit.api.apiextensions.v1.defaults import DEFAULTS as OF_APIEXTENSIONS
from podfit.api.apiregistration.v1.defaults import DEFAULTS as OF_APIREGISTRATION
from podfit.api.apps.v1.defaults import DEFAULTS as OF_WORKLOADS
from podfit.api.autoscaling.defaults import DEFAULTS as OF_AUTOSCALING
from podfit.api.batch.v1.defaults import DEFAULTS as OF_BATCH
from podfit.api.core.v1.config.defaults import DEFAULTS as OF_CONFIG
from podfit.api.core.v1.limits.defaults import DEFAULTS as OF_LIMITS
from podfit.api.core.v1.namespaces.defaults import DEFAULTS as OF_NAMESPACES
from podfit.api.core.v1.nodes.defaults import DEFAULTS as OF_NODES
from podfit.api.core.v1.pods.defaults import default_pod
from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.services.defaults import DEFAULTS as OF_SERVICES
from podfit.api.discovery.v1.defaults import DEFAULTS as OF_DISCOVERY
from podfit.api.meta.base import Object
from podfit.api.meta.defaulting import change
from podfit.api.networking.v1.defaults import DEFAULTS as OF_NETWORKING
from podfit.api.rbac.v1.defaults import DEFAULTS as OF_RBAC
from podfit.api.scheduling.v1.defaults import DEFAULTS as OF_SCHEDULING
from podfit.api.storage.v1.defaults import DEFAULTS as OF_STORAGE
from podfit.api.structural.custom import Custom
from podfit.api.structural.defaulting import TooMuch
from podfit.api.structural.defaulting import fill as fill_custom
from podfit.core.errors import ApiError
from podfit.core.features import DEFAULT_GATES, FeatureGates

Kind = TypeVar("Kind", bound=Object)


def apply_defaults(obj: Kind, gates: FeatureGates = DEFAULT_GATES, old: Kind | None = None) -> Kind:
    """`obj` as its kind's author would have written it out; the same object when nothing is missing. Of what was made
    from the stored object `old` the parts that changed are looked at. Raises 413 for a custom resource whose defaults
    are too long."""
    if isinstance(obj, Pod):
        return cast(Kind, default_pod(obj, gates, cast(Pod | None, old)))
    if isinstance(obj, Custom):
        try:
            return cast(Kind, change(obj, rest=fill_custom(obj.rest, obj.declared.schema)))
        except TooMuch as error:
            raise ApiError(413, "RequestEntityTooLarge", f"Request entity is too large: its {error}") from None
    default = _DEFAULTS.get(type(obj))
    return default(obj) if default else obj


_DEFAULTS: Mapping[type[Object], Callable[[Any], Any]] = {
    **OF_NAMESPACES,
    **OF_NODES,
    **OF_CONFIG,
    **OF_LIMITS,
    **OF_SCHEDULING,
    **OF_RBAC,
    **OF_ADMISSIONREGISTRATION,
    **OF_APIREGISTRATION,
    **OF_APIEXTENSIONS,
    **OF_SERVICES,
    **OF_DISCOVERY,
    **OF_WORKLOADS,
    **OF_BATCH,
    **OF_AUTOSCALING,
    **OF_STORAGE,
    **OF_NETWORKING,
}
