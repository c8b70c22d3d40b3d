"""Plans what new pods of a manifest get as initial resources: asks the recommender, as the admission controller does.

A manifest's pods are not there yet, and its workloads may not be either: what was used before counts by kind and name.
"""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from podfit.answers.facts.kinds import LIMIT_RANGES, NAMESPACES
from podfit.answers.facts.rights import why_unread
from podfit.answers.facts.updater import read_updater
from podfit.answers.plan.amounts import RequestError
from podfit.answers.plan.resize_request import why_unreadable
from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.api.batch.v1.types import CronJob
from podfit.api.core.v1.limits.types import LimitRange
from podfit.api.core.v1.pods.defaults import default_pod
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta import codec
from podfit.api.recommender.v1alpha1 import (
    GROUP_VERSION,
    RESOURCE,
    PodRecommendation,
    PodRecommendationSpec,
    PodRecommendationStatus,
)
from podfit.client.rest import Client
from podfit.client.vpa_kinds import VPAS
from podfit.core.errors import ApiError
from podfit.core.features import DEFAULT_GATES
from podfit.decide.autoscaling.boost import BoostError
from podfit.decide.autoscaling.gates import NO_GATES, Gates
from podfit.decide.autoscaling.initial import ENABLED, LABEL, initial_requests, wants_initial
from podfit.decide.autoscaling.patches import admission_patches, sized_by
from podfit.decide.autoscaling.pod_recommendation import with_answer
from podfit.decide.autoscaling.slices import told_to
from podfit.decide.autoscaling.targets import NamedTarget, gives_to_new_pods, naming
from podfit.decide.limits.limit_range import add_defaults
from podfit.decide.workload.kinds import WORKLOADS
from podfit.net.system import SystemClock

AT_ONCE = 8
"""Workloads that are asked for at the same time."""
CRON_JOB = CronJob.__name__
NOT_FOUND = 404


class InitialPlan(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What a container of new pods gets. `confidence` is from 0 to 1; `notes` say what moved it."""

    target: str
    namespace: str
    container: str
    requests: dict[str, str]
    source: str
    confidence: float
    notes: tuple[str, ...] = ()


class InitialPlans(msgspec.Struct, frozen=True):
    """`unknown` says of which workloads it is not known, and why."""

    plans: tuple[InitialPlan, ...] = ()
    unknown: tuple[str, ...] = ()


class _NewPod(msgspec.Struct, frozen=True):
    """What a workload of a manifest will make."""

    kind: str
    name: str
    pod: Pod

    def __str__(self) -> str:
        return f"{self.kind.lower()}/{self.name}"


async def plan_initial(client: Client, documents: Sequence[Any], namespace: str) -> InitialPlans:
    """`namespace` is for workloads that name none. Raises RequestError for one that cannot be read."""
    wanting = [new for new in _new_pods(documents, namespace) if wants_initial(new.pod)]
    limit = asyncio.Semaphore(AT_ONCE)

    async def asked(new: _NewPod) -> tuple[InitialPlan, ...] | str:
        async with limit:
            return await _of(client, new)

    answers = await asyncio.gather(*map(asked, wanting))
    return InitialPlans(
        tuple(plan for answer in answers if not isinstance(answer, str) for plan in answer),
        tuple(dict.fromkeys(answer for answer in answers if isinstance(answer, str) and answer)),
    )


async def _of(client: Client, new: _NewPod) -> tuple[InitialPlan, ...] | str:
    """Or why it is not known, empty where nobody gives any."""
    namespace, clock = new.pod.metadata.namespace, SystemClock()
    try:
        limit_ranges = (await client.list(LIMIT_RANGES, namespace)).items
        pod = add_defaults(new.pod, limit_ranges)
        told = await _asked(client, pod)
        vpas = await _vpas(client, new) if told.initial else []
        gates = (await read_updater(client, clock)).settings.rules.gates if vpas else NO_GATES
    except ApiError as error:
        if error.code == NOT_FOUND or not await _enabled(client, namespace):
            return ""
        return f"initial resources of {new}: {why_unread(error)}"
    now, boosting = clock.now(), gates.cpu_startup_boost
    giving = next((vpa for vpa in vpas if gives_to_new_pods(vpa, now, boosting=boosting)), None)
    sized = _sized(pod, with_answer(told_to(giving, pod), told), limit_ranges, gates) if giving is not None else ()
    bounding = giving or next(iter(vpas), None)
    return tuple(
        InitialPlan(
            target=str(new),
            namespace=namespace,
            container=name,
            requests={resource: str(amount) for resource, amount in given.requests.items()},
            source=given.source,
            confidence=given.confidence,
            notes=given.notes,
        )
        for name, given in initial_requests(pod, told.initial, limit_ranges, bounding, sized).items()
    )


async def _asked(client: Client, pod: Pod) -> PodRecommendationStatus:
    path = f"/apis/{GROUP_VERSION}/namespaces/{pod.metadata.namespace}/{RESOURCE}"
    body = codec.encode(PodRecommendation(spec=PodRecommendationSpec(pod=pod)))
    return codec.decode(await client.request("POST", path, body), PodRecommendation).status


def _sized(pod: Pod, vpa: VerticalPodAutoscaler, limit_ranges: Sequence[LimitRange], gates: Gates) -> Sequence[str]:
    """The containers that a VPA gives their size. `gates` are those that the updater publishes; the admission
    controller publishes none, and is taken to have the same."""
    try:
        return sized_by(pod, admission_patches(pod, vpa, limit_ranges, gates))
    except BoostError:  # then it changes nothing
        return ()


async def _vpas(client: Client, new: _NewPod) -> list[VerticalPodAutoscaler]:
    """Those that name the workload, the one that counts first."""
    try:
        vpas = (await client.list(VPAS, new.pod.metadata.namespace)).items
    except ApiError as error:
        if error.code != NOT_FOUND:
            raise
        return []
    return naming(vpas, NamedTarget(new.pod.metadata.namespace, new.kind, new.name))


async def _enabled(client: Client, namespace: str) -> bool:
    """Whether the namespace asks for it; where it may not be read, perhaps."""
    try:
        return (await client.get(NAMESPACES, namespace)).metadata.labels.get(LABEL) == ENABLED
    except ApiError as error:
        return error.code != NOT_FOUND


def _new_pods(documents: Sequence[Any], namespace: str) -> Iterator[_NewPod]:
    kinds = {(known.api_version, known.kind) for known in WORKLOADS}
    for document in documents:
        named = document if isinstance(document, dict) else {}
        version, kind = str(named.get("apiVersion")), str(named.get("kind"))
        if (version, kind) not in kinds:
            continue
        try:
            meta, spec = named["metadata"], named["spec"]
            template = (spec["jobTemplate"]["spec"] if kind == "CronJob" else spec)["template"]
            owner = {"apiVersion": version, "kind": kind, "name": meta["name"], "uid": "", "controller": True}
            own = template.get("metadata") or {}
            said = {key: own[key] for key in ("labels", "annotations") if own.get(key)}
            where = {"namespace": meta.get("namespace") or namespace, "ownerReferences": [owner]}
            pod = codec.convert({"metadata": {**said, **where}, "spec": template["spec"]}, Pod)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            if kind != CRON_JOB:  # `sized_in` says so
                continue
            raise RequestError(f"a {kind} cannot be read: {why_unreadable(error)}") from error
        yield _NewPod(kind, str(meta["name"]), default_pod(pod, DEFAULT_GATES))
