"""Jobs and cron jobs on a whole cluster, whose clock and containers a test moves."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podfit.api.batch.v1.types import CronJob, Job
from podfit.api.core.v1.events.types import Event
from podfit.api.core.v1.pods.types import Pod
from podfit.core.errors import ApiError
from podfit.decide.workload.job.pods import FINALIZER
from podfit.testing.cluster import Cluster
from support.workloads import end_containers

TEMPLATE = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox:1.36"}]}}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    yield made
    made.close()


def job(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": TEMPLATE, **spec}}


def get(cluster: Cluster) -> Job:
    return cluster.run(cluster.client.get(Job, "j", "default"))


def pods(cluster: Cluster) -> list[Pod]:
    return list(cluster.run(cluster.client.list(Pod, "default")).items)


def end(cluster: Cluster, code: int, *, names: list[str] | None = None) -> None:
    """The containers that run end so; then what comes of it happens."""
    running = [pod for pod in pods(cluster) if pod.status.phase == "Running"]
    end_containers(cluster, [pod for pod in running if names is None or pod.metadata.name in names], code)
    cluster.clock.advance(5)


def said(cluster: Cluster) -> list[str]:
    return [
        f"{condition.type} {condition.reason}"
        for condition in get(cluster).status.conditions
        if condition.status == "True"
    ]


def events(cluster: Cluster, kind: str) -> list[str]:
    found = cluster.run(cluster.client.list(Event, "default")).items
    return [event.reason for event in found if event.involved_object.kind == kind]


def test_completions_in_parallel(cluster: Cluster) -> None:
    cluster.apply(job(completions=3, parallelism=2))
    cluster.clock.advance(3)
    assert (get(cluster).status.active, len(pods(cluster))) == (2, 2)
    assert all(FINALIZER in pod.metadata.finalizers for pod in pods(cluster))
    end(cluster, 0)
    status = get(cluster).status
    assert (status.active, status.succeeded) == (1, 2)
    end(cluster, 0)
    status = get(cluster).status
    assert (status.active, status.succeeded, status.failed, status.terminating) == (0, 3, 0, 0)
    assert said(cluster) == ["SuccessCriteriaMet CompletionsReached", "Complete CompletionsReached"]
    assert status.completion_time is not None
    assert not any(pod.metadata.finalizers for pod in pods(cluster))
    assert events(cluster, "Job").count("SuccessfulCreate") == 3
    assert events(cluster, "Job")[-1] == "Completed"


def test_failures_wait_longer_each_time_and_end_the_job(cluster: Cluster) -> None:
    cluster.apply(job(backoffLimit=1))
    cluster.clock.advance(3)
    end(cluster, 3)
    assert (get(cluster).status.failed, get(cluster).status.active) == (1, 0)
    cluster.clock.advance(6)
    assert get(cluster).status.active == 1
    end(cluster, 3)
    assert get(cluster).status.failed == 2
    assert said(cluster) == ["FailureTarget BackoffLimitExceeded", "Failed BackoffLimitExceeded"]
    assert "BackoffLimitExceeded" in events(cluster, "Job")


def test_indexes_have_names_environment_and_limits_of_their_own(cluster: Cluster) -> None:
    cluster.apply(job(completionMode="Indexed", completions=3, parallelism=3, backoffLimitPerIndex=0))
    cluster.clock.advance(3)
    by_index = {pod.metadata.labels["batch.kubernetes.io/job-completion-index"]: pod for pod in pods(cluster)}
    assert sorted(by_index) == ["0", "1", "2"]
    assert by_index["1"].spec.hostname == "j-1"
    assert by_index["1"].metadata.name.startswith("j-1-")
    assert [variable.name for variable in by_index["1"].spec.containers[0].env] == ["JOB_COMPLETION_INDEX"]
    end(cluster, 1, names=[by_index["1"].metadata.name])
    assert get(cluster).status.failed_indexes == "1"
    end(cluster, 0)
    status = get(cluster).status
    assert (status.completed_indexes, status.failed_indexes, status.succeeded) == ("0,2", "1", 2)
    assert said(cluster) == ["FailureTarget FailedIndexes", "Failed FailedIndexes"]


def test_a_success_policy_ends_what_still_runs(cluster: Cluster) -> None:
    rules = {"rules": [{"succeededIndexes": "0"}]}
    cluster.apply(job(completionMode="Indexed", completions=3, parallelism=3, successPolicy=rules))
    cluster.clock.advance(3)
    leader = next(pod.metadata.name for pod in pods(cluster) if pod.metadata.name.startswith("j-0-"))
    end(cluster, 0, names=[leader])
    cluster.clock.advance(40)
    assert said(cluster) == ["SuccessCriteriaMet SuccessPolicy", "Complete SuccessPolicy"]
    assert [pod.metadata.name for pod in pods(cluster)] == [leader]


@pytest.mark.parametrize(("code", "reason"), [(42, "PodFailurePolicy"), (7, "")])
def test_a_pod_failure_policy(cluster: Cluster, code: int, reason: str) -> None:
    rules = [
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
        {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [7]}},
    ]
    cluster.apply(job(backoffLimit=0, podFailurePolicy={"rules": rules}))
    cluster.clock.advance(3)
    end(cluster, code)
    cluster.clock.advance(20)
    assert said(cluster) == ([f"FailureTarget {reason}", f"Failed {reason}"] if reason else [])
    assert get(cluster).status.failed == (1 if reason else 0)


def test_suspended_and_resumed(cluster: Cluster) -> None:
    cluster.apply(job(suspend=True))
    cluster.clock.advance(3)
    assert (said(cluster), pods(cluster)) == (["Suspended JobSuspended"], [])
    cluster.apply(job(suspend=False))
    cluster.clock.advance(3)
    assert (said(cluster), len(pods(cluster))) == ([], 1)
    cluster.apply(job(suspend=True))
    cluster.clock.advance(40)
    assert (said(cluster), pods(cluster)) == (["Suspended JobSuspended"], [])
    assert get(cluster).status.failed == 0
    assert events(cluster, "Job")[-1] in ("Suspended", "SuccessfulDelete")


def test_a_deadline_and_the_time_to_live(cluster: Cluster) -> None:
    cluster.apply(job(activeDeadlineSeconds=20, ttlSecondsAfterFinished=100))
    cluster.clock.advance(70)
    assert said(cluster) == ["FailureTarget DeadlineExceeded", "Failed DeadlineExceeded"]
    cluster.clock.advance(110)
    with pytest.raises(ApiError):
        get(cluster)
    assert pods(cluster) == []


def test_deleted_in_the_background_its_pods_can_go(cluster: Cluster) -> None:
    cluster.apply(job())
    cluster.clock.advance(3)
    cluster.run(cluster.client.delete(Job, "j", "default", propagation="Background"))
    cluster.clock.advance(60)
    assert pods(cluster) == []


def cron(**spec: Any) -> dict[str, Any]:
    template = {"spec": {"template": TEMPLATE}}
    whole = {"schedule": "*/1 * * * *", "jobTemplate": template, **spec}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c"}, "spec": whole}


@pytest.mark.parametrize(("policy", "jobs", "active"), [("Allow", 3, 3), ("Forbid", 1, 1), ("Replace", 1, 1)])
def test_a_job_a_minute(cluster: Cluster, policy: str, jobs: int, active: int) -> None:
    cluster.apply(cron(concurrencyPolicy=policy))
    cluster.clock.advance(minutes=3, seconds=5)
    found = cluster.run(cluster.client.list(Job, "default")).items
    status = cluster.run(cluster.client.get(CronJob, "c", "default")).status
    assert (len(found), len(status.active)) == (jobs, active)
    assert all(job.metadata.owner_references[0].name == "c" for job in found)


def test_histories_are_kept_short(cluster: Cluster) -> None:
    cluster.apply(cron(successfulJobsHistoryLimit=1))
    for _ in range(4):
        cluster.clock.advance(62)
        end(cluster, 0)
    found = cluster.run(cluster.client.list(Job, "default")).items
    status = cluster.run(cluster.client.get(CronJob, "c", "default")).status
    assert len(found) <= 2
    assert status.last_successful_time is not None
    assert "SawCompletedJob" in events(cluster, "CronJob")
