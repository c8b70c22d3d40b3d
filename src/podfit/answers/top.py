"""Usage of containers beside requests, limits, allocated sizes and VPA recommendations (`podfit top`).

`TopReader` reads it, once or again and again; `rows` is pure. CPU throttling is from the kubelets' /metrics/cadvisor:

    throttled periods ÷ periods     since the container started, or since the reading before
"""

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec

from podfit.answers.autoscaling.vpas import Vpas, read_vpas
from podfit.answers.facts.ages import Age
from podfit.answers.facts.kinds import PODS
from podfit.answers.facts.pod_state import SETTLED, Size, sizes_of, state_of
from podfit.answers.facts.snapshot import Reader
from podfit.answers.facts.target import POD, Target
from podfit.answers.facts.usage import UsageFacts, UsageReader, Used
from podfit.api.autoscaling_k8s.v1 import RecommendedContainerResources
from podfit.api.core.v1.pods.types import Pod
from podfit.client.rest import Client
from podfit.client.throttling import Throttling, ThrottlingReader
from podfit.core.clock import Clock
from podfit.core.quantity import Quantity
from podfit.decide.autoscaling.policies import recommended
from podfit.decide.autoscaling.slices import told_to

NO_USAGE = "usage is not available: neither metrics.k8s.io nor a kubelet provides it"
Order = Literal["name", "cpu", "memory", "cpu%", "memory%", "throttled"]


