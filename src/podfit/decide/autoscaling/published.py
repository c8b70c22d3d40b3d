"""The settings that an updater runs with, as it publishes them: an annotation of its Lease.

Who foretells what it does runs its decision with them.
"""

from typing import Annotated

import msgspec

from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.api.meta.codec import decode, encode
from podfit.core.options import DURATION, POSITIVE, Option
from podfit.decide.autoscaling.gates import Gates
from podfit.decide.autoscaling.policies import ACTIVE_MODES, boosts, update_mode
from podfit.decide.autoscaling.update_settings import UpdateSettings

LEASE, NAMESPACE = "vpa-updater", "kube-system"
ANNOTATION = "podfit.dev/vpa-updater-settings"
IN_UP = UpdateSettings(gates=Gates(cpu_startup_boost=True, in_place=True, per_vpa_config=True))
"""Of the updater in `podfit up`."""


class AdmissionLease(msgspec.Struct, frozen=True, kw_only=True):
    """An admission controller's Lease; `timeout` in seconds: it counts for so long after it was made or renewed."""

    name: Annotated[
        str, Option("By which it sees an admission controller.", flag="admission-controller-status-lease-name")
    ] = "vpa-admission-controller"
    namespace: Annotated[
        str,
        Option(
            "Where that is.",
            flag="admission-controller-status-lease-namespace",
            usual="NAMESPACE of the environment, else kube-system",
        ),
    ] = NAMESPACE
    timeout: Annotated[
        float,
        Option("How long it counts.", flag="admission-controller-status-lease-timeout", unit=DURATION, bound=POSITIVE),
    ] = 60.0


class Published(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`interval` in seconds, from one pass to the next. It works in `namespace`, or in all but the `ignored` ones,
    while an admission controller renews its Lease; `admission` is None where that is not asked for.
    """

    rules: UpdateSettings = IN_UP
    interval: float = 60.0
    namespace: str = ""
    ignored: tuple[str, ...] = ()
    admission: AdmissionLease | None = AdmissionLease()

    def annotation(self) -> dict[str, str]:
        return {ANNOTATION: encode(self).decode()}

    def works_in(self, namespace: str) -> bool:
        return self.namespace in ("", namespace) and namespace not in self.ignored

    def looks_at(self, vpa: VerticalPodAutoscaler) -> bool:
        """Whether it may change pods of the VPA: where it works, by the VPA's mode or to end a boost."""
        if not self.works_in(vpa.metadata.namespace):
            return False
        return update_mode(vpa) in ACTIVE_MODES or (self.rules.gates.cpu_startup_boost and boosts(vpa))


def published(text: str) -> Published:
    """What the annotation says. Raises ValueError for what no updater writes."""
    try:
        return decode(text.encode(), Published)
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from error
