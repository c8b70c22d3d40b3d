"""What a pass over an autoscaler is told, what it remembers from one pass to the next, and what comes of it."""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Annotated, TypeAlias

import msgspec

from podfit.api.autoscaling.v2.types import HorizontalPodAutoscaler, HorizontalPodAutoscalerStatus
from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.api.core.v1.pods.types import Pod
from podfit.core.features import DEFAULT_GATES, FeatureGates
from podfit.core.options import AT_LEAST_1, DURATION, POSITIVE, Bound, Option

MOST = 2**31 - 1
MOST_LONG = 2**63 - 1
LEAST_SHARE, MOST_SHARE = 40, 95
"""Percent of the request, within which a target follows it."""


class Tolerance(msgspec.Struct, frozen=True):
    """How far a ratio may be from 1 before anything is done, on either side."""

    up: float = 0.1
    down: float = 0.1

    def holds(self, ratio: float) -> bool:
        """Both ends belong to it."""
        return 1.0 - self.down <= ratio <= 1.0 + self.up


class Anchor(msgspec.Struct, frozen=True):
    """What the target of an autoscaler that keeps its point is worked out from: `target` in percent, `request` in
    thousandths of the resource, for a pod."""

    target: int
    request: int

    def at(self, requested: int, pods: int = 1) -> Fraction:
        """The target in percent where so many pods request so much together. It is exact: at rest half a percent is the
        difference between pods that use less than they request, and more."""
        share = Fraction(self.target * self.request * pods, requested)
        return max(Fraction(LEAST_SHARE), min(Fraction(MOST_SHARE), share))


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the controller; times in seconds."""

    sync_period: Annotated[
        float,
        Option(
            "From one look at an HPA to the next.",
            flag="horizontal-pod-autoscaler-sync-period",
            unit=DURATION,
            bound=POSITIVE,
        ),
    ] = 15.0
    downscale_stabilization: Annotated[
        float,
        Option(
            "Replicas go when none were wanted for so long.",
            flag="horizontal-pod-autoscaler-downscale-stabilization",
            unit=DURATION,
        ),
    ] = 300.0
    tolerance: Annotated[
        float,
        Option(
            "How far a metric may be from its target before replicas change.",
            flag="horizontal-pod-autoscaler-tolerance",
            bound=Bound("at least 0", lambda value: 0 <= value < math.inf),
        ),
    ] = 0.1
    cpu_initialization: Annotated[
        float,
        Option(
            "The CPU of a pod that is younger is not believed until it is ready.",
            flag="horizontal-pod-autoscaler-cpu-initialization-period",
            unit=DURATION,
        ),
    ] = 300.0
    initial_readiness: Annotated[
        float,
        Option(
            "A pod that was unready from its start for so long has never been ready.",
            flag="horizontal-pod-autoscaler-initial-readiness-delay",
            unit=DURATION,
        ),
    ] = 30.0
    workers: Annotated[
        int,
        Option("HPAs that are worked on at once.", flag="concurrent-horizontal-pod-autoscaler-syncs", bound=AT_LEAST_1),
    ] = 5
    scale_to_zero: bool = False
    """The gate HPAScaleToZero."""
    upstream_compatible: Annotated[
        bool, Option("HPAs follow upstream's rules to the letter.", flag="upstream-compatible", negative=False)
    ] = True
    """Whether upstream's rules hold to the letter. If not, those hold that docs/compatibility.md names."""
    last_good: float = 300.0
    """For so long a metric that is away counts as it was read last. Not by upstream's rules."""
    gates: FeatureGates = DEFAULT_GATES


class Sample(msgspec.Struct, frozen=True):
    """What was measured of a pod: thousandths of its unit, when (seconds since 1970), and over how many seconds."""

    value: int
    time: float = 0.0
    window: float = 0.0


Samples: TypeAlias = Mapping[str, Sample]
"""By the pod's name."""


class Unread(msgspec.Struct, frozen=True):
    """Why a metric was not read."""

    why: str


Reading: TypeAlias = Samples | int | Unread
"""Of a metric: of each pod, or (of an object, or as the sum of an external metric) one amount in thousandths."""


class Change(msgspec.Struct, frozen=True):
    """So many replicas more or fewer at a time; the count is positive."""

    time: float
    count: int


class Recommendation(msgspec.Struct, frozen=True):
    time: float
    replicas: int


class Event(msgspec.Struct, frozen=True):
    type: str
    reason: str
    message: str


class Good(msgspec.Struct, frozen=True):
    """What a metric was when it was read last; the metric as it is encoded."""

    metric: bytes
    time: float
    reading: Reading


class Need(msgspec.Struct, frozen=True):
    """Thousandths of a resource that all pods ought to have requested together."""

    resource: str
    time: float
    milli: int


class Memory(msgspec.Struct, frozen=True):
    """What a controller remembers of an autoscaler: it is lost with the process, but for what an annotation keeps."""

    recommendations: tuple[Recommendation, ...] = ()
    added: tuple[Change, ...] = ()
    removed: tuple[Change, ...] = ()
    good: tuple[Good, ...] = ()
    told: frozenset[Event] = frozenset()
    """Warnings of the last pass."""
    needs: tuple[Need, ...] = ()
    """Of an autoscaler that sizes pods first."""


class View(msgspec.Struct, frozen=True, kw_only=True):
    """`replicas` and `reported` are those of the scale's spec and status; `pods` what its selector selects. `rivals`
    are the autoscalers that select one of these pods, where there are several. `selector_error`: why there is none.
    `vpas` may be of other targets as well. `room` is by how much pods could grow where they are: thousandths, by pod
    and resource; pods without a node are not in it."""

    autoscaler: HorizontalPodAutoscaler
    replicas: int
    reported: int
    selector: str
    selector_error: str = ""
    pods: Sequence[Pod] = ()
    rivals: Sequence[str] = ()
    vpas: Sequence[VerticalPodAutoscaler] = ()
    room: Mapping[str, Mapping[str, int]] = {}
    memory: Memory = Memory()
    settings: Settings = Settings()


class Observed(msgspec.Struct, frozen=True):
    """For the controller's metrics; `type` is empty for the whole pass."""

    action: str
    error: str
    type: str = ""


class Outcome(msgspec.Struct, frozen=True):
    """`desired` is None where nothing came of the pass. `annotations` are to be written with the status."""

    status: HorizontalPodAutoscalerStatus
    events: tuple[Event, ...]
    memory: Memory
    observed: tuple[Observed, ...]
    desired: int | None = None
    error: str = ""
    annotations: Mapping[str, str] = {}


class Unmeasured(Exception):
    """Why no count of replicas comes of a metric; the text is upstream's."""
