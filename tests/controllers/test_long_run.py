"""A cluster over hours of its clock: rollouts, changes of size, crashes and lost nodes, a CronJob every minute.

No pod is lost, each workload has what it asks for, and nothing is left over: no replica set beyond its history, no job
beyond its own, no event beyond its hour, nothing in a node's runtime without a pod, and nothing of what was deleted.
"""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from podfit.api.apps.v1.deployments import Deployment, ReplicaSet
from podfit.api.batch.v1.types import CronJob, Job
from podfit.api.core.v1.events.types import Event
from podfit.api.core.v1.pods.phase import ENDED
from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.services.types import Endpoints, Service
from podfit.api.discovery.v1.types import EndpointSlice
from podfit.api.meta.owners import controller_of
from podfit.client.rest import MERGE_PATCH
from podfit.core.times import parse_time
from podfit.decide.workload.pods import is_ready
from podfit.testing.cluster import Cluster

HISTORY, EVENT_SECONDS = 2, 3600
NODES = 4
AWAY_MINUTES = 9
"""A lost node is NotReady within one minute, and its pods leave it five minutes later."""
REST = 12
"""Minutes in which nothing more is done to the cluster."""


class Run:
    def __init__(self, directory: Path, *, deployments: int, seed: int) -> None:
        self.cluster = Cluster(directory, nodes=NODES, seed=seed)
        self._random = Random(seed)
        self._sizes = {f"d{number}": 1 + number % 4 for number in range(deployments)}
        self._away: dict[str, int] = {}
        self.done: Counter[str] = Counter()
        for name, size in self._sizes.items():
            self.cluster.apply(_deployment(name, size), _service(name))
        self.cluster.apply(_cron_job())

    def play(self, minutes: int) -> None:
        for minute in range(minutes):
            for node in [node for node, until in self._away.items() if until <= minute]:
                self.cluster.restore_node(node)
                del self._away[node]
            if minute < minutes - AWAY_MINUTES:
                act = self._random.choice((self._roll, self._roll, self._scale, self._crash, self._lose))
                act(minute)
            self.cluster.clock.advance(minutes=1)
        for node in self._away:
            self.cluster.restore_node(node)
        self.cluster.clock.advance(minutes=REST)

    def _roll(self, minute: int) -> None:
        self._patch({"template": {"metadata": {"annotations": {"rolled": str(minute)}}}})
        self.done["rollouts"] += 1

    def _scale(self, _minute: int) -> None:
        name = self._random.choice(sorted(self._sizes))
        self._sizes[name] = self._random.randint(1, 5)
        self._patch({"replicas": self._sizes[name]}, name)
        self.done["changes of size"] += 1

    def _crash(self, _minute: int) -> None:
        pods = [pod for pod in self._list(Pod) if is_ready(pod) and pod.spec.node_name not in self._away]
        chosen = self._random.choice(sorted(pods, key=lambda pod: pod.metadata.name))
        self.cluster.crash(chosen.metadata.name)
        self.done["crashes"] += 1

    def _lose(self, minute: int) -> None:
        """One at a time, so that those that are left have room."""
        if not self._away:
            node = f"simulated-{self._random.randint(1, NODES)}"
            self.cluster.lose_node(node)
            self._away[node] = minute + AWAY_MINUTES
            self.done["lost nodes"] += 1

    def _patch(self, spec: dict[str, Any], name: str = "") -> None:
        name = name or self._random.choice(sorted(self._sizes))
        client = self.cluster.client
        self.cluster.run(client.patch(Deployment, name, "default", {"spec": spec}, content_type=MERGE_PATCH))

    def _list(self, kind: type[Any]) -> list[Any]:
        return list(self.cluster.run(self.cluster.client.list(kind, "default")).items)

    # ------------------------------------------------------------------ what has to hold

    def check(self, minutes: int) -> None:
        self._check_workloads()
        self._check_what_is_kept(minutes)
        self._check_runtimes()

    def _check_workloads(self) -> None:
        sets = {replicas.metadata.uid: replicas for replicas in self._list(ReplicaSet)}
        pods: Counter[str] = Counter()
        for pod in self._list(Pod):
            owner = controller_of(pod.metadata)
            assert owner is not None
            assert not pod.metadata.deletion_timestamp
            if owner.kind == "ReplicaSet":
                above = controller_of(sets[owner.uid].metadata)
                assert above is not None
                assert is_ready(pod)
                pods[above.name] += 1
        assert pods == Counter(self._sizes)
        for deployment in self._list(Deployment):
            size, status = self._sizes[deployment.metadata.name], deployment.status
            assert (status.replicas, status.updated_replicas, status.available_replicas) == (size, size, size)
        slices = self._list(EndpointSlice)
        told = {part.metadata.labels["kubernetes.io/service-name"]: part.endpoints for part in slices}
        for name, size in self._sizes.items():
            assert [endpoint.conditions.ready for endpoint in told[name]] == [True] * size

    def _check_what_is_kept(self, minutes: int) -> None:
        owners = Counter(
            owner.name for replicas in self._list(ReplicaSet) if (owner := controller_of(replicas.metadata))
        )
        assert all(count <= HISTORY + 1 for count in owners.values()), owners
        (cron,) = self._list(CronJob)
        jobs = self._list(Job)
        assert len(jobs) <= HISTORY + 1 + len(cron.status.active)
        latest = parse_time(cron.status.last_schedule_time)
        assert latest - parse_time(cron.metadata.creation_timestamp) > timedelta(minutes=minutes + REST - 2)
        ended = [pod for pod in self._list(Pod) if pod.status.phase in ENDED]
        assert len(ended) <= len(jobs)
        now = latest + timedelta(minutes=1)
        times = [parse_time(event.last_timestamp or event.event_time) for event in self._list(Event)]
        assert min(times) >= now - timedelta(seconds=EVENT_SECONDS + 120)

    def _check_runtimes(self) -> None:
        known = {pod.metadata.uid for pod in self._list(Pod)}
        for runtime in self.cluster.runtimes():
            assert {sandbox.uid for sandbox in self.cluster.run(runtime.list_sandboxes())} <= known

    def delete_all(self) -> None:
        """After that the namespace holds nothing of it."""
        client = self.cluster.client
        for name in self._sizes:
            self.cluster.run(client.delete(Deployment, name, "default"))
            self.cluster.run(client.delete(Service, name, "default"))
        self.cluster.run(client.delete(CronJob, "report", "default"))
        self.cluster.clock.advance(minutes=3)
        for kind in (Pod, ReplicaSet, Job, EndpointSlice, Endpoints):
            left = [obj.metadata.name for obj in self._list(kind) if obj.metadata.name != "kubernetes"]
            assert left == []
        assert all(self.cluster.run(runtime.list_sandboxes()) == () for runtime in self.cluster.runtimes())
        self.cluster.clock.advance(seconds=EVENT_SECONDS + 120)
        assert self._list(Event) == []


