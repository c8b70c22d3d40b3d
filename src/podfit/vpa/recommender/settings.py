"""What a recommender runs with."""

from typing import Annotated

import msgspec

from podfit.core.options import AT_LEAST_1, DURATION, POSITIVE, Option, Part
from podfit.decide.autoscaling.flags import DEFAULT_FLAGS, IgnoredNamespaces, RecommenderFlags, VpaNamespace
from podfit.decide.autoscaling.gates import NO_GATES, VpaGates
from podfit.decide.autoscaling.policies import DEFAULT_RECOMMENDER
from podfit.vpa.recommender.external_usage import ExternalMetrics


class RecommenderSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Times in seconds. Of `namespace`, or of all but the `ignored` ones. With `memory_saver` only pods that a VPA
    selects are remembered. With `upstream_compatible` nodes, horizontal autoscalers and sidecars are not looked at.
    """

    name: Annotated[
        str, Option("VPAs that name it; `default` is for those that name none.", flag="recommender-name")
    ] = DEFAULT_RECOMMENDER
    interval: Annotated[
        float, Option("From one pass to the next.", flag="recommender-interval", unit=DURATION, bound=POSITIVE)
    ] = 60.0
    checkpoints_timeout: Annotated[
        float, Option("How long checkpoints are written in a pass.", unit=DURATION, bound=POSITIVE)
    ] = 60.0
    checkpoints_gc_interval: Annotated[
        float, Option("How often checkpoints without a VPA are deleted.", unit=DURATION, bound=POSITIVE)
    ] = 600.0
    workers: Annotated[int, Option("Requests that write at a time.", flag="update-worker-count", bound=AT_LEAST_1)] = 10
    namespace: VpaNamespace = ""
    ignored: IgnoredNamespaces = frozenset()
    flags: Annotated[RecommenderFlags, Part()] = DEFAULT_FLAGS
    gates: VpaGates = NO_GATES
    external: ExternalMetrics | None = None
    memory_saver: Annotated[bool, Option("Remember only pods that a VPA selects.")] = False
    upstream_compatible: Annotated[
        bool, Option("Neither nodes, HPAs and sidecars nor percentiles and small minima of a policy count.")
    ] = False
