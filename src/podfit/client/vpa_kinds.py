"""The VPA's own kinds as a client asks for them: custom resources, which no table of kinds has."""

from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler, VerticalPodAutoscalerCheckpoint
from podfit.client.resource import known

GROUP = "autoscaling.k8s.io"
VPAS = known(VerticalPodAutoscaler, "verticalpodautoscalers", group=GROUP)
CHECKPOINTS = known(VerticalPodAutoscalerCheckpoint, "verticalpodautoscalercheckpoints", group=GROUP)
