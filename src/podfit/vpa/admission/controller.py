"""The webhook handler: an AdmissionReview in, one with patches out, for new pods and VPAs (V-064 to V-069).

Nothing that goes wrong here keeps a pod from being made: it is then let through as it is. Only VPA objects are refused,
those that cannot be read among them.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any

import msgspec

from podfit.api.admission.v1.types import AdmissionRequest, AdmissionResponse, AdmissionReview
from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.api.core.v1.limits.types import LimitRange
from podfit.api.core.v1.namespaces.types import Namespace
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta import codec
from podfit.api.recommender.v1alpha1 import PodRecommendationStatus
from podfit.client.controlling import Controlling
from podfit.client.informer import Informer
from podfit.client.rest import Client
from podfit.client.targets import Targets
from podfit.client.vpa_kinds import GROUP, VPAS
from podfit.core.clock import Clock
from podfit.core.fields import refusal
from podfit.core.options import Option, Part
from podfit.core.quantity import MALFORMED, Quantity
from podfit.decide.autoscaling.boost import BoostError
from podfit.decide.autoscaling.flags import AMOUNT, IgnoredNamespaces, VpaNamespace
from podfit.decide.autoscaling.gates import NO_GATES, VpaGates
from podfit.decide.autoscaling.initial import SELECTOR, initial_patches, initial_requests, wants_initial
from podfit.decide.autoscaling.patches import Operation, admission_patches, sized_by
from podfit.decide.autoscaling.pod_recommendation import with_answer
from podfit.decide.autoscaling.policies import OFF, update_mode
from podfit.decide.autoscaling.slices import told_to
from podfit.decide.autoscaling.targets import gives_to_new_pods
from podfit.decide.autoscaling.validation import default_patch, validate, warnings
from podfit.decide.pod.spare import is_spare
from podfit.net.metrics import Metrics
from podfit.net.wire import Request, Response
from podfit.vpa.admission.fresh import FreshRecommendations
from podfit.vpa.admission.status import StatusLease, keep_renewed
from podfit.vpa.step_latency import StepLatency

APPLIED, SKIPPED, FAILED = "applied", "skipped", "error"
_ANSWERS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30)


class AdmissionMetrics:
    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._pods = metrics.counter(
            "vpa_admission_controller_admission_pods_total",
            "Pods reviewed, by whether they were changed.",
            ("applied",),
        )
        self._answers = metrics.histogram(
            "vpa_admission_controller_admission_latency_seconds",
            "Seconds of a review.",
            ("status", "resource"),
            buckets=_ANSWERS,
        )
        self.step = StepLatency(metrics, clock, "admission_controller", "Seconds of a step of a review.")

    def reviewed(self, status: str, resource: str, seconds: float) -> None:
        self._answers.labels(status, resource).observe(seconds)

    def pod(self, *, applied: bool) -> None:
        self._pods.labels(str(applied).lower()).inc()


log = logging.getLogger(__name__)
COMPONENT = "vpa-admission-controller"
BODY_LIMIT = 5 * 1024 * 1024
JSON, JSON_PATCH = "application/json", "JSONPatch"
KIND = "VerticalPodAutoscaler"
BY_NAMESPACE = "namespace"


class AdmissionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`most_boost` bounds the CPU of containers that start. `asks`: the recommender is asked about each new pod, and
    what the VPA's status says counts where it does not answer at once.
    """

    gates: VpaGates = NO_GATES
    most_boost: Annotated[
        Quantity | None, Option("The most CPU of a container that starts.", flag="max-allowed-cpu-boost", unit=AMOUNT)
    ] = None
    namespace: VpaNamespace = ""
    ignored: IgnoredNamespaces = frozenset()
    lease: Annotated[StatusLease, Part()] = StatusLease()
    asks: Annotated[bool, Option("Ask podfit's recommender about each new pod of a VPA.", flag="ask-recommender")] = (
        False
    )


