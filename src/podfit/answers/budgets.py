"""Disruption budgets, for a resize that restarts a container: a pod that is down for a moment counts as disrupted."""

from collections.abc import Mapping
from typing import Any

import msgspec

from podfit.answers.selectors import query_of
from podfit.api.meta import codec
from podfit.api.meta.selector_text import parse_labels
from podfit.api.meta.v1.types import ObjectMeta
from podfit.client.rest import Client
from podfit.core.errors import ApiError


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    selector: Mapping[str, Any] = {}


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    disruptions_allowed: int = 0


class Budget(msgspec.Struct, frozen=True, rename="camel"):
    metadata: ObjectMeta
    spec: _Spec
    status: _Status = _Status()

    def protects(self, labels: Mapping[str, str]) -> bool:
        """Whether a pod with these labels must not be disrupted now. A budget without a selector takes in nobody."""
        if not self.spec.selector or self.status.disruptions_allowed > 0:
            return False
        return parse_labels(query_of(self.spec.selector)).matches(labels)


class _Budgets(msgspec.Struct):
    items: tuple[Budget, ...] = ()


async def budgets_of(client: Client, namespace: str) -> tuple[Budget, ...]:
    """Those of a namespace; none where the cluster does not serve them."""
    try:
        body = await client.request("GET", f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets")
    except ApiError as error:
        if error.code == 404:
            return ()
        raise
    return codec.decode(body, _Budgets).items
