"""What the controller of an HPA would read for its next pass, read by who asks."""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from podfit.answers.facts.kinds import HPAS, NODES, PODS
from podfit.api.autoscaling.v1.types import Scale
from podfit.api.autoscaling.v2.types import HorizontalPodAutoscaler
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta import codec
from podfit.api.meta.selector_text import parse_labels
from podfit.client.metric_readings import MetricReadings
from podfit.client.rest import Client
from podfit.client.scales import NoKind, Scales
from podfit.client.vpa_kinds import VPAS
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.features import DEFAULT_GATES
from podfit.decide.autoscaling.horizontal.asked_size import is_vertical_first, sized_first
from podfit.decide.autoscaling.horizontal.claims import Claims
from podfit.decide.autoscaling.horizontal.lasting import restored, said_good
from podfit.decide.autoscaling.horizontal.model import Memory, Reading, Settings, View
from podfit.decide.autoscaling.horizontal.passing import group_problem, needs_readings, reads_metrics
from podfit.decide.node.room.growth import growth

MOST_OTHERS = 50
"""Other autoscalers of the namespace whose selectors are looked at."""
_PROBLEMS = (ApiError, ConnectionError, ValueError)


class HpaFacts(msgspec.Struct, frozen=True, kw_only=True):
    """`view` is what the controller's next pass would see; None where the scale could not be read, which `problem`
    says."""

    autoscaler: HorizontalPodAutoscaler
    settings: Settings
    memory: Memory
    now: float
    view: View | None = None
    readings: tuple[Reading, ...] = ()
    problem: str = ""
    unread: tuple[str, ...] = ()


async def read_hpa(client: Client, name: str, namespace: str, clock: Clock) -> HpaFacts:
    """Raises ApiError for the HPA itself."""
    autoscaler = await client.get(HPAS, name, namespace)
    ours = autoscaler.status.observed_generation is not None or not autoscaler.status.conditions
    now, unread = clock.now().timestamp(), list[str]()
    settings = Settings(upstream_compatible=not ours)
    memory = Memory()
    if ours:
        memory = replace(restored(autoscaler, settings, now), good=said_good(autoscaler, settings, now))
    facts = HpaFacts(autoscaler=autoscaler, settings=settings, memory=memory, now=now)
    scales = Scales(client, clock)
    try:
        scale = await _scale(client, scales, autoscaler)
    except (NoKind, *_PROBLEMS) as error:
        return replace(facts, problem=error.message if isinstance(error, ApiError) else str(error))
    view = View(
        autoscaler=autoscaler,
        replicas=scale.spec.replicas,
        reported=scale.status.replicas,
        selector=scale.status.selector,
        memory=memory,
        settings=settings,
    )
    if scale.status.selector and reads_metrics(view):
        pods = await _pods(client, namespace, scale.status.selector, unread)
        rivals = await _rivals(client, scales, autoscaler, scale.status.selector, pods, unread)
        view = replace(view, pods=pods, rivals=rivals, room=await _room(client, autoscaler, pods, unread))
    try:
        view = replace(view, vpas=(await client.list(VPAS, namespace)).items)
    except ApiError as error:
        if error.code != 404:
            unread.append(f"VPAs of {namespace}: {error.message}")
    readings: Sequence[Reading] = ()
    if needs_readings(view):
        reader = MetricReadings(client, scales, clock, settings.sync_period)
        readings = await reader.read(autoscaler.spec.metrics, namespace, view.selector, view.pods)
    return replace(facts, view=view, readings=tuple(readings), unread=tuple(unread))


async def _scale(client: Client, scales: Scales, autoscaler: HorizontalPodAutoscaler) -> Scale:
    ref = autoscaler.spec.scale_target_ref
    if problem := group_problem(ref.api_version):
        raise ValueError(problem)
    path = await scales.path(ref.api_version, ref.kind, autoscaler.metadata.namespace, ref.name)
    scale = codec.decode(await client.request("GET", path), Scale)
    parse_labels(scale.status.selector)
    return scale


async def _pods(client: Client, namespace: str, selector: str, unread: list[str]) -> tuple[Pod, ...]:
    try:
        found = (await client.list(PODS, namespace, labels=selector)).items
    except ApiError as error:
        unread.append(f"pods of {namespace}: {error.message}")
        return ()
    return tuple(sorted(found, key=lambda pod: pod.metadata.name))


async def _room(
    client: Client, autoscaler: HorizontalPodAutoscaler, pods: Sequence[Pod], unread: list[str]
) -> dict[str, dict[str, int]]:
    """How much pods could grow where they are; asked for only where they may."""
    names = {pod.spec.node_name for pod in pods if pod.spec.node_name}
    if not is_vertical_first(autoscaler) or not names:
        return {}
    on_node: dict[str, list[Pod]] = {name: [] for name in names}
    try:
        nodes = {node.metadata.name: node for node in (await client.list(NODES)).items if node.metadata.name in names}
        for pod in (await client.list(PODS)).items:
            if pod.spec.node_name in names:
                on_node[pod.spec.node_name].append(pod)
    except ApiError as error:
        unread.append(f"nodes and their pods: {error.message}")
        nodes = {}
    return growth(pods, nodes, on_node, sized_first(autoscaler), DEFAULT_GATES)


async def _rivals(
    client: Client,
    scales: Scales,
    autoscaler: HorizontalPodAutoscaler,
    selector: str,
    pods: Sequence[Pod],
    unread: list[str],
) -> tuple[str, ...]:
    namespace, own = autoscaler.metadata.namespace, autoscaler.metadata.name
    claims = Claims()
    claims.claim((namespace, own), parse_labels(selector))
    try:
        others = [other for other in (await client.list(HPAS, namespace)).items if other.metadata.name != own]
    except ApiError as error:
        unread.append(f"other HPAs of {namespace}: {error.message}")
        return ()
    if len(others) > MOST_OTHERS:
        unread.append(f"{len(others) - MOST_OTHERS} of {len(others)} other HPAs of {namespace}: too many to look at")
    for other in others[:MOST_OTHERS]:
        try:
            scale = await _scale(client, scales, other)
        except (NoKind, *_PROBLEMS):
            continue
        if scale.status.selector:
            claims.claim((namespace, other.metadata.name), parse_labels(scale.status.selector))
    return tuple("/".join(rival) for rival in claims.rivals((namespace, own), pods))