class _Answer(msgspec.Struct, frozen=True):
    patches: Sequence[Operation] = ()
    warnings: tuple[str, ...] = ()
    status: dict[str, Any] | None = None
    """The refusal."""


class AdmissionController:
    """`run` keeps what it answers from up to date; until that is there, pods pass as they are."""

    def __init__(
        self, client: Client, *, clock: Clock, settings: AdmissionSettings, metrics: Metrics | None = None
    ) -> None:
        self._client, self._clock, self._settings = client, clock, settings
        namespace = settings.namespace
        by_namespace = {BY_NAMESPACE: lambda obj: (obj.metadata.namespace,)}
        self._vpas = Informer(client, VPAS, clock=clock, namespace=namespace, indexes=by_namespace)
        self._limit_ranges = Informer(client, LimitRange, clock=clock, namespace=namespace, indexes=by_namespace)
        self._asking_namespaces = Informer(client, Namespace, clock=clock, labels=SELECTOR)
        """Those that ask for initial resources."""
        self._targets = Targets(client, clock, namespace)
        self.metrics = metrics or Metrics()
        self._measured = AdmissionMetrics(self.metrics, clock)
        self._fresh = FreshRecommendations(client, clock) if settings.asks else None

    async def run(self) -> None:
        informers: tuple[Informer[Any], ...] = (self._vpas, self._limit_ranges, *self._targets.informers)
        async with asyncio.TaskGroup() as group:
            if self._fresh is not None:
                group.create_task(self._asking_namespaces.run())
                group.create_task(self._fresh.run())
            for informer in informers:
                group.create_task(informer.run())
            await asyncio.gather(*(informer.synced.wait() for informer in informers))
            await keep_renewed(self._client, self._clock, self._settings.lease)

    async def handle(self, request: Request) -> Response:
        with self._measured.step("total"):
            with self._measured.step("read_request"):
                if request.method != "POST" or request.headers.get("content-type", "").partition(";")[0] != JSON:
                    return Response(415, {}, b"a POST of application/json is expected\n")
                if len(request.body) > BODY_LIMIT:
                    return Response(413, {}, b"the review is too large\n")
                review = _read(request.body)
            with self._measured.step("admit"):
                asked = review.request if review is not None else None
                answer = await self._admit(asked) if asked is not None else _Answer()
            with self._measured.step("build_response"):
                version = review.api_version if review is not None else AdmissionReview().api_version
                body = codec.encode(AdmissionReview(api_version=version, response=_response(asked, answer)))
        return Response(200, {"content-type": JSON}, body)

    async def _admit(self, asked: AdmissionRequest) -> _Answer:
        began, resource = self._clock.monotonic(), asked.resource
        handlers: dict[tuple[str, str], tuple[str, Callable[[AdmissionRequest], Awaitable[_Answer]]]] = {
            ("", "pods"): ("Pod", self._pod),
            (GROUP, "verticalpodautoscalers"): ("VPA", self._vpa),
        }
        name, handler = handlers.get((resource.group, resource.resource), ("unknown", _nothing))
        try:
            answer = await handler(asked)
        except Exception:  # whatever is wrong with this one, it must not keep pods from being made
            log.exception("not reviewed resource=%s object=%s/%s", resource.resource, asked.namespace, asked.name)
            answer, status = _Answer(), FAILED
        else:
            status = APPLIED if answer.patches else SKIPPED
        self._measured.reviewed(status, name, self._clock.monotonic() - began)
        if name == "Pod":
            self._measured.pod(applied=bool(answer.patches))
        return answer

    async def _pod(self, asked: AdmissionRequest) -> _Answer:
        if asked.resource.version != "v1" or asked.namespace in self._settings.ignored:
            return _Answer()
        pod = codec.convert(asked.object, Pod)
        if is_spare(pod):  # with requests of its own no node would run it
            return _Answer()
        namespace = asked.namespace
        vpa = await self._controlling(pod, namespace)
        wants = self._asking_namespaces.get(namespace) is not None and wants_initial(pod)
        if vpa is None and not wants:
            return _Answer()
        told = PodRecommendationStatus()
        if self._fresh is not None and (wants or (vpa is not None and update_mode(vpa) != OFF)):
            told = await self._fresh.of(pod, namespace)
        found = self._limit_ranges.by_index(BY_NAMESPACE, namespace)
        limit_ranges = sorted(found, key=lambda limit_range: limit_range.metadata.name)
        patches = (
            self._by_vpa(pod, with_answer(told_to(vpa, pod), told), namespace, limit_ranges) if vpa is not None else ()
        )
        if wants and told.initial:
            bounding = vpa or await self._bounding(pod, namespace)
            initial = initial_requests(pod, told.initial, limit_ranges, bounding, sized_by(pod, patches))
            patches = (*patches, *initial_patches(pod, initial, annotated=bool(patches)))
        return _Answer(patches)

    async def _controlling(self, pod: Pod, namespace: str) -> VerticalPodAutoscaler | None:
        """The VPA that gives the pod something."""
        now, boosting = self._clock.now(), self._settings.gates.cpu_startup_boost
        vpas = self._vpas.by_index(BY_NAMESPACE, namespace)
        kept = [vpa for vpa in vpas if gives_to_new_pods(vpa, now, boosting=boosting)]
        return await Controlling(self._targets, kept).vpa_of(pod, namespace)

    async def _bounding(self, pod: Pod, namespace: str) -> VerticalPodAutoscaler | None:
        """One of mode Off gives nothing, and bounds what others give."""
        return await Controlling(self._targets, self._vpas.by_index(BY_NAMESPACE, namespace)).vpa_of(pod, namespace)

    def _by_vpa(
        self, pod: Pod, vpa: VerticalPodAutoscaler, namespace: str, limit_ranges: Sequence[LimitRange]
    ) -> Sequence[Operation]:
        try:
            return admission_patches(pod, vpa, limit_ranges, self._settings.gates, self._settings.most_boost)
        except BoostError as error:
            log.warning("pod made as it is namespace=%s vpa=%s error=%s", namespace, vpa.metadata.name, error)
            return ()

    async def _vpa(self, asked: AdmissionRequest) -> _Answer:
        try:
            vpa = codec.convert(asked.object, VerticalPodAutoscaler)
        except (msgspec.ValidationError, ValueError) as error:
            return _Answer(status=_unreadable(error))
        old = codec.convert(asked.old_object, VerticalPodAutoscaler) if asked.old_object is not None else None
        errors = validate(vpa, old, self._settings.gates)
        if errors:
            refused = refusal(KIND, vpa.metadata.name, errors, group=GROUP)
            return _Answer(status=refused.status())
        return _Answer(default_patch(vpa), warnings(vpa, old))


def _unreadable(error: Exception) -> dict[str, Any]:
    """The refusal of a VPA that cannot be read; of an amount that is none in upstream's words."""
    text = MALFORMED if MALFORMED in str(error) or codec.NO_QUANTITY in str(error) else str(error)
    return {"status": "Failure", "message": text, "reason": "BadRequest", "code": 400}


def _read(body: bytes) -> AdmissionReview | None:
    """None for what is no review."""
    try:
        return codec.decode(body, AdmissionReview)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        log.warning("a review cannot be read error=%s", error)
        return None


def _response(asked: AdmissionRequest | None, answer: _Answer) -> AdmissionResponse:
    return AdmissionResponse(
        uid=asked.uid if asked is not None else "",
        allowed=answer.status is None,
        status=answer.status,
        patch=codec.encode(list(answer.patches)) if answer.patches else b"",
        patch_type=JSON_PATCH if answer.patches else None,
        warnings=answer.warnings,
    )


async def _nothing(_: AdmissionRequest) -> _Answer:
    return _Answer()