def _deployment(name: str, size: int) -> dict[str, Any]:
    labels = {"app": name}
    pod = {"terminationGracePeriodSeconds": 1, "containers": [{"name": "c", "image": "i"}]}
    spec = {"replicas": size, "revisionHistoryLimit": HISTORY, "selector": {"matchLabels": labels}}
    whole = {**spec, "template": {"metadata": {"labels": labels}, "spec": pod}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": whole}


def _service(name: str) -> dict[str, Any]:
    spec = {"selector": {"app": name}, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def _cron_job() -> dict[str, Any]:
    container = {"name": "c", "image": "i", "command": ["sleep", "20"]}
    template = {"spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container]}}
    spec = {
        "schedule": "* * * * *",
        "successfulJobsHistoryLimit": HISTORY,
        "failedJobsHistoryLimit": 1,
        "jobTemplate": {"spec": {"template": template}},
    }
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "report"}, "spec": spec}


def played(directory: Path, *, deployments: int, minutes: int, seed: int) -> Counter[str]:
    run = Run(directory, deployments=deployments, seed=seed)
    try:
        run.play(minutes)
        run.check(minutes)
        run.delete_all()
    finally:
        run.cluster.close()
    return run.done


def test_twenty_minutes(tmp_path: Path) -> None:
    assert sum(played(tmp_path, deployments=4, minutes=20, seed=3).values()) > 8


@pytest.mark.campaign
@pytest.mark.timeout(1800)
def test_two_hours_of_twenty_deployments(tmp_path: Path, figure: Callable[[str, object], None]) -> None:
    """Two hours of a cluster's clock with four nodes, 20 Deployments and a CronJob every minute: each minute a rollout,
    a change of size, a crash or a lost node. No pod is lost, nothing is left over, and no event after its hour."""
    for what, count in sorted(played(tmp_path, deployments=20, minutes=120, seed=160).items()):
        figure(what, count)
