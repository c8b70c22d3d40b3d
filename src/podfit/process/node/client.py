"""A node as the API has it: the client with which one of this process speaks, and what is told of it."""

from collections.abc import Sequence

from podfit.api.core.v1.nodes.types import Node
from podfit.client.rest import Client
from podfit.client.transport import Local
from podfit.core.randomness import Random
from podfit.net.wire import Handler, Identity
from podfit.process.node.choice import NodeChoice


def local_client(name: str, api: Handler, random: Random) -> Client:
    """A client as the node, to an API server in this process."""
    identity = Identity(f"system:node:{name}", ("system:nodes", "system:authenticated"))
    return Client(Local(api, identity), user_agent="kubelet", random=random)


async def wait_until_ready(client: Client, name: str) -> None:
    node = await client.get(Node, name)
    if _is_ready(node):
        return
    version = node.metadata.resource_version
    async for event in client.watch(Node, resource_version=version, fields=f"metadata.name={name}"):
        if event.type != "BOOKMARK" and _is_ready(event.object):
            return


async def described(client: Client, names: Sequence[str], choice: NodeChoice, details: Sequence[str]) -> list[str]:
    """What `up` says of its nodes; `details` are those of their runtimes."""
    if not names:
        return [f"  node      none, {choice.why}"]
    span = " to ".join(dict.fromkeys((names[0], names[-1])))
    warnings = [
        f'  warning   {name}: {pressure}; no new pods (--eviction-hard "" switches this off)'
        for name in names
        for pressure in await _pressures(client, name)
    ]
    return [f"  node      {span}: {choice.kind} ({choice.why}); {details[0]}", *warnings]


async def _pressures(client: Client, name: str) -> list[str]:
    """`DiskPressure: kubelet has disk pressure`, for each condition that is true and should not be."""
    node = await client.get(Node, name)
    found = [
        condition
        for condition in node.status.conditions
        if condition.type.endswith("Pressure") and condition.status == "True"
    ]
    return [f"{condition.type}: {condition.message}" for condition in found]


def _is_ready(node: Node) -> bool:
    return any(condition.type == "Ready" and condition.status == "True" for condition in node.status.conditions)
