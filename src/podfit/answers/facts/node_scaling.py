"""What the cluster autoscaler is about to do, as it wrote it with its last decision (docs/cluster-autoscaler.md).

Upstream's writes a status without an outlook: then the sizes of its groups are known, and nothing of what comes next.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from podfit.answers.facts.kinds import CONFIG_MAPS
from podfit.answers.facts.rights import why_unread
from podfit.api.core.v1.pods.types import Pod
from podfit.client.rest import Client
from podfit.core.errors import ApiError
from podfit.core.times import parse_time
from podfit.decide.capacity.outlook import Act, Outlook, PodOutlook

NAME, NAMESPACE, OUTLOOK = "cluster-autoscaler-status", "kube-system", "podfit-outlook"
NOT_FOUND = 404
LARGEST = 1 << 20


class NodeScaling(msgspec.Struct, frozen=True):
    """`outlook` is None where none is written; `problem` says why what is written is not to be believed."""

    outlook: Outlook | None = None
    problem: str = ""
    runs: bool = False
    """Some autoscaler has written a status."""

    def of(self, pod: Pod) -> PodOutlook | None:
        """What comes next for the pod; None where nothing is said."""
        if self.outlook is None or self.problem:
            return None
        meta = pod.metadata
        told = (one for one in self.outlook.pods if (one.namespace, one.pod) == (meta.namespace, meta.name))
        return next(told, None)


NO_SCALING = NodeScaling()


async def read_node_scaling(client: Client, now: datetime) -> NodeScaling:
    """What may not be read is a problem, and so is what its writer should have renewed."""
    try:
        written = await client.get(CONFIG_MAPS, NAME, NAMESPACE)
    except ApiError as error:
        return NO_SCALING if error.code == NOT_FOUND else NodeScaling(problem=why_unread(error))
    return told_by(written.data, now)


def told_by(data: Mapping[str, Any], now: datetime) -> NodeScaling:
    text = data.get(OUTLOOK)
    if text is None:
        return NodeScaling(runs=True)
    try:
        if len(text) > LARGEST:
            raise ValueError("it is too long")
        outlook = msgspec.json.decode(text, type=Outlook)
        for node in outlook.coming:
            node.view()
        late = bool(outlook.until) and parse_time(outlook.until) < now
    except (msgspec.DecodeError, ValueError, TypeError) as error:
        return NodeScaling(problem=f"its outlook cannot be read: {error}", runs=True)
    problem = f"it has written nothing since {outlook.time}" if late else ""
    return NodeScaling(outlook, problem, runs=True)


def next_for(told: PodOutlook) -> str:
    """Which act comes next, when, and why not now."""
    return f"at {told.begins}, if it still waits: {_act(told)}" if told.begins else _act(told)


def _act(told: PodOutlook) -> str:
    why, due = f": {told.because}" if told.because else "", f" by {told.due}" if told.due else ""
    match told.act:
        case Act.SHRINK if told.due:
            return f"{told.who} is to shrink for it ({told.what}){due}, else a neighbour moves"
        case Act.SHRINK:
            return f"{told.who} shrinks for it ({told.what}){why}"
        case Act.MOVE:
            place = f"node {told.to}" if told.to else f"a node of group {told.group} that is on its way{due}"
            return f"{told.who} moves to {place}{why}"
        case Act.NODE:
            whose = told.who if told.who and told.who != f"{told.namespace}/{told.pod}" else ""
            if not told.group:
                return f"a node is asked for{f', so that {whose} moves there' if whose else ''}{due}{why}"
            return f"a node of group {told.group} comes{f' for {whose}' if whose else ''}{due}{why}"
        case Act.NOTHING:
            return f"no node comes{why}"
        case Act.WAIT:
            return f"it waits{f' until {told.due}' if told.due else ''}{why}"
