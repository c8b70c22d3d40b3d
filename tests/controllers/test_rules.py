"""Rules of upstream's controllers that show on a whole cluster: what is written, in which words."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podfit.api.apps.v1.statefulsets import StatefulSet
from podfit.api.batch.v1.types import CronJob, Job
from podfit.api.core.v1.events.types import Event
from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.client.informer import Informer
from podfit.testing.clock import VirtualClock
from podfit.testing.cluster import Cluster

TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "c", "image": "busybox:1.36"}]},
}
SELECTOR = {"matchLabels": {"app": "web"}}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    yield made
    made.close()


def events(cluster: Cluster, kind: str) -> list[tuple[str, str]]:
    found = cluster.run(cluster.client.list(Event, "default")).items
    return [(event.reason, event.message) for event in found if event.involved_object.kind == kind]


def test_a_stateful_set_has_no_bound_of_its_own_while_the_gate_is_off(cluster: Cluster) -> None:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": 0, "maxUnavailable": 2}}
    spec = {"serviceName": "s", "selector": SELECTOR, "template": TEMPLATE, "updateStrategy": rolling}
    cluster.apply({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "s"}, "spec": spec})
    made = cluster.run(cluster.client.get(StatefulSet, "s", "default")).spec.update_strategy.rolling_update
    assert made is not None
    assert (made.partition, made.max_unavailable) == (0, None)


def test_a_budget_says_of_what_it_cannot_know_the_scale(cluster: Cluster) -> None:
    job: dict[str, Any] = {"template": TEMPLATE | {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}}
    cluster.apply({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": job})
    budget = {"selector": SELECTOR, "maxUnavailable": 1}
    cluster.apply({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": budget})
    cluster.clock.advance(5)
    text = "Failed to calculate the number of expected pods: jobs.batch does not implement the scale subresource"
    assert ("CalculateExpectedPodCountFailed", text) in events(cluster, "PodDisruptionBudget")


def test_a_cron_job_knows_when_a_job_of_its_own_succeeded_last(cluster: Cluster) -> None:
    """Of each that it manages, also of one that it did not begin."""
    job = {"template": {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}}
    spec = {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": job}}
    cluster.apply({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c"}, "spec": spec})
    cron = cluster.run(cluster.client.get(CronJob, "c", "default"))
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "c", "uid": cron.metadata.uid, "controller": True}
    meta = {"name": "by-hand", "ownerReferences": [owner]}
    cluster.apply({"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": {**job, "completions": 0}})
    cluster.clock.advance(5)
    ended = cluster.run(cluster.client.get(Job, "by-hand", "default")).status.completion_time
    assert ended is not None
    assert cluster.run(cluster.client.get(CronJob, "c", "default")).status.last_successful_time == ended


def test_a_claim_gets_its_owner_after_its_pod(cluster: Cluster) -> None:
    seen: list[int] = []
    informer = Informer(cluster.client, PersistentVolumeClaim, clock=VirtualClock())
    informer.add_handler(
        add=lambda new: seen.append(len(new.metadata.owner_references)),
        update=lambda _, new: seen.append(len(new.metadata.owner_references)),
    )
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
    }
    spec = {
        "serviceName": "s",
        "selector": SELECTOR,
        "template": TEMPLATE,
        "volumeClaimTemplates": [claim],
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Retain"},
    }
    task = cluster.run(_followed(informer))
    cluster.apply({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "s"}, "spec": spec})
    cluster.clock.advance(5)
    cluster.run(_ended(task))
    assert (seen[0], seen[-1]) == (0, 1)


async def _followed(informer: Informer[Any]) -> asyncio.Task[None]:
    return asyncio.get_running_loop().create_task(informer.run())


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def test_a_claim_that_is_refused_is_told_of_its_pod_as_well(cluster: Cluster) -> None:
    quota = {"hard": {"persistentvolumeclaims": "0"}}
    cluster.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": quota})
    cluster.clock.advance(1)
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
    }
    spec = {"serviceName": "s", "selector": SELECTOR, "template": TEMPLATE, "volumeClaimTemplates": [claim]}
    cluster.apply({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "s"}, "spec": spec})
    cluster.clock.advance(0.001)
    why = (
        'persistentvolumeclaims "data-s-0" is forbidden: exceeded quota: q, requested: persistentvolumeclaims=1, used: '
        "persistentvolumeclaims=0, limited: persistentvolumeclaims=0"
    )
    assert events(cluster, "StatefulSet") == [
        ("FailedCreate", f"Create Claim data-s-0 for Pod s-0 in StatefulSet s failed error: {why}"),
        ("FailedCreate", f"Create Pod s-0 in StatefulSet s failed error: failed to create PVC data-s-0: {why}"),
    ]


def test_a_job_that_is_refused_its_pods_waits_a_second(cluster: Cluster) -> None:
    quota = {"hard": {"pods": "0"}}
    cluster.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": quota})
    cluster.clock.advance(1)
    job = {"template": {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}}
    cluster.apply({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": job})
    cluster.clock.advance(0.9)
    assert len(events(cluster, "Job")) == 1
    cluster.clock.advance(3.2)
    assert len(events(cluster, "Job")) == 3
