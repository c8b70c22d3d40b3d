"""What the node lifecycle controller does where it does not run: a new node is tainted until it is ready."""

from collections.abc import Iterable
from typing import Any

from podfit.api.core.v1.nodes.types import Node
from podfit.client.rest import MERGE_PATCH, Client


async def untaint(client: Client, *names: str, taints: Iterable[dict[str, Any]] = ()) -> None:
    """These nodes, or all, have said that they are ready, and bear `taints` alone."""
    patch = {"spec": {"taints": list(taints)}}
    for name in names or [node.metadata.name for node in (await client.list(Node)).items]:
        await client.patch(Node, name, "", patch, content_type=MERGE_PATCH)
