"""Columns of `kubectl get` for namespaces."""

from typing import Any

from podfit.api.columns import AGE, NAME, age, name_of
from podfit.api.core.v1.namespaces.types import Namespace
from podfit.api.registry import Column

NAMESPACE = (NAME, Column("Status", description="Active, or Terminating while its contents are deleted."), AGE)


def namespace_row(namespace: Namespace, now: str) -> list[Any]:
    return [name_of(namespace), namespace.status.phase, age(namespace, now)]
