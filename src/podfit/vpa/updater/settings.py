"""What the updater is told: its options, what it publishes of them (`Published`), and how often it may evict."""

from typing import Annotated

import msgspec

from podfit.client.rate_limit import Rate, TokenBucket
from podfit.core.clock import Clock
from podfit.core.options import DURATION, POSITIVE, Option, Part
from podfit.decide.autoscaling.flags import IgnoredNamespaces, VpaNamespace
from podfit.decide.autoscaling.published import AdmissionLease, Published
from podfit.decide.autoscaling.update_settings import UpdateSettings


class UpdaterSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Times in seconds. Of `namespace`, or of all but the `ignored` ones; `admission` is None for not to look."""

    interval: Annotated[
        float, Option("From one pass to the next.", flag="updater-interval", unit=DURATION, bound=POSITIVE)
    ] = 60.0
    rules: Annotated[UpdateSettings, Part()] = UpdateSettings()
    poll_bursts: Annotated[
        float,
        Option(
            "From one look at /stats/summary to the next, for bursts on nodes of others (docs/burst.md); 0s: none.",
            unit=DURATION,
        ),
    ] = 0.0
    eviction_rate: Rate | None = None
    admission: AdmissionLease | None = AdmissionLease()
    namespace: VpaNamespace = ""
    ignored: IgnoredNamespaces = frozenset()

    def published(self) -> Published:
        return Published(
            rules=self.rules,
            interval=self.interval,
            namespace=self.namespace,
            ignored=tuple(sorted(self.ignored)),
            admission=self.admission,
        )


class EvictionRate:
    """Without a rate every turn is now."""

    def __init__(self, rate: Rate | None, clock: Clock) -> None:
        self._bucket, self._clock = TokenBucket(rate, clock) if rate else None, clock

    async def taken(self, until: float) -> bool:
        """Wait for the next turn; False, at once, when it would come after `until` on the monotonic clock."""
        if self._bucket is None:
            return True
        if self._bucket.next() > until:
            return False
        if (pause := self._bucket.take()) > 0:
            await self._clock.sleep(pause)
        return True
