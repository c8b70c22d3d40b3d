"""The probe manager: a task for each probe, from the first look at its container to the end of its pod.

    PodWorld.look ─▶ look(pod, containers) ──▶ Health          what is known, at once
                          │ what the runtime shows
                          ▼
                     one Worker a probe ── changed ──▶ the pod's worker looks again

When a task ends by itself (the container will not run again) another look begins it anew if there is a reason to.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from podfit.api.core.v1.pods.aggregate import lasting_containers
from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.probes import Probe
from podfit.api.core.v1.pods.restart_policy import starts_again
from podfit.api.core.v1.pods.types import Pod
from podfit.core.clock import Clock
from podfit.core.randomness import Random, fraction
from podfit.decide.lifecycle.facts import ContainerState, ContainerStatus, Health
from podfit.decide.pod.ephemeral_containers import field_path
from podfit.decide.pod.probing import Action, ProbedInstance, ProbeKind, Result
from podfit.kubelet.probes.checks import Checks, ProbedContainer, ProbeOutcome, ProbeResult
from podfit.kubelet.probes.worker import ProbeWorker
from podfit.net.supervisor import Supervisor

Key = tuple[str, str, ProbeKind]
"""UID of the pod, name of the container, kind of probe."""


class ProbeManager:
    """`address` is what pods are reached at that say nothing else. `changed` is called with a pod's UID when a result
    has changed; `emit` records an event: pod, type, reason, message, field path.
    """

    def __init__(
        self,
        checks: Checks,
        *,
        address: str,
        clock: Clock,
        random: Random,
        changed: Callable[[str], None],
        emit: Callable[[Pod, str, str, str, str], None],
    ) -> None:
        self.supervisor = Supervisor("probes")
        self._checks, self._address, self._clock, self._random = checks, address, clock, random
        self._changed, self._emit = changed, emit
        self._workers: dict[Key, ProbeWorker] = {}
        self._tasks: dict[Key, asyncio.Task[None]] = {}

    def look(self, pod: Pod, containers: Sequence[ContainerStatus]) -> Health:
        """What is known of these containers, newest first. What is not ready yet is probed now. `pod` is the API's."""
        uid, newest = pod.metadata.uid, _newest(containers)
        for container in lasting_containers(pod.spec):
            startup = self._result((uid, container.name, ProbeKind.STARTUP), newest.get(container.name))
            for kind, probe in probes_of(container):
                started = container.startup_probe is None or startup is Result.SUCCESS
                seen = self._seen(pod, container, newest.get(container.name), kind, started=started)
                self._show((uid, container.name, kind), pod, container, probe, seen)
        return self._health(pod, newest)

    def forget(self, uid: str) -> None:
        """Nothing of the pod runs any more."""
        for key in [key for key in self._workers if key[0] == uid]:
            del self._workers[key]
            if (task := self._tasks.pop(key, None)) is not None:
                task.cancel()

    async def close(self) -> None:
        await self.supervisor.stop()

    # ------------------------------------------------------------------ inside

    def _show(self, key: Key, pod: Pod, container: Container, probe: Probe, seen: ProbedInstance) -> None:
        worker = self._workers.get(key)
        if worker is None:
            worker = self._workers[key] = ProbeWorker(key[2], probe, self._clock, changed=lambda: self._changed(key[0]))

        async def ask() -> ProbeOutcome:
            address = pod.status.pod_ip or self._address
            outcome = await self._checks.run(ProbedContainer(container, worker.seen.id, address, key[2]), probe)
            self._tell(pod, container, key[2], outcome)
            return outcome

        is_new = not worker.seen.id
        action, task = worker.show(seen, ask), self._tasks.get(key)
        if (task is None or task.done()) and action is not Action.END:
            pause = fraction(self._random) * worker.period if seen.was_well and is_new else 0.0
            self._tasks[key] = self.supervisor.begin(worker.run(pause), name=f"{key[2]} probe {key[0]}/{key[1]}")

    def _seen(
        self, pod: Pod, container: Container, instance: ContainerStatus | None, kind: ProbeKind, *, started: bool
    ) -> ProbedInstance:
        ending = pod.metadata.deletion_timestamp is not None
        if instance is None or instance.state is ContainerState.CREATED:
            return ProbedInstance(over=ending)
        ended = instance.state is ContainerState.EXITED
        return ProbedInstance(
            id=instance.id,
            running=instance.state is ContainerState.RUNNING,
            since=instance.started_at / 1e9,
            started=started,
            was_well=_was_well(pod, container.name, instance.id, kind),
            ending=ending,
            over=ended and (ending or not starts_again(pod.spec, container, instance.exit_code)),
        )

    def _health(self, pod: Pod, newest: Mapping[str, ContainerStatus]) -> Health:
        uid, unstarted, unready, failed = pod.metadata.uid, set[str](), set[str](), dict[str, ProbeKind]()
        for container in lasting_containers(pod.spec):
            instance = newest.get(container.name)
            if instance is None or instance.state is not ContainerState.RUNNING:
                continue
            results = {kind: self._result((uid, container.name, kind), instance) for kind, _ in probes_of(container)}
            if results.get(ProbeKind.STARTUP, Result.SUCCESS) is not Result.SUCCESS:
                unstarted.add(instance.id)
            if instance.id in unstarted or results.get(ProbeKind.READINESS, Result.SUCCESS) is not Result.SUCCESS:
                unready.add(instance.id)
            for kind in (ProbeKind.LIVENESS, ProbeKind.STARTUP):
                if results.get(kind) is Result.FAILURE:
                    failed.setdefault(instance.id, kind)
        return Health(frozenset(unstarted), frozenset(unready), failed)

    def _result(self, key: Key, instance: ContainerStatus | None) -> Result | None:
        """The result of this very instance."""
        worker = self._workers.get(key)
        if worker is None or instance is None or worker.state.id != instance.id:
            return None
        return worker.state.result

    def _tell(self, pod: Pod, container: Container, kind: ProbeKind, outcome: ProbeOutcome) -> None:
        path = field_path(pod, container.name)
        match outcome.verdict:
            case ProbeResult.FAILURE:
                self._emit(pod, "Warning", "Unhealthy", f"{kind} probe failed: {outcome.text}", path)
            case ProbeResult.WARNING:
                self._emit(pod, "Warning", "ProbeWarning", f"{kind} probe warning: {outcome.text}", path)
            case ProbeResult.UNKNOWN:
                text = f"{kind} probe errored and resulted in unknown state: {outcome.text}"
                self._emit(pod, "Warning", "Unhealthy", text, path)


def probes_of(container: Container) -> Iterator[tuple[ProbeKind, Probe]]:
    """Startup before the others, which wait for it."""
    for kind, probe in (
        (ProbeKind.STARTUP, container.startup_probe),
        (ProbeKind.LIVENESS, container.liveness_probe),
        (ProbeKind.READINESS, container.readiness_probe),
    ):
        if probe is not None:
            yield kind, probe


def _newest(containers: Iterable[ContainerStatus]) -> dict[str, ContainerStatus]:
    found: dict[str, ContainerStatus] = {}
    for instance in containers:
        found.setdefault(instance.name, instance)
    return found


def _was_well(pod: Pod, name: str, container_id: str, kind: ProbeKind) -> bool:
    """Whether the API was told so by the kubelet before this one."""
    statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    told = next((s for s in statuses if s.name == name and s.container_id.endswith(f"://{container_id}")), None)
    if told is None:
        return False
    match kind:
        case ProbeKind.READINESS:
            return told.ready
        case ProbeKind.STARTUP:
            return bool(told.started)
    return True
