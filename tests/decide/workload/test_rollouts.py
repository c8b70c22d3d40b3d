"""How many pods each replica set of a deployment has, by tables of upstream's documented rules."""

from typing import Any

import pytest

from podfit.api.apps.v1.deployments import Deployment, ReplicaSet
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.decide.workload.deployment.revisions import Sets, annotated, cleanable, made, revision_of, sorted_out
from podfit.decide.workload.deployment.sizes import max_surge, max_unavailable, next_new, next_old, proportional, single
from podfit.decide.workload.deployment.steps import old_pods_run, recreating, resizing, rolling, was_scaled
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
        (10, 10, 4, 7, []),  # three of its pods are about to go
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


@pytest.mark.parametrize(
    ("new", "old", "steps"),
    [
        (None, (10,), {"old": 20}),  # the only one
        (10, (0,), {"newer": 20}),  # the only one with pods
        (5, (15,), {"newer": 6, "old": 19}),  # in a rollout: 5 more may be there, by what each had of 20
        (20, (4,), {"old": 0}),  # the new one is all that is wanted
    ],
)
def test_a_change_of_size(new: int | None, old: tuple[int, ...], steps: dict[str, int]) -> None:
    def sized(name: str, size: int) -> ReplicaSet:
        return replica_set(name, size, desired_replicas="20", max_replicas="20")

    sets = Sets(None if new is None else sized("newer", new), tuple(sized("old", size) for size in old))
    asked = deployment(20, "25%", "25%")
    assert {step.replicas.metadata.name: step.size for step in resizing(asked, sets).steps} == steps


def test_nothing_is_shared_where_all_pods_are_replaced_at_once() -> None:
    asked = deployment(20, strategy={"type": "Recreate"})
    change = resizing(asked, Sets(replica_set("newer", 5), (replica_set("old", 5),)))
    assert (change.steps, change.always) == ((), False)


@pytest.mark.parametrize(
    ("told", "size", "scaled"),
    [("10", 10, False), ("8", 10, True), ("8", 0, False), ("", 10, False), ("many", 10, False)],
)
def test_whether_the_size_was_changed(told: str, size: int, scaled: bool) -> None:
    assert was_scaled(deployment(10), Sets(replica_set("newer", size, desired_replicas=told), ())) is scaled


def test_the_new_one_grows_before_old_ones_give_up() -> None:
    def sizes(new: int, old: int) -> list[tuple[str, int]]:
        newer = replica_set("newer", new)
        steps = rolling(deployment(10, 3, 2), newer, Sets(newer, (replica_set("old", old),)))
        return [(step.replicas.metadata.name, step.size) for step in steps]

    assert (sizes(0, 10), sizes(3, 10), sizes(10, 0)) == ([("newer", 3)], [("old", 5)], [])


def test_old_ones_end_before_there_is_a_new_one() -> None:
    sets = Sets(None, (replica_set("a", 2), replica_set("bb", 0), replica_set("ccc", 1)))
    assert [(step.replicas.metadata.name, step.size) for step in recreating(sets)] == [("a", 0), ("ccc", 0)]


@pytest.mark.parametrize(
    ("replicas", "phases", "run"), [(1, [], True), (0, ["Running"], True), (0, ["Failed", "Succeeded"], False)]
)
def test_whether_old_pods_run(replicas: int, phases: list[str], run: bool) -> None:
    pods = [convert({"metadata": {"name": phase}, "status": {"phase": phase}}, Pod) for phase in phases]
    assert old_pods_run(Sets(None, (replica_set("old", replicas),)), pods) is run
