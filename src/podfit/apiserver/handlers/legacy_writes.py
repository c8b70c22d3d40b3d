"""What the legacy mode changes about writes of clients of Kubernetes 1.27 to 1.32 (spec resize-history 3)."""

from typing import Any

import msgspec

from podfit.api.core.v1.pods.types import Pod
from podfit.apiserver.authz.nodes import node_name
from podfit.apiserver.request.legacy_options import POD_UPDATES, STATUS, Legacy
from podfit.apiserver.request.legacy_rules import is_only_a_resize
from podfit.net.wire import Identity


def door_of(legacy: Legacy, subresource: str, new: Any, old: Any) -> str:
    """The subresource whose rules a write is judged by: a resize that comes through the pod itself is one (H-07)."""
    if POD_UPDATES in legacy and isinstance(new, Pod) and not subresource and is_only_a_resize(new, old):
        return "resize"
    return subresource


def without_echo(legacy: Legacy, identity: Identity, new: Any, old: Any) -> Any:
    """A pod without the derived field that a client read and sends back; a node's own word counts (H-10)."""
    if STATUS not in legacy or not isinstance(new, Pod) or node_name(identity):
        return new
    return msgspec.structs.replace(new, status=msgspec.structs.replace(new.status, resize=old.status.resize))
