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
from podfit.decide.autoscaling.container_view import WHOLE, every_container
from podfit.decide.autoscaling.patches import recommended_resources
from podfit.decide.autoscaling.policies import OFF, update_mode
from podfit.decide.autoscaling.slices import differs_by_pod
from podfit.decide.autoscaling.status import provided
from podfit.decide.autoscaling.targets import NamedTarget, naming

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
        for vpa in naming(vpas, NamedTarget(namespace, about.kind.kind, about.name)):
            if provided(vpa).container_recommendations:
                return RecommendingVpa(vpa)
        raise NoRecommendation(f"no VPA in namespace {namespace} recommends sizes for {about}: see podfit recommend")

    def whole(self, pod: Pod, limit_ranges: Sequence[LimitRange]) -> ResourceRequirements | None:
        """The recommendation for the pod as a whole; None where the VPA sizes its containers."""
        to = recommended_resources(pod, self.vpa, limit_ranges).get(WHOLE)
        if to is None:
            return None
        own = pod.spec.resources or ResourceRequirements()
        return replace(own, requests={**own.requests, **to.requests}, limits={**own.limits, **to.limits})

    def containers(self, pod: Pod, limit_ranges: Sequence[LimitRange]) -> dict[str, ResourceRequirements]:
        """The recommendations for every container of the pod; those without a recommendation keep what they have."""
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
        """Its pods are alike, unless the VPA sizes slices of them; then the request is the template's."""
        if not snapshot.pods:
            return ResizeRequest()
        differing = snapshot.pods if differs_by_pod(self.vpa) else ()
        by_pod = {pod.metadata.name: self._request(pod, snapshot.limit_ranges) for pod in differing}
        return replace(self._request(self._alike(snapshot), snapshot.limit_ranges), by_pod=by_pod)

    def template_sizes(self, snapshot: Snapshot) -> dict[str, ResourceRequirements]:
        """The sizes by container, or of WHOLE; the snapshot has a pod."""
        pod = self._alike(snapshot)
        whole = self.whole(pod, snapshot.limit_ranges)
        return self.containers(pod, snapshot.limit_ranges) | ({WHOLE: whole} if whole is not None else {})

    def _alike(self, snapshot: Snapshot) -> Pod:
        """The first of its pods; where slices are sized apart, as one that has neither a name nor a node yet, and the
        labels of all.
        """
        pod, *others = snapshot.pods
        if not differs_by_pod(self.vpa):
            return pod
        own = pod.metadata.labels.items()
        labels = {key: value for key, value in own if all(it.metadata.labels.get(key) == value for it in others)}
        meta, spec = replace(pod.metadata, name="", labels=labels), replace(pod.spec, node_name="", affinity=None)
        return replace(pod, metadata=meta, spec=spec)

    def _request(self, pod: Pod, limit_ranges: Sequence[LimitRange]) -> ResizeRequest:
        return ResizeRequest(
            containers=self.containers(pod, limit_ranges),
            pod=self.whole(pod, limit_ranges),
            autoscaler=self.vpa.metadata.name if update_mode(self.vpa) != OFF else "",
        )
