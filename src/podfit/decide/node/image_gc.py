"""Image garbage collection: which images go when their disk fills up, as upstream's kubelet.

    used >= high %   unused images go until used is at low %, the one that was used longest ago first
    unused > max age gone whatever the disk says, if there is such an age

An image stays that a container uses or used (and is still there), that is pinned, or that was first seen less than the
least age ago. Times are seconds of a clock that never goes back.
"""

import math
from collections.abc import Collection, Iterable, Mapping

import msgspec

from podfit.decide.node.pressure import Observation

LONG_AGO = -math.inf
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


class ImagePolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Percent of the disk, and seconds; `most_age` 0 is none. A `high` of 100 leaves all images alone."""

    high: int = 85
    low: int = 80
    least_age: float = 120.0
    most_age: float = 0.0

    @property
    def problem(self) -> str:
        """Why this is no policy, with upstream's names of its fields; empty when it is one."""
        for name, percent in (("imageGCHighThresholdPercent", self.high), ("imageGCLowThresholdPercent", self.low)):
            if not 0 <= percent <= 100:
                return f"{name} {percent}: must be between 0 and 100"
        if self.low >= self.high:
            return f"imageGCLowThresholdPercent {self.low}: must be less than imageGCHighThresholdPercent {self.high}"
        if self.least_age < 0:
            return f"imageMinimumGCAge {self.least_age:g}s: must not be negative"
        if self.most_age < 0 or 0 < self.most_age <= self.least_age:
            return f"imageMaximumGCAge {self.most_age:g}s: must be 0 or more than imageMinimumGCAge"
        return ""


class StoredImage(msgspec.Struct, frozen=True):
    """What the runtime says of an image; `size` in bytes. `kept` is one that never goes."""

    id: str
    size: int
    kept: bool = False


class ImageRecord(msgspec.Struct, frozen=True):
    """An image, when it was first seen, and when a container was last seen to use it."""

    image: StoredImage
    first_seen: float
    last_used: float = LONG_AGO
    used: bool = False
    """By the last look."""


Records = Mapping[str, ImageRecord]
"""By image id."""


def look(before: Records | None, images: Iterable[StoredImage], used: Collection[str], now: float) -> Records:
    """The records after a look. What is there at the first one (`before` None) has been there for long."""
    found = {}
    for image in images:
        known = (before or {}).get(image.id)
        first = known.first_seen if known is not None else LONG_AGO if before is None else now
        last = now if image.id in used else known.last_used if known is not None else LONG_AGO
        found[image.id] = ImageRecord(image, first, last, image.id in used)
    return found


def removable(records: Records, policy: ImagePolicy, now: float) -> list[ImageRecord]:
    """Those that may go, in their order."""
    free = (
        record
        for record in records.values()
        if not record.used and not record.image.kept and now - record.first_seen >= policy.least_age
    )
    return sorted(free, key=lambda record: (record.last_used, record.first_seen, record.image.id))


def too_old(records: Records, policy: ImagePolicy, now: float, began: float) -> list[ImageRecord]:
    """Those that were unused for longer than they may be. Before the kubelet has run for as long, nobody knows."""
    if not policy.most_age or now - began <= policy.most_age:
        return []
    return [record for record in removable(records, policy, now) if now - record.last_used > policy.most_age]


def used_percent(disk: Observation) -> int:
    """The share of the disk that is used; its capacity is not 0."""
    return 100 - min(disk.available, disk.capacity) * 100 // disk.capacity


def to_free(disk: Observation, policy: ImagePolicy) -> int:
    """Bytes; 0 below the high threshold."""
    if policy.high >= 100 or used_percent(disk) < policy.high:
        return 0
    return max(0, disk.capacity * (100 - policy.low) // 100 - min(disk.available, disk.capacity))


def not_enough(disk: Observation, freed: int) -> str:
    """The message of the event FreeDiskSpaceFailed, in upstream's words."""
    return (
        f"Insufficient free disk space on the node's image filesystem ({used_percent(disk)}% of "
        f"{_size(disk.capacity)} used). Failed to free sufficient space by deleting unused images (freed {freed} "
        "bytes). Investigate disk usage, as it could be used by active images, logs, volumes, or other data."
    )


def _size(amount: int) -> str:
    power = min(len(_UNITS) - 1, max(0, amount.bit_length() - 1) // 10)
    return f"{amount / (1 << 10 * power):.1f} {_UNITS[power]}"