class Figures(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One resource of one container; amounts as quantities, empty when not set or not known.

    `used` is now, `limit` what is enforced, `of_limit` the share of it in use. `lower` and `upper` bound the target.
    """

    used: str = ""
    desired: str = ""
    allocated: str = ""
    limit: str = ""
    of_limit: float | None = None
    recommended: str = ""
    lower: str = ""
    upper: str = ""


class Row(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`throttled` is the share of periods in which the CPU limit held the container back. `resize` when one is open."""

    namespace: str
    pod: str
    container: str
    node: str
    cpu: Figures
    memory: Figures
    throttled: float | None = None
    vpa: str = ""
    resize: str = ""


class Top(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`source` is where usage comes from; `missing` are figures that are not there, each with its reason. `vpas`: one
    of the rows has a VPA.
    """

    server: str
    source: str = ""
    rows: tuple[Row, ...] = ()
    vpas: bool = False
    throttling: bool = False
    notes: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    fix: str = ""


class TopFacts(msgspec.Struct, frozen=True, kw_only=True):
    """All that was read at one moment."""

    age: Age
    pods: tuple[Pod, ...]
    usage: UsageFacts
    throttling: Throttling
    vpas: Vpas
    unread: tuple[str, ...] = ()


class TopReader:
    """`namespace` is empty for all of them; `labels` is a selector for when no target is named."""

    def __init__(self, client: Client, namespace: str, clock: Clock, *, labels: str = "") -> None:
        self._client, self._namespace, self._labels = client, namespace, labels
        self._reader = Reader(client, namespace)
        self._usage, self._throttling = UsageReader(client, clock), ThrottlingReader(client)

    async def read(self, target: Target | None) -> TopFacts:
        """Raises ApiError for the pods themselves, ConnectionError when there is no answer."""
        age = await self._reader.age()
        pods = await self._pods(target)
        running = tuple(pod for pod in pods if pod.spec.node_name and pod.status.phase == "Running")
        nodes = {(pod.metadata.namespace, pod.metadata.name): pod.spec.node_name for pod in running}
        usage, throttling, vpas = await asyncio.gather(
            self._usage.read(self._namespace, nodes),
            self._throttling.read(running),
            read_vpas(self._client, self._namespace, running),
        )
        return TopFacts(age=age, pods=running, usage=usage, throttling=throttling, vpas=vpas)

    async def _pods(self, target: Target | None) -> tuple[Pod, ...]:
        if target is None:
            return (await self._client.list(PODS, self._namespace, labels=self._labels)).items
        if target.kind is POD:
            return (await self._client.get(PODS, target.name, self._namespace),)
        return (await self._reader.of_workload(target))[0]


def top(collected: TopFacts, order: Order = "name") -> Top:
    rows = sorted((row for pod in collected.pods for row in _rows(pod, collected)), key=lambda row: _key(row, order))
    return Top(
        server=collected.age.version,
        source=collected.usage.source,
        rows=tuple(rows),
        vpas=any(row.vpa for row in rows),
        throttling=bool(collected.throttling.share),
        notes=tuple(_notes(collected)),
        missing=tuple(_missing(collected, rows)),
        fix="" if collected.age.is_podfit else collected.usage.fix,
    )


def _rows(pod: Pod, collected: TopFacts) -> Iterator[Row]:
    """One a running container, in the order of the spec; those of the pod as a whole have no usage of their own."""
    sizes = tuple(sizes_of(pod, collected.age.gates))
    state = state_of(pod, sizes, collected.age)[0]
    vpa = collected.vpas.of(pod)
    told = told_to(vpa, pod) if vpa else None
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    for status in statuses:
        if status.state.running is None:
            continue
        key = (pod.metadata.namespace, pod.metadata.name, status.name)
        used = collected.usage.used.get(key, Used())
        target = recommended(told.status.recommendation, status.name) if told else None
        mine = [size for size in sizes if size.container == status.name]
        yield Row(
            namespace=key[0],
            pod=key[1],
            container=key[2],
            node=pod.spec.node_name,
            cpu=_figures("cpu", Quantity(used.cpu) if used.cpu is not None else None, mine, target),
            memory=_figures(
                "memory", Quantity.of_bytes(used.memory) if used.memory is not None else None, mine, target
            ),
            throttled=collected.throttling.share.get(key),
            vpa=vpa.metadata.name if vpa else "",
            resize=state if state != SETTLED else "",
        )


def _figures(
    resource: str, used: Quantity | None, sizes: Iterable[Size], target: RecommendedContainerResources | None
) -> Figures:
    sides = {size.side: size for size in sizes if size.resource == resource}
    request, limit = sides.get("requests"), sides.get("limits")
    enforced = limit.actual if limit else ""
    bounds = {"recommended": target.target, "lower": target.lower_bound, "upper": target.upper_bound} if target else {}
    return Figures(
        used=str(used) if used is not None else "",
        desired=request.desired if request else "",
        allocated=request.allocated if request else "",
        limit=enforced,
        of_limit=_share(used, enforced),
        **{name: str(bound[resource]) for name, bound in bounds.items() if resource in bound},
    )


def _share(used: Quantity | None, limit: str) -> float | None:
    most = Quantity.parse(limit) if limit else None
    return round(used.nano / most.nano, 4) if used is not None and most else None


def _key(row: Row, order: Order) -> tuple[Any, ...]:
    """Largest first, what is not known last; names decide between equals."""
    values = {
        "name": None,
        "cpu": _nano(row.cpu.used),
        "memory": _nano(row.memory.used),
        "cpu%": row.cpu.of_limit,
        "memory%": row.memory.of_limit,
        "throttled": row.throttled,
    }
    value = values[order]
    return value is None, -(value or 0), row.namespace, row.pod


def _nano(amount: str) -> int | None:
    return Quantity.parse(amount).nano if amount else None


def _notes(collected: TopFacts) -> Iterator[str]:
    if collected.age.caveat:
        yield collected.age.caveat
    yield from collected.usage.notes
    yield from (f"not read: {line}" for line in (*collected.unread, *collected.vpas.unread))


def _missing(collected: TopFacts, rows: list[Row]) -> Iterator[str]:
    """Figures that a reader would look for and that are not there."""
    if rows and not collected.usage.source:
        yield NO_USAGE
    else:
        lacking = sorted({row.pod for row in rows if not row.cpu.used or not row.memory.used})
        if lacking:
            yield f"no usage yet, or only a part of it, of {_few(lacking)}: the containers are too new to be measured"
    reasons: dict[str, list[str]] = {}
    for node, problem in collected.throttling.problems.items():
        reasons.setdefault(problem, []).append(node)
    for problem, nodes in reasons.items():
        yield f"throttling is not available on {_few(nodes)}: {problem}"
    limited = {
        row.node for row in rows if row.cpu.limit and row.throttled is None
    } - collected.throttling.problems.keys()
    if limited:
        yield f"throttling is not available for some containers on {_few(sorted(limited))}: the kubelet counts none"


def _few(names: list[str], most: int = 3) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
