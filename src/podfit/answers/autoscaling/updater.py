"""The VPA updater's next pass, foretold: reads what the updater would see, and runs its decision without writing.

Read are the pods that a VPA controls, what their controllers want, and LimitRanges. Workloads are asked for one by one,
from pods upwards, so that no right to list them is needed.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from podfit.answers.facts.rights import why_unread
from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.api.core.v1.limits.types import LimitRange
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.owners import CHAIN_LIMIT, controller_of, group_of
from podfit.client.rest import Client
from podfit.client.targets import Targets
from podfit.client.workloads import WELL_KNOWN, WellKnown
from podfit.core.errors import ApiError
from podfit.decide.autoscaling.actions import Action, ActionOutcome, Deed, Evict, Resize, Skip, Verdict
from podfit.decide.autoscaling.gates import Gates
from podfit.decide.autoscaling.policies import ACTIVE_MODES, boosts, update_mode
from podfit.decide.autoscaling.update import UpdateSettings, View, run
from podfit.decide.autoscaling.view import concerned, since_conditions, view_of
from podfit.net.system import SystemClock
from podfit.vpa.controlling import Controlling

NOT_FOUND = 404
KINDS = {known.kind: known for known in WELL_KNOWN}
Key = tuple[str, str]
"""Kind and name."""


class WorkloadReader:
    """Of a namespace. What may not be read is told to `unread`, and taken for absent."""

    def __init__(self, client: Client, namespace: str, unread: Callable[[str], None]) -> None:
        self._client, self._namespace, self._unread = client, namespace, unread
        self._found: dict[str, dict[tuple[str, str], Any]] = {}
        self._asked: set[Key] = set()

    async def targets(self, pods: Iterable[Pod], vpas: Iterable[VerticalPodAutoscaler]) -> Targets:
        """With what controls these pods, up to the topmost, and what these VPAs name."""
        refs = [(ref.kind, ref.name) for vpa in vpas if (ref := vpa.spec.target_ref) is not None]
        wanted = {key for key in refs if key[0] in KINDS} | set(_owners(pods))
        for _ in range(CHAIN_LIMIT + 1):
            new = sorted(wanted - self._asked)
            if not new:
                break
            self._asked |= set(new)
            wanted = set(_owners(filter(None, await asyncio.gather(*(self._read(*key) for key in new)))))
        return Targets(self._client, SystemClock(), self._namespace, snapshot=self._found)

    async def _read(self, kind: str, name: str) -> Any:
        known = KINDS[kind]
        try:
            found = await self._client.get(known.followed(), name, self._namespace)
        except ApiError as error:
            if error.code != NOT_FOUND:
                self._unread(f"{known.kind} {name}: {why_unread(error)}")
            return None
        self._found.setdefault(kind, {})[self._namespace, name] = found
        return found


def _owners(objects: Iterable[Any]) -> Iterable[Key]:
    """The controllers of objects that are of a kind which is followed."""
    for owned in objects:
        owner = controller_of(owned.metadata)
        known: WellKnown | None = KINDS.get(owner.kind) if owner is not None else None
        if owner is not None and known is not None and group_of(known.api_version) == group_of(owner.api_version):
            yield owner.kind, owner.name


def acting(vpas: Iterable[VerticalPodAutoscaler]) -> tuple[VerticalPodAutoscaler, ...]:
    """Those that change pods which run."""
    return tuple(vpa for vpa in vpas if update_mode(vpa) in ACTIVE_MODES or boosts(vpa))


async def read_views(
    reader: WorkloadReader,
    vpas: Sequence[VerticalPodAutoscaler],
    pods: Sequence[Pod],
    limit_ranges: Sequence[LimitRange],
    now: datetime,
) -> dict[str, View]:
    """By the name of a VPA; `vpas` and `pods` are all of the namespace that matter."""
    pods = concerned(pods)
    targets = await reader.targets(pods, vpas)
    controlling, of = Controlling(targets, vpas), {vpa.metadata.name: list[Pod]() for vpa in vpas}
    for pod in pods:
        found = await controlling.vpa_of(pod)
        if found is not None:
            of[found.metadata.name].append(pod)
    since = since_conditions(pods, now)
    return {
        vpa.metadata.name: view_of(vpa, of[vpa.metadata.name], limit_ranges, now, wanted=targets.wanted, since=since)
        for vpa in vpas
    }


SETTINGS = UpdateSettings(gates=Gates(cpu_startup_boost=True, in_place=True, per_vpa_config=True))
"""As in `podfit up`."""


class NextPass(msgspec.Struct, frozen=True):
    """One pass: `steps` in words, and by UID what becomes of each pod. How many pods it disturbs at once is bounded, so
    more may follow in the next.
    """

    steps: tuple[str, ...] = ()
    verdicts: Mapping[str, Verdict] = msgspec.field(default_factory=dict)

    def reason(self, uid: str) -> str:
        """What becomes of a pod, and why when it is left; empty for one that is not looked at."""
        verdict = self.verdicts.get(uid)
        if verdict is None:
            return ""
        done = {Deed.RESIZED: "the updater's next pass resizes it in place", Deed.EVICTED: "its next pass evicts it"}
        return done.get(verdict.deed) or f"the updater leaves it: {verdict.reason}"


def next_pass(view: View, settings: UpdateSettings = SETTINGS) -> NextPass:
    """As if the API refused nothing."""
    actions, told = run(view, settings), list[str]()
    try:
        action = next(actions)
        while True:
            told += _told(action)
            action = actions.send(ActionOutcome.DONE)
    except StopIteration as end:
        told += (f"leaves pods as they are. {said}" for said in end.value.conditions.values())
        return NextPass(tuple(told), {verdict.pod.metadata.uid: verdict for verdict in end.value.verdicts})


def _told(action: Action) -> Iterator[str]:
    name = action.pod.metadata.name
    match action:
        case Resize():
            amounts = ", ".join(
                _amount(resource) for resource in action.resources if isinstance(resource.get("value"), str)
            )
            yield f"resizes {name} in place: {amounts}"
        case Evict():
            yield f"evicts {name}, as far as disruption budgets allow"
        case Skip():
            yield f"leaves {name}: its node can never give as much"


def _amount(operation: dict[str, object]) -> str:
    """`/spec/containers/0/resources/requests/cpu` as `cpu request 500m`."""
    *_, kind, resource = str(operation["path"]).split("/")
    return f"{resource} {kind.removesuffix('s')} {operation['value']}"
