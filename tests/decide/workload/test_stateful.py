"""What a stateful set does next, by tables; and whom its claims belong to."""

from datetime import UTC, datetime
from typing import Any

import pytest

from podfit.api.apps.v1.statefulsets import StatefulSet
from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.pods.templates import PodTemplateSpec
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert, to_dict
from podfit.api.meta.owners import reference_to
from podfit.decide.workload.stateful import identity
from podfit.decide.workload.stateful.retention import is_stale, owned
from podfit.decide.workload.stateful.status import status_of
from podfit.decide.workload.stateful.steps import MOST, Complete, Create, Delete, Revision, plan

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
OLD, NEW = (Revision(name, PodTemplateSpec()) for name in ("old", "new"))
LETTERS = {
    "r": ("Running", True, ""),  # running and ready
    "u": ("Running", False, ""),
    "p": ("Pending", False, ""),
    "t": ("Running", True, "2026-01-01T00:00:00Z"),  # on its way out
    "f": ("Failed", False, ""),
}


def stateful(replicas: int, **spec: Any) -> StatefulSet:
    document = {
        "metadata": {"name": "s", "namespace": "n", "uid": "set"},
        "spec": {
            "replicas": replicas,
            "serviceName": "svc",
            "selector": {"matchLabels": {"app": "x"}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            **spec,
        },
    }
    return convert(document, StatefulSet)


def pods(letters: str, *, old: int = 0) -> list[Pod]:
    """By their letters, from number 0 on, `-` for one that is missing; the first `old` are of the old revision."""
    found = []
    for number, letter in enumerate(letters):
        if letter == "-":
            continue
        phase, is_ready, going = LETTERS[letter]
        pod = to_dict(identity.made(stateful(9), PodTemplateSpec(), "old" if number < old else "new", number))
        pod["metadata"] |= {"uid": f"s-{number}", "deletionTimestamp": going or None}
        ready = {"type": "Ready", "status": str(is_ready), "lastTransitionTime": "2026-01-01T00:00:00Z"}
        found.append(convert({**pod, "status": {"phase": phase, "conditions": [ready]}}, Pod))
    return found


def steps(owner: StatefulSet, present: list[Pod]) -> list[str]:
    words = {Create: "+", Delete: "-", Complete: "~"}
    made = plan(owner, OLD, NEW, present, NOW)
    return [f"{words[type(action)]}{identity.ordinal(action.pod)}" for action in made.actions]


PARALLEL = {"podManagementPolicy": "Parallel"}
ON_DELETE = {"updateStrategy": {"type": "OnDelete"}}


def partition(number: int, **more: Any) -> dict[str, Any]:
    return {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": number, **more}}}


@pytest.mark.parametrize(
    ("replicas", "spec", "letters", "old", "expected"),
    [
        (3, {}, "", 0, ["+0"]),
        (3, {}, "p", 0, ["~0"]),  # it waits for the first; claims that are missing are made
        (3, {}, "u", 0, []),
        (3, {}, "r", 0, ["+1"]),
        (3, {}, "rrr", 0, []),
        (3, {}, "r-r", 0, ["+1"]),
        (3, {}, "rfr", 0, ["-1"]),
        (3, {}, "trr", 0, []),
        (3, PARALLEL, "", 0, ["+0", "+1", "+2"]),
        (3, PARALLEL, "p-u", 0, ["~0", "+1"]),
        (1, {}, "rrr", 0, ["-2"]),  # the highest first, one at a time
        (1, {}, "rrt", 0, []),
        (1, {}, "ruu", 0, []),  # not ready, and not the first that is not: it waits
        (1, {}, "rru", 0, ["-2"]),
        (1, {}, "urr", 0, []),
        (1, PARALLEL, "rrr", 0, ["-2", "-1"]),
        (3, {}, "rrr", 3, ["-2"]),
        (3, {}, "rrr", 2, ["-1"]),
        (3, partition(2), "rrr", 3, ["-2"]),
        (3, partition(2), "rrr", 2, []),
        (3, partition(0, maxUnavailable=2), "rrr", 3, ["-2", "-1"]),
        (4, partition(0, maxUnavailable="50%"), "rrrr", 4, ["-3", "-2"]),
        (3, PARALLEL, "rru", 3, ["-2"]),  # a pod that never became ready makes room for the new revision
        (3, PARALLEL, "urr", 3, ["-2"]),  # and one below does not hold back those above
        (3, PARALLEL, "rru", 2, []),
        (3, PARALLEL, "rrt", 3, []),
        (3, ON_DELETE, "rrr", 3, []),
        (2, {"ordinals": {"start": 1}}, "-rr", 0, []),
        (2, {"ordinals": {"start": 1}}, "rrr", 0, ["-0"]),
    ],
)
def test_what_it_does_next(replicas: int, spec: dict[str, Any], letters: str, old: int, expected: list[str]) -> None:
    assert steps(stateful(replicas, **spec), pods(letters, old=old)) == expected


def test_below_the_partition_a_pod_is_made_of_the_revision_before() -> None:
    owner = stateful(2, **partition(1))
    (create,) = plan(owner, OLD, NEW, pods("-r"), NOW).actions
    assert create.pod.metadata.labels["controller-revision-hash"] == "old"
    (create,) = plan(owner, OLD, NEW, pods("r-"), NOW).actions
    assert create.pod.metadata.labels["controller-revision-hash"] == "new"


def test_a_set_that_goes_does_nothing() -> None:
    owner = convert(
        to_dict(stateful(3)) | {"metadata": {"name": "s", "deletionTimestamp": "2026-01-01T00:00:00Z"}}, StatefulSet
    )
    assert steps(owner, []) == []


def test_its_status_counts_by_revision_and_ends_a_rollout() -> None:
    owner = stateful(3)
    status = status_of(owner, "old", "new", pods("rru", old=2), NOW, collisions=0, updating=1)
    assert (status.replicas, status.ready_replicas, status.current_replicas, status.updated_replicas) == (3, 2, 1, 1)
    done = status_of(owner, "old", "new", pods("rrr"), NOW, collisions=0)
    assert (done.current_revision, done.current_replicas) == ("new", 3)


@pytest.mark.parametrize(
    ("deleted", "scaled", "number", "owner"),
    [
        ("Retain", "Retain", 0, None),
        ("Delete", "Retain", 0, "StatefulSet"),
        ("Delete", "Retain", 5, "StatefulSet"),
        ("Retain", "Delete", 0, None),
        ("Retain", "Delete", 5, "Pod"),
        ("Delete", "Delete", 0, "StatefulSet"),
        ("Delete", "Delete", 5, "Pod"),
    ],
)
def test_whom_a_claim_belongs_to(deleted: str, scaled: str, number: int, owner: str | None) -> None:
    policy = {"whenDeleted": deleted, "whenScaled": scaled}
    stateful_set = stateful(3, persistentVolumeClaimRetentionPolicy=policy)
    pod = pods("rrrrrr")[number]
    claim = convert({"metadata": {"name": f"data-s-{number}"}}, PersistentVolumeClaim)
    changed = owned(stateful_set, pod, claim)
    assert (changed and changed.metadata.owner_references[0].kind) == owner
    if changed is not None:
        assert owned(stateful_set, pod, changed) is None


def test_a_claim_of_the_pod_before_is_stale() -> None:
    pod, before = pods("r")[0], pods("r")[0]
    owners = [to_dict(reference_to(before)) | {"uid": "other"}]
    claim = {"metadata": {"name": "data-s-0", "namespace": pod.metadata.namespace, "ownerReferences": owners}}
    assert is_stale(pod, convert(claim, PersistentVolumeClaim))
    claim["metadata"]["ownerReferences"] = [to_dict(reference_to(pod))]
    assert not is_stale(pod, convert(claim, PersistentVolumeClaim))


@pytest.mark.parametrize("policy", ["Parallel", "OrderedReady"])
@pytest.mark.parametrize("rolling", [{"partition": 0}, {"partition": 3}, {"partition": 0, "maxUnavailable": "50%"}])
@pytest.mark.parametrize("start", [0, 2**31 - 1])
def test_two_billion_replicas_are_made_some_at_once(policy: str, rolling: dict[str, Any], start: int) -> None:
    owner = stateful(
        2**31 - 1,
        podManagementPolicy=policy,
        updateStrategy={"type": "RollingUpdate", "rollingUpdate": rolling},
        ordinals={"start": start},
    )
    made = plan(owner, OLD, NEW, pods("rrr", old=3) if not start else [], NOW)
    assert len(made.actions) == (MOST if policy == "Parallel" else 1)
    assert all(isinstance(action, Create) for action in made.actions)


def test_a_set_of_which_many_are_missing_replaces_none() -> None:
    """Those that are not looked at are not there either."""
    owner = stateful(MOST + 10, podManagementPolicy="Parallel")
    assert steps(owner, pods("r" * 5, old=5))[:2] == ["+5", "+6"]
    assert not [step for step in steps(owner, pods("r" * 5, old=5)) if step.startswith("-")]
