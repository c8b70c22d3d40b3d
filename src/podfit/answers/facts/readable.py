"""Human-readable amounts in messages of the API and the node, which give plain numbers; and why a QoS class stays."""

import re

from podfit.core.quantity import Quantity

KIBI = 1024
SHORT = 7
"""Letters of an amount that is read as it is."""
_ROOM = re.compile(
    r"(?<![a-z0-9./-])(?P<resource>[a-z0-9./-]{1,317}), "
    r"requested: (?P<requested>[0-9]{1,25})(?:, used: (?P<used>[0-9]{1,25}))?, "
    r"(?P<of>capacity|allocatable): (?P<whole>[0-9]{1,25})"
)
_USAGE = re.compile(r"\((?P<limit>[0-9]{5,25})\) below current usage \((?P<usage>[0-9]{1,25})\)")
_CLASS = re.compile(r'Invalid value: "(?P<qos>\w{1,20})": Pod QOS Class may not change')
_KEEPS = {
    "BestEffort": "a running pod that has no requests and limits gets none: set them where new pods are made",
    "Burstable": "a running Burstable pod stays so: not every limit may equal its request",
    "Guaranteed": "a running Guaranteed pod stays so: change limits and requests alike, REQUEST:LIMIT",
}


def readable_text(text: str) -> str:
    """A message of the API or the node with its amounts as people write them: `requested: 2500m, capacity: 23.44Gi`."""
    return _USAGE.sub(_usage, _ROOM.sub(_room, text))


def why_the_class_stays(text: str) -> str:
    """What to do where a resize was refused for its QoS class; empty for other messages."""
    refused = _CLASS.search(text)
    return _KEEPS.get(refused["qos"], "") if refused else ""


def _room(match: re.Match[str]) -> str:
    named = ("requested", "requested"), ("used", "used"), (match["of"], "whole")
    shown = [f"{name}: {_shown(match['resource'], amount)}" for name, of in named if (amount := match[of])]
    return ", ".join([match["resource"], *shown])


def _usage(match: re.Match[str]) -> str:
    return f"({readable(int(match['limit']))}) below current usage ({readable(int(match['usage']))})"


def _shown(resource: str, amount: str) -> str:
    if resource == "cpu":
        return str(Quantity.of_milli(int(amount)))
    return readable(int(amount)) if resource in ("memory", "ephemeral-storage") else amount


def readable_amount(resource: str, text: str) -> str:
    """A quantity as people read it: `194.3Mi` of 203699302 bytes of memory; what is short stays as it was written."""
    if resource != "memory" or len(text) <= SHORT:
        return text
    size = Quantity.parse(text).value()
    return f"-{readable(-size)}" if size < 0 else readable(size)


def readable(size: int) -> str:
    """Bytes: `1Mi` of 1048576."""
    for power, name in ((6, "Ei"), (5, "Pi"), (4, "Ti"), (3, "Gi"), (2, "Mi"), (1, "Ki")):
        if size >= KIBI**power:
            return f"{size / KIBI**power:.4g}{name}"
    return f"{size} byte{'' if size == 1 else 's'}"
