"""Plans of several targets, as from a manifest: one snapshot and one plan, with a size and namespace
for each target.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from podfit.answers.facts.autoscalers import Autoscalers
from podfit.answers.facts.budgets import Budgets
from podfit.answers.facts.selection import AT_ONCE, Selection, select
from podfit.answers.facts.snapshot import Reader, Snapshot
from podfit.answers.facts.target import POD, WORKLOADS, Target
from podfit.answers.plan.amounts import RequestError
from podfit.answers.plan.plan import PodRequest, plan_requests, requests_of
from podfit.answers.plan.read_plan import Planned
from podfit.answers.plan.recommended_request import NOT_FOUND, NoRecommendation, RecommendingVpa
from podfit.answers.plan.resize_request import ResizeRequest, from_template, manifest_of
from podfit.answers.plan.sums import sums
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.v1.types import ObjectMeta
from podfit.client.rest import Client
from podfit.core.errors import ApiError

T = TypeVar("T")


class _Object(Protocol):
    @property
    def metadata(self) -> ObjectMeta: ...


Obj = TypeVar("Obj", bound=_Object)


class NothingSized(RequestError):
    """A manifest without pods and workloads."""


class Sized(msgspec.Struct, frozen=True):
    """A target and what is asked for its pods; None for what its VPA recommends. `pods` are those that were read
    already.
    """

    target: Target
    namespace: str
    asked: ResizeRequest | None
    pods: tuple[Pod, ...] = ()


class _Read(msgspec.Struct, frozen=True):
    sized: Sized
    snapshot: Snapshot
    asked: ResizeRequest


def sized_in(documents: Sequence[Any], namespace: str) -> list[Sized]:
    """The pods and workloads that the documents of a manifest name; other kinds are passed over.

    `namespace` is for those that name none. Raises RequestError: a document cannot be read, two are about the same
    target, or none has a size.
    """
    kinds = {(kind.api_version, kind.kind): kind for kind in (POD, *WORKLOADS)}
    found: dict[tuple[Target, str], Sized] = {}
    for document in documents:
        if not isinstance(document, dict):
            raise RequestError("a document is not an object")
        kind = kinds.get((str(document.get("apiVersion")), str(document.get("kind"))))
        if kind is None:
            continue
        meta = document.get("metadata")
        meta = meta if isinstance(meta, dict) else {}
        target, where = Target(kind, str(meta.get("name") or "")), str(meta.get("namespace") or namespace)
        if not target.name:
            raise RequestError(f"a {kind.kind} has no metadata.name")
        if (target, where) in found:
            raise RequestError(f"{target} in namespace {where} occurs twice")
        found[target, where] = Sized(target, where, from_template(Pod(spec=manifest_of([document], target))))
    if not found:
        raise NothingSized("no document is a pod or a workload")
    return list(found.values())


async def plan_selection(
    client: Client, namespace: str, selection: Selection, request: ResizeRequest | None
) -> Planned:
    """The same request for all that are selected; None for what the VPA of each recommends. Raises TargetError where
    nothing is, or too much.
    """
    selected = await select(client, namespace, selection)
    return await plan_several(client, [Sized(one.target, one.namespace, request, one.pods) for one in selected])


async def plan_several(client: Client, asked: Sequence[Sized]) -> Planned:
    """A target that is not there has no pods, which the plan says: its pods will be new ones, or a Job is over.

    Raises ApiError for a target that cannot be read, and where none is there; RequestError for a size that does not fit
    one.
    """
    limit = asyncio.Semaphore(AT_ONCE)

    async def read(sized: Sized) -> _Read:
        async with limit:
            snapshot = await Reader(client, sized.namespace).read(sized.target, usage=True, known=sized.pods)
            request = sized.asked
            if request is None:
                request = (await RecommendingVpa.find(client, sized.target, sized.namespace)).request(snapshot)
            return _Read(sized, snapshot, request)

    answers = await asyncio.gather(*map(read, asked), return_exceptions=True)
    read_ones: list[_Read] = []
    missing: list[str] = []
    for sized, answer in zip(asked, answers, strict=True):
        if isinstance(answer, _Read):
            read_ones.append(answer)
        elif isinstance(answer, NoRecommendation):
            missing.append(f"{sized.target} in namespace {sized.namespace}: no VPA recommends sizes for it")
        elif isinstance(answer, ApiError) and answer.code == NOT_FOUND:
            missing.append(f"{sized.target} in namespace {sized.namespace}: {answer.message}")
        else:
            raise answer
    if not read_ones:
        raise next(answer for answer in answers if isinstance(answer, ApiError | NoRecommendation))
    requests = tuple(_requests(read_ones))
    whole = merged([one.snapshot for one in read_ones])
    whole = replace(whole, unread=(*whole.unread, *missing))
    plan = plan_requests(whole, requests)
    return Planned(snapshot=whole, requests=requests, plan=replace(plan, sums=sums(requests, plan, whole.age.gates)))


def _requests(read: Sequence[_Read]) -> Iterator[PodRequest]:
    """Raises RequestError for a pod of two targets."""
    owners: dict[str, Target] = {}
    for one in read:
        for pod in one.snapshot.pods:
            other = owners.setdefault(pod.metadata.uid, one.sized.target)
            if other != one.sized.target:
                raise RequestError(
                    f"pod {pod.metadata.name} belongs to {other} and to {one.sized.target}: plan one of them"
                )
        yield from requests_of(one.snapshot, one.asked)


def merged(snapshots: Sequence[Snapshot]) -> Snapshot:
    """One snapshot of what several tell; what two tell of one object is taken from the first."""
    first = snapshots[0]
    usages = [snapshot.usage for snapshot in snapshots if snapshot.usage is not None]
    clusters = (snapshot.cluster for snapshot in snapshots if snapshot.cluster is not None)
    return replace(
        first,
        namespace=", ".join(dict.fromkeys(snapshot.namespace for snapshot in snapshots)),
        pods=_once(snapshot.pods for snapshot in snapshots),
        neighbours=_once(snapshot.neighbours for snapshot in snapshots),
        nodes={name: node for snapshot in reversed(snapshots) for name, node in snapshot.nodes.items()},
        unknown_nodes={name: why for snapshot in snapshots for name, why in snapshot.unknown_nodes.items()},
        limit_ranges=_once(snapshot.limit_ranges for snapshot in snapshots),
        quotas=_once(snapshot.quotas for snapshot in snapshots),
        usage={name: used for usage in usages for name, used in usage.items()} if usages else None,
        no_usage=_lines(snapshot.no_usage for snapshot in snapshots),
        template=None,
        owner_template=None,
        unread=_lines(snapshot.unread for snapshot in snapshots),
        policies={name: told for snapshot in reversed(snapshots) for name, told in snapshot.policies.items()},
        unscheduled=_once(snapshot.unscheduled for snapshot in snapshots),
        cluster=next(clusters, None),
        room=next((snapshot.room for snapshot in snapshots if snapshot.room.mode), first.room),
        foreign_checks=first.foreign_checks,
        autoscalers=_together([snapshot.autoscalers for snapshot in snapshots]),
        budgets=Budgets(
            _once(snapshot.budgets.known for snapshot in snapshots),
            next((snapshot.budgets.problem for snapshot in snapshots if snapshot.budgets.problem), ""),
        ),
    )


def _together(read: Sequence[Autoscalers]) -> Autoscalers:
    some = next((autoscalers for autoscalers in read if autoscalers.read_at is not None), Autoscalers())
    return Autoscalers(
        vpas={uid: vpa for autoscalers in read for uid, vpa in autoscalers.vpas.items()},
        hpas=_once(autoscalers.hpas for autoscalers in read),
        workloads={uid: chain for autoscalers in read for uid, chain in autoscalers.workloads.items()},
        updater=some.updater,
        wanted={owner: number for autoscalers in read for owner, number in autoscalers.wanted.items()},
        read_at=some.read_at,
    )


def _once(groups: Iterable[Iterable[Obj]]) -> tuple[Obj, ...]:
    by_uid: dict[str, Obj] = {}
    for group in groups:
        for obj in group:
            by_uid.setdefault(obj.metadata.uid, obj)
    return tuple(by_uid.values())


def _lines(groups: Iterable[Iterable[T]]) -> tuple[T, ...]:
    lines: list[T] = []
    for group in groups:
        lines += [line for line in group if line not in lines]
    return tuple(lines)
