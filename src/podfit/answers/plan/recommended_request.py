"""A resize to what a VPA recommends: the very sizes that its updater would give the pods."""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from podfit.answers.facts.snapshot import Snapshot
from podfit.answers.facts.target import Target
from podfit.answers.plan.amounts import RequestError
from podfit.answers.plan.resize_request import ResizeRequest
from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.api.core.v1.limits.types import LimitRange
from podfit.api.core.v1.pods.containers import ResourceRequirements
from podfit.api.core.v1.pods.types import Pod
from podfit.client.rest import Client
from podfit.client.vpa_kinds import VPAS
from podfit.core.errors import ApiError
from podfit.decide.autoscaling.container_view import every_container
from podfit.decide.autoscaling.patches import recommended_resources
from podfit.decide.autoscaling.policies import OFF, update_mode
from podfit.decide.autoscaling.status import provided

NOT_FOUND = 404


class NoRecommendation(RequestError):
    """No VPA says which sizes these pods should have."""


class RecommendingVpa(msgspec.Struct, frozen=True):
    """The oldest VPA that names a workload and recommends something."""

    vpa: VerticalPodAutoscaler

    @staticmethod
    async def find(client: Client, about: Target, namespace: str) -> "RecommendingVpa":
        """Raises NoRecommendation, ApiError."""
        try:
            vpas = (await client.list(VPAS, namespace)).items
        except ApiError as error:
            if error.code != NOT_FOUND:
                raise
            vpas = ()
        for vpa in sorted(vpas, key=lambda vpa: (vpa.metadata.creation_timestamp or "", vpa.metadata.name)):
            target = vpa.spec.target_ref
            if target is None or (target.kind, target.name) != (about.kind.kind, about.name):
                continue
            if provided(vpa).container_recommendations:
                return RecommendingVpa(vpa)
        raise NoRecommendation(f"no VPA in namespace {namespace} recommends sizes for {about}: see podfit recommend")

    def containers(self, pod: Pod, limit_ranges: Sequence[LimitRange]) -> dict[str, ResourceRequirements]:
        """Of every container of the pod; those without a recommendation keep what they have."""
        wanted = recommended_resources(pod, self.vpa, limit_ranges)
        found = {}
        for container, *_ in every_container(pod):
            own, to = container.resources, wanted.get(container.name)
            if to is not None:
                requests, limits = {**own.requests, **to.requests}, {**own.limits, **to.limits}
                own = replace(own, requests=requests, limits=limits)
            found[container.name] = own
        return found

    def request(self, snapshot: Snapshot) -> ResizeRequest:
        """By the first of its pods: those of one workload are alike."""
        if not snapshot.pods:
            return ResizeRequest()
        admits = update_mode(self.vpa) != OFF
        return ResizeRequest(
            containers=self.containers(snapshot.pods[0], snapshot.limit_ranges),
            autoscaler=self.vpa.metadata.name if admits else "",
        )
