"""What an updater's run goes by."""

from typing import Annotated

import msgspec

from podfit.core.options import AT_LEAST_1, FROM_0_TO_1, Option, Part
from podfit.core.quantity import Quantity
from podfit.decide.autoscaling.flags import AMOUNT
from podfit.decide.autoscaling.gates import NO_GATES, VpaGates
from podfit.decide.autoscaling.priority import Thresholds


class UpdateSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`upstream_compatible`: Recreate and Auto only evict, too few replicas are left alone altogether, in mode InPlace
    a pod that should wait is resized at once, pods change for nothing, no shrink of memory is guarded, and a pod whose
    memory cannot be lowered is evicted, and no boost comes back when a container is started again.
    """

    gates: VpaGates = NO_GATES
    min_replicas: Annotated[int, Option("Pods of a workload before one is evicted.", bound=AT_LEAST_1)] = 2
    tolerance: Annotated[
        float, Option("Share of a workload that is disturbed at once.", flag="eviction-tolerance", bound=FROM_0_TO_1)
    ] = 0.5
    thresholds: Annotated[Thresholds, Part()] = Thresholds()
    skip_disruption_budget: Annotated[
        bool, Option("Resizes that restart nothing count for no budget.", flag="in-place-skip-disruption-budget")
    ] = False
    max_boost: Annotated[
        Quantity | None,
        Option("The most CPU of a container that starts again.", flag="max-allowed-cpu-boost", unit=AMOUNT),
    ] = None
    upstream_compatible: Annotated[
        bool, Option("Do as upstream: Recreate and Auto evict, few replicas stay as they are.")
    ] = False
