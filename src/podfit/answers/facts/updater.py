"""Reads what the VPA's updater of a cluster runs with, from its Lease, or says that it is assumed."""

from datetime import datetime

import msgspec
from msgspec.structs import replace

from podfit.answers.facts.kinds import LEASES
from podfit.answers.facts.rights import why_unread
from podfit.api.coordination.v1.types import Lease
from podfit.client.election import is_renewed, told_by_holder
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.decide.autoscaling.published import ANNOTATION, LEASE, NAMESPACE, Published, published
from podfit.vpa.updater.admission_status import is_fresh

NOT_FOUND = 404
NOBODY = f"no updater holds the Lease {NAMESPACE}/{LEASE}"


class RunningUpdater(msgspec.Struct, frozen=True):
    """What the updater runs with. `unknown` says why that is assumed, empty when it has published it; `idle` why it
    does nothing at all, if that is known.
    """

    settings: Published = Published(admission=None)
    unknown: str = ""
    idle: str = ""

    @property
    def name(self) -> str:
        """The subject of a sentence about what it does."""
        return f"podfit's updater{', with the settings of podfit up,' if self.unknown else ''}"

    @property
    def note(self) -> str:
        assumed = f"its settings are not known, and those of podfit up are assumed: {self.unknown}"
        return f"the updater: {assumed}" if self.unknown else ""


async def read_updater(client: Client, clock: Clock) -> RunningUpdater:
    try:
        lease = await client.get(LEASES, LEASE, NAMESPACE)
    except ApiError as error:
        return RunningUpdater(unknown=NOBODY if error.code == NOT_FOUND else why_unread(error))
    found = updater_of(lease, clock.now())
    admission = found.settings.admission
    if admission is None:
        return found
    try:
        there = is_fresh(await client.get(LEASES, admission.name, admission.namespace), clock.now(), admission.timeout)
    except ApiError as error:  # whoever asks may see less than the updater does
        there = error.code != NOT_FOUND
    idle = f"no admission controller renews the Lease {admission.namespace}/{admission.name}"
    return found if there else replace(found, idle=idle)


def updater_of(lease: Lease, now: datetime) -> RunningUpdater:
    """The updater by its Lease, which an updater of another kind holds as well."""
    if not is_renewed(lease, now):
        return RunningUpdater(unknown=NOBODY)
    text = told_by_holder(lease).get(ANNOTATION)
    if text is None:
        holder = f"{lease.spec.holder_identity} holds the Lease {NAMESPACE}/{LEASE}"
        return RunningUpdater(unknown=f"{holder} and does not say them")
    try:
        return RunningUpdater(published(text))
    except ValueError as error:
        return RunningUpdater(unknown=f"the annotation {ANNOTATION} cannot be read: {error}")
