"""Reads what the updater would see of a VPA: the pods that it controls, what their controllers want, LimitRanges.

Workloads are asked for one by one, from pods upwards, so that no right to list them is needed.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from podfit.answers.rights import why_unread
from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.api.core.v1.limits.types import LimitRange
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.owners import CHAIN_LIMIT, controller_of, group_of
from podfit.client.rest import Client
from podfit.core.errors import ApiError
from podfit.decide.autoscaling.policies import ACTIVE_MODES, boosts, update_mode
from podfit.decide.autoscaling.update import View
from podfit.decide.autoscaling.view import concerned, since_conditions, view_of
from podfit.net.system import SystemClock
from podfit.vpa.controlling import Controlling
from podfit.vpa.targets import Targets
from podfit.vpa.workloads import WELL_KNOWN, WellKnown

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
