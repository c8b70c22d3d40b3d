"""Node pressure: upstream's hard eviction thresholds as a rule about numbers.

    memory.available   nodefs.available   nodefs.inodesFree   imagefs.available   imagefs.inodesFree   pid.available
    MemoryPressure     DiskPressure                                                                     PIDPressure

A threshold is an amount or a share of the capacity. A condition stays for a while after its last threshold was met,
five minutes unless told otherwise, so that a node at the brink does not flap.
"""

from collections.abc import Iterable, Mapping

import msgspec

from podfit.core.quantity import Quantity

TRANSITION_SECONDS = 300.0
DEFAULT = "imagefs.available<15%,imagefs.inodesFree<5%,memory.available<100Mi,nodefs.available<10%,nodefs.inodesFree<5%"
CONDITIONS = {
    "memory.available": "MemoryPressure",
    "nodefs.available": "DiskPressure",
    "nodefs.inodesFree": "DiskPressure",
    "imagefs.available": "DiskPressure",
    "imagefs.inodesFree": "DiskPressure",
    "pid.available": "PIDPressure",
}


class BadThreshold(ValueError):
    """The text is no list of thresholds."""


class Observation(msgspec.Struct, frozen=True):
    """Bytes, inodes or processes. `device` is the number of a file system's, 0 for what is none."""

    available: int
    capacity: int
    device: int = 0


class Threshold(msgspec.Struct, frozen=True):
    """Met when less than `amount`, or than `share` of the capacity, is available."""

    signal: str
    amount: int = 0
    share: float = 0.0

    def met(self, seen: Observation) -> bool:
        return seen.available < self.of(seen.capacity)

    def of(self, capacity: int) -> int:
        """The amount below which it is met."""
        return self.amount or int(capacity * self.share)


def parse(text: str) -> tuple[Threshold, ...]:
    """The thresholds in `--eviction-hard`. One of 0% or 100% is none. Raises BadThreshold."""
    return tuple(threshold for part in text.split(",") if part.strip() for threshold in _read(part.strip()))


def _read(text: str) -> Iterable[Threshold]:
    signal, less, value = text.partition("<")
    if not less or signal not in CONDITIONS:
        raise BadThreshold(f"cannot read {text!r}: it reads SIGNAL<AMOUNT, with one of {', '.join(CONDITIONS)}")
    try:
        if value.endswith("%"):
            share = float(value[:-1]) / 100
            if not 0 <= share <= 1:
                raise BadThreshold(f"cannot read {text!r}: a share is between 0% and 100%")
            return (Threshold(signal, share=share),) if 0 < share < 1 else ()
        amount = Quantity.parse(value).value()
    except ValueError as error:
        raise BadThreshold(f"cannot read {text!r}: {error}") from error
    if amount <= 0:
        raise BadThreshold(f"cannot read {text!r}: an amount is more than 0")
    return (Threshold(signal, amount=amount),)


def kept_free(thresholds: Iterable[Threshold], signal: str, capacity: int) -> int:
    """What pods cannot have of a capacity, because the node would be under pressure."""
    return max((threshold.of(capacity) for threshold in thresholds if threshold.signal == signal), default=0)


class Pressure(msgspec.Struct, frozen=True):
    """`met` is when each condition's thresholds were last met, in seconds of a clock that never goes back."""

    met: Mapping[str, float]

    def look(
        self,
        thresholds: Iterable[Threshold],
        seen: Mapping[str, Observation],
        now: float,
        *,
        transition: float = TRANSITION_SECONDS,
    ) -> "Pressure":
        """What is not observed says nothing. A condition stays for `transition` seconds."""
        met = {
            CONDITIONS[threshold.signal]: now
            for threshold in thresholds
            if threshold.signal in seen and threshold.met(seen[threshold.signal])
        }
        lasting = {name: at for name, at in self.met.items() if now - at < transition}
        return Pressure({**lasting, **met})

    @property
    def conditions(self) -> tuple[str, ...]:
        return tuple(sorted(self.met))


CALM = Pressure({})
