"""Defaults of namespaces."""

from collections.abc import Callable, Mapping
from typing import Any

from podfit.api.core.v1.namespaces.types import Namespace
from podfit.api.meta.base import Object
from podfit.api.meta.defaulting import change

NAMESPACE_LABEL = "kubernetes.io/metadata.name"


def _namespace(namespace: Namespace) -> Namespace:
    """The name as a label, so that selectors of namespaces can name one."""
    name, labels = namespace.metadata.name, namespace.metadata.labels
    if not name or labels.get(NAMESPACE_LABEL) == name:
        return namespace
    return change(namespace, metadata=change(namespace.metadata, labels={**labels, NAMESPACE_LABEL: name}))


DEFAULTS: Mapping[type[Object], Callable[[Any], Any]] = {Namespace: _namespace}
