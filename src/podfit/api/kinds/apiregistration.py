"""The kinds of apiregistration.k8s.io."""

from typing import Any

from podfit.api.apiregistration.v1.types import APIService
from podfit.api.meta.columns import AGE, NAME, age
from podfit.api.meta.resource_info import STATUS, Column, ResourceInfo

_COLUMNS = (
    NAME,
    Column("Service", description="Who serves it: a service, or this server."),
    Column("Available", description="Whether it answers."),
    AGE,
)


def _row(registered: APIService, now: str) -> list[Any]:
    service = registered.spec.service
    found = next((condition for condition in registered.status.conditions if condition.type == "Available"), None)
    state = "Unknown" if found is None else found.status
    if found is not None and found.status != "True":
        state = f"{found.status} ({found.reason})"
    where = f"{service.namespace}/{service.name}" if service else "Local"
    return [registered.metadata.name, where, state, age(registered, now)]


KINDS: tuple[ResourceInfo, ...] = (
    ResourceInfo(
        type=APIService,
        unconditional=False,
        group="apiregistration.k8s.io",
        resource="apiservices",
        upstream_key="apiregistration.k8s.io/apiservices",
        singular="apiservice",
        namespaced=False,
        categories=("api-extensions",),
        subresources=(STATUS,),
        columns=_COLUMNS,
        row=_row,
    ),
)
