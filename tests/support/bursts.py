"""Loads and ceilings for tests of bursts on a real node."""

import msgspec

from podfit.api.core.v1.pods.burst import CEILING
from podfit.api.core.v1.pods.types import Pod
from support.real_node import MI, RealNode, container, needs

STEP = "trap go=1 USR1; while [ -z $go ]; do sleep 0.05; done; (while :; do :; done) & while :; do :; done"
"""Idle until SIGUSR1, then two cores' worth of work."""

LITTLE = "while :; do i=0; while [ $i -lt 1000 ]; do i=$((i+1)); done; sleep 0.3; done"
"""A few milliseconds of work, three times a second."""


def ramp(start: int, speed: int, until: int) -> str:
    """Holds `start` MiB, then so many more a second, up to `until`, in halves of a second; ends when it is killed."""
    piece, pieces = speed * MI // 2, 2 * (until - start) // speed
    more = f"head -c {piece} /dev/zero || exit 1; sleep 0.5; i=$((i+1))"
    feed = f"head -c {start * MI} /dev/zero; sleep 2; i=0; while [ $i -lt {pieces} ]; do {more}; done"
    return f"{{ {feed}; exec sleep 99999; }} | tail -c {until * MI}"


def ceiling(**ranges: dict[str, tuple[str, str]]) -> str:
    """The annotation, from floor and ceiling of each resource by container."""
    written = {
        name: {
            "floor": {resource: least for resource, (least, _) in amounts.items()},
            "ceiling": {resource: most for resource, (_, most) in amounts.items()},
        }
        for name, amounts in ranges.items()
    }
    return msgspec.json.encode(written).decode()


async def grant(node: RealNode, name: str, text: str | None) -> Pod:
    """As the updater obtains it."""
    patch = {"metadata": {"annotations": {CEILING: text}}}
    return await node.server.client.patch(Pod, name, "default", patch, subresource="resize")


async def bursting(
    node: RealNode, name: str, script: str, *, cpu: tuple[str, str] = ("500m", "1"), memory: tuple[str, str]
) -> Pod:
    """A pod that may burst from the first of each to the second."""
    sized = needs("50m", "32Mi", limit_cpu=cpu[0], limit_memory=memory[0])
    await node.runs(name, container("c1", sized, script=script), restartPolicy="Never")
    return await grant(node, name, ceiling(c1={"cpu": cpu, "memory": memory}))
