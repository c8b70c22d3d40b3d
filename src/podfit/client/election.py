"""Leader election by a Lease: of several processes of a kind one works, and another takes over when it is gone.

    acquire   the Lease is free, ours, or was not renewed for its duration since we first saw it as it is
    renew     every `retry` seconds; when that fails for `renew` seconds the work ends, before the Lease is over
    release   on a graceful stop the holder is cleared, so the next one need not wait

A Lease says in an annotation which format of holding it is held by. One of a newer podfit is left alone: what it means
may have changed. What a holder has to say of itself are annotations, too, with its identity beside them: another
library, whose holder comes next, leaves them as they are.

Only changes of the Lease count, measured with our own clock: the clocks of other machines may be wrong. The durations
and the fields are upstream's.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from typing import Annotated

import msgspec
from msgspec.structs import replace

from podfit.api.coordination.v1.types import Lease, LeaseSpec
from podfit.api.meta.v1.types import ObjectMeta
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.options import DURATION, POSITIVE, Option
from podfit.core.times import format_micro, parse_time

log = logging.getLogger(__name__)

NAMESPACE = "kube-system"
FORMAT_ANNOTATION = "podfit.dev/lease-format"
FORMAT = 1
TELLER_ANNOTATION = "podfit.dev/lease-told-by"
"""Of which holder the other annotations tell."""


class NewerLease(Exception):
    """A newer podfit has held the Lease, in a way that this one does not know."""


class LostLease(Exception):
    """The Lease could not be renewed in time, or somebody else holds it."""


class LeaseTiming(msgspec.Struct, frozen=True):
    """Seconds: how long a Lease is good, how long the holder tries to renew it, and how often."""

    duration: Annotated[
        float,
        Option(
            "How long a Lease is good.", "leader-elect-lease-duration", "leaseDuration", unit=DURATION, bound=POSITIVE
        ),
    ] = 15.0
    renew: Annotated[
        float,
        Option(
            "How long the holder tries to renew it.",
            "leader-elect-renew-deadline",
            "renewDeadline",
            unit=DURATION,
            bound=POSITIVE,
        ),
    ] = 10.0
    retry: Annotated[
        float, Option("How often.", "leader-elect-retry-period", "retryPeriod", unit=DURATION, bound=POSITIVE)
    ] = 2.0

    @property
    def problem(self) -> str:
        """Why these do not go together; empty when they do."""
        if self.retry < self.renew < self.duration:
            return ""
        return "leaseDuration has to be more than renewDeadline, and that than retryPeriod"


class Election:
    def __init__(
        self,
        client: Client,
        clock: Clock,
        *,
        name: str,
        identity: str,
        namespace: str = NAMESPACE,
        pace: LeaseTiming = LeaseTiming(),  # noqa: B008  (frozen)
        told: Mapping[str, str] | None = None,
    ) -> None:
        """`told` are annotations about the holder."""
        self._told = {FORMAT_ANNOTATION: str(FORMAT)} | ({**told, TELLER_ANNOTATION: identity} if told else {})
        self._client, self._clock = client, clock
        self._name, self._namespace, self._identity, self._pace = name, namespace, identity, pace
        self._seen: LeaseSpec | None = None
        self._seen_at = 0.0
        self._lease: Lease | None = None
        self.leading = False

    async def lead(self, work: Callable[[], Awaitable[None]]) -> None:
        """Wait until the Lease is ours, then work for as long as it is. Raises LostLease, NewerLease, or what
        `work` raises."""
        while not await self.hold():
            await self._clock.sleep(self._pace.retry)
        log.info("leading lease=%s/%s identity=%s", self._namespace, self._name, self._identity)
        self.leading = True
        working, keeping = asyncio.ensure_future(_run(work)), asyncio.ensure_future(self._keep())
        try:
            await asyncio.wait((working, keeping), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.leading = False
            lost = keeping.done() and not keeping.cancelled()
            for task in (working, keeping):
                task.cancel()
            await asyncio.gather(working, keeping, return_exceptions=True)
            if not lost:
                await self._release()
        for task in (working, keeping):
            if not task.cancelled():
                task.result()

    async def _keep(self) -> None:
        """Renew until that fails for too long, which raises LostLease."""
        while True:
            lost = asyncio.Event()
            timer = self._clock.call_later(self._pace.renew, lost.set)
            renewing, waiting = asyncio.ensure_future(self._renewed()), asyncio.ensure_future(lost.wait())
            try:
                await asyncio.wait((renewing, waiting), return_when=asyncio.FIRST_COMPLETED)
                if not renewing.done():
                    raise LostLease(f"{self._name}: not renewed for {self._pace.renew:.0f} s")
                renewing.result()
            finally:
                timer.cancel()
                for task in (renewing, waiting):
                    task.cancel()
                await asyncio.gather(renewing, waiting, return_exceptions=True)

    async def _renewed(self) -> None:
        """After the next success. Raises LostLease when another holds it."""
        while True:
            await self._clock.sleep(self._pace.retry)
            if await self.hold():
                return
            if self._lease is not None and self._lease.spec.holder_identity not in ("", self._identity):
                raise LostLease(f"{self._name}: {self._lease.spec.holder_identity} holds it")

    async def hold(self) -> bool:
        """Take the Lease or renew it, unless somebody else holds it: whether it is ours now. Raises NewerLease."""
        try:
            return await self._try()
        except (ApiError, ConnectionError) as error:
            log.warning("cannot get or renew a lease lease=%s/%s error=%s", self._namespace, self._name, error)
            return False

    async def _try(self) -> bool:
        now = self._clock.now()
        try:
            lease = await self._client.get(Lease, self._name, self._namespace)
        except ApiError as error:
            if error.code != 404:
                raise
            meta = ObjectMeta(name=self._name, namespace=self._namespace, annotations=self._told)
            self._remember(await self._client.create(Lease(metadata=meta, spec=self._spec(now, None))))
            return True
        self._check_format(lease)
        if lease.spec != self._seen:
            self._remember(lease)
        self._lease = lease
        if self._is_held(lease.spec):
            return False
        taken = replace(lease, metadata=self._annotated(lease.metadata), spec=self._spec(now, lease.spec))
        self._remember(await self._client.update(taken))
        return True

    def _check_format(self, lease: Lease) -> None:
        """Raises NewerLease. What is no number is somebody else's word, and no format of ours."""
        said = (lease.metadata.annotations or {}).get(FORMAT_ANNOTATION, "")
        if said.isascii() and said.isdigit() and int(said[:9]) > FORMAT:
            which = f"lease {self._namespace}/{self._name} has format {said[:9]}"
            raise NewerLease(f"{which}, this podfit reads {FORMAT}: a newer podfit held it")

    def _annotated(self, metadata: ObjectMeta) -> ObjectMeta:
        annotations = {**(metadata.annotations or {}), **self._told}
        return metadata if annotations == metadata.annotations else replace(metadata, annotations=annotations)

    def _is_held(self, spec: LeaseSpec) -> bool:
        """Whether another holds it who is still there."""
        if spec.holder_identity in ("", self._identity):
            return False
        duration = spec.lease_duration_seconds or self._pace.duration
        return self._clock.monotonic() < self._seen_at + duration

    def _remember(self, lease: Lease) -> None:
        self._lease, self._seen, self._seen_at = lease, lease.spec, self._clock.monotonic()

    def _spec(self, now: datetime, old: LeaseSpec | None) -> LeaseSpec:
        same = old is not None and old.holder_identity == self._identity
        transitions = (old.lease_transitions or 0) if old is not None else 0
        return LeaseSpec(
            holder_identity=self._identity,
            lease_duration_seconds=round(self._pace.duration),
            acquire_time=old.acquire_time if same and old is not None else format_micro(now),
            renew_time=format_micro(now),
            lease_transitions=transitions + (old is not None and not same),
        )

    async def _release(self) -> None:
        if self._lease is None or self._lease.spec.holder_identity != self._identity:
            return
        now = format_micro(self._clock.now())
        free = LeaseSpec(
            lease_duration_seconds=1,
            acquire_time=now,
            renew_time=now,
            lease_transitions=self._lease.spec.lease_transitions,
        )
        try:
            await self._client.update(replace(self._lease, spec=free))
        except (ApiError, ConnectionError) as error:
            log.warning("a lease is not released lease=%s/%s error=%s", self._namespace, self._name, error)


def told_by_holder(lease: Lease) -> Mapping[str, str]:
    """Annotations about who holds the Lease; none when they are about one that held it before."""
    annotations = lease.metadata.annotations or {}
    holder = lease.spec.holder_identity
    return annotations if holder and annotations.get(TELLER_ANNOTATION) == holder else {}


def is_renewed(lease: Lease, now: datetime) -> bool:
    """Whether its holder, if it has one, has renewed it lately, by the clocks of both."""
    spec = lease.spec
    if not spec.holder_identity or not spec.renew_time:
        return False
    return parse_time(spec.renew_time) + timedelta(seconds=spec.lease_duration_seconds or 0) > now


async def _run(work: Callable[[], Awaitable[None]]) -> None:
    await work()
