"""How many pods each replica set of a deployment has, by tables of upstream's documented rules."""

from typing import Any

import pytest

from podfit.api.apps.v1.deployments import Deployment, ReplicaSet
from podfit.api.meta.codec import convert
from podfit.decide.workload.deployment.revisions import Sets, annotated, cleanable, made, revision_of, sorted_out
from podfit.decide.workload.deployment.sizes import max_surge, max_unavailable, next_new, next_old, proportional, single
from podfit.decide.workload.hashes import content_hash


def deployment(replicas: int = 10, surge: Any = "25%", fewer: Any = "25%", **spec: Any) -> Deployment:
    rolling = {"maxSurge": surge, "maxUnavailable": fewer}
    document = {
        "metadata": {"name": "d", "namespace": "n", "uid": "u"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "x"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
            "template": {"metadata": {"labels": {"app": "x"}}},
            **spec,
        },
    }
    return convert(document, Deployment)


def replica_set(name: str, size: int, available: int | None = None, **annotations: str) -> ReplicaSet:
    marks = {f"deployment.kubernetes.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
    document = {
        "metadata": {"name": name, "uid": name, "creationTimestamp": f"2026-01-01T00:00:0{len(name)}Z"}
        | {"annotations": marks},
        "spec": {"replicas": size},
        "status": {"replicas": size, "availableReplicas": size if available is None else available},
    }
    return convert(document, ReplicaSet)


@pytest.mark.parametrize(
    ("replicas", "surge", "fewer", "bounds"),
    [
        (10, "25%", "25%", (3, 2)),
        (1, "25%", "25%", (1, 0)),
        (10, 0, 0, (0, 1)),
        (10, "0%", "1%", (0, 1)),
        (2, 5, 5, (5, 2)),
        (0, 1, 1, (1, 0)),
    ],
)
def test_the_bounds_of_a_rollout(replicas: int, surge: Any, fewer: Any, bounds: tuple[int, int]) -> None:
    asked = deployment(replicas, surge, fewer)
    assert (max_surge(asked), max_unavailable(asked)) == bounds


@pytest.mark.parametrize(
    ("new", "old", "size"), [(0, 10, 3), (3, 10, None), (3, 8, 5), (10, 0, None), (12, 0, 10), (9, 1, 10)]
)
def test_how_far_the_new_replica_set_grows(new: int, old: int, size: int | None) -> None:
    sets = replica_set("old", old), replica_set("newer", new)
    step = next_new(deployment(), sets[1], sets)
    assert (step and step.size) == size


@pytest.mark.parametrize(
    ("new", "ready", "old", "available", "sizes"),
    [
        (3, 0, 10, 10, [8]),  # down to 8 available at once
        (3, 3, 10, 10, [5]),
        (3, 0, 10, 7, [8]),  # three are not available: two of them go, for only so many may be missing
        (3, 0, 8, 8, []),
        (10, 10, 3, 3, [0]),
        (10, 8, 3, 0, [0]),
    ],
)
def test_what_the_old_one_gives_up(new: int, ready: int, old: int, available: int, sizes: list[int]) -> None:
    found = next_old(deployment(), replica_set("newer", new, ready), [replica_set("old", old, available)])
    assert [step.size for step in found] == sizes


def test_a_change_of_size_in_a_rollout_is_shared() -> None:
    """Upstream's example: 15 pods instead of 10, 3 more allowed, of 8 and 5."""
    sets = [replica_set("old", 8), replica_set("newer", 5)]
    steps = proportional(deployment(15, 3, 2), sets, {"old": 13, "newer": 13})
    assert {step.replicas.metadata.name: step.size for step in steps} == {"old": 11, "newer": 7}
    assert sum(step.size for step in steps) == 18


def test_the_one_that_is_scaled_outside_of_a_rollout() -> None:
    new, old = replica_set("newer", 0), replica_set("old", 0)
    assert single(new, [old]) is new
    assert single(None, [old, new]) is new
    running = replica_set("old", 2)
    assert single(new, [running]) is running
    assert single(replica_set("newer", 1), [running]) is None
    assert single(None, []) is None


def test_a_revision_is_numbered_remembers_and_is_found_again() -> None:
    asked = deployment()
    first = annotated(asked, made(asked), 1, exists=False)
    assert revision_of(first.metadata.annotations) == 1
    assert first.metadata.name == f"d-{first.metadata.labels['pod-template-hash']}"
    assert sorted_out(asked, [first]).new is first
    again = annotated(asked, first, 5, exists=True)
    assert again.metadata.annotations["deployment.kubernetes.io/revision-history"] == "1"
    assert annotated(asked, again, 5, exists=True) is again
    other = deployment(template={"metadata": {"labels": {"app": "y"}}})
    assert sorted_out(other, [first]) == Sets(None, (first,))


def test_a_taken_name_gives_another_hash() -> None:
    asked = deployment()
    assert content_hash(asked.spec.template, 1) != content_hash(asked.spec.template, None)


def test_history_beyond_the_limit_goes_oldest_first() -> None:
    old = [replica_set("x" * number, 0, revision=str(number)) for number in range(1, 5)]
    busy = replica_set("y", 1, revision="0")
    gone = cleanable(deployment(revisionHistoryLimit=2), [*old, busy])
    assert [replica_set.metadata.name for replica_set in gone] == ["x", "xx"]
    assert cleanable(deployment(revisionHistoryLimit=None), old) == []
