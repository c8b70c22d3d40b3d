"""What `status.resize` would have said, and what old clients and nodes mean (spec resize-history 2 and 3)."""

from typing import Any

import msgspec
import pytest

from podfit.api.core.v1.pods.types import Pod, PodCondition
from podfit.apiserver.request.legacy_rules import is_only_a_resize, legacy_conditions, legacy_resize, modern_policies
from support.pods import amounts, container, needs, pod, running, with_status

RESTART = "RestartContainer"


def condition(kind: str, reason: str = "", generation: int = 2) -> PodCondition:
    return PodCondition(type=kind, status="True", reason=reason, observed_generation=generation)


def pending(reason: str, generation: int = 2) -> PodCondition:
    return condition("PodResizePending", reason, generation)


IN_PROGRESS = condition("PodResizeInProgress")


def resized(
    *conditions: PodCondition,
    wanted: str = "2",
    allocated: str = "1",
    limit: str = "4",
    actual: str = "4",
    seen: int = 1,
    node: str = "n",
) -> Pod:
    """A pod of generation 2 that wants `wanted` and was promised `allocated`."""
    given = pod(container("c", {"cpu": wanted}, {"cpu": limit}), generation=2, node_name=node)
    status = running("c", needs({"cpu": allocated}, {"cpu": actual}), {"cpu": allocated})
    return with_status(given, container_statuses=(status,), conditions=conditions, observed_generation=seen)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        pytest.param(resized(), "Proposed", marks=pytest.mark.row("H-02"), id="nobody looked"),
        pytest.param(resized(wanted="1"), "", marks=pytest.mark.row("H-02"), id="nothing outstanding"),
        pytest.param(
            resized(IN_PROGRESS, allocated="2", seen=2), "InProgress", marks=pytest.mark.row("H-02"), id="accepted"
        ),
        pytest.param(resized(pending("Deferred"), seen=2), "Deferred", marks=pytest.mark.row("H-03"), id="no room"),
        pytest.param(resized(pending("Infeasible"), seen=2), "Infeasible", marks=pytest.mark.row("H-04"), id="refused"),
        pytest.param(
            resized(pending("Deferred"), IN_PROGRESS, seen=2),
            "Deferred",
            marks=pytest.mark.row("H-05"),
            id="pending hides in progress",
        ),
        pytest.param(
            resized(condition("PodResizeInProgress", "Error"), allocated="2", seen=2),
            "InProgress",
            id="an error is in progress",
        ),
        pytest.param(resized(pending("Deferred", 1)), "Proposed", id="a new request after a deferred one"),
        pytest.param(resized(pending("Infeasible", 1), seen=2), "Infeasible", id="the node looked meanwhile"),
        pytest.param(resized(node=""), "", id="not bound"),
        pytest.param(resized(wanted="1", limit="5"), "Proposed", id="only the limit differs"),
        pytest.param(resized(wanted="1", limit="5m", actual="10m"), "", id="limits alike to the kernel"),
        pytest.param(
            with_status(resized(), resize="InProgress"),
            "InProgress",
            marks=pytest.mark.row("H-09"),
            id="an old node's word",
        ),
    ],
)
def test_the_field_follows_from_the_conditions(given: Pod, shown: str) -> None:
    assert legacy_resize(given) == shown


def test_pod_level_requests_count_where_both_sides_name_them() -> None:
    given = resized(wanted="1")
    level = msgspec.structs.replace(given.spec, resources=needs({"cpu": "3", "memory": "1Gi"}))
    given = msgspec.structs.replace(given, spec=level)
    assert legacy_resize(given) == ""
    assert legacy_resize(with_status(given, allocated_resources=amounts({"cpu": "2"}))) == "Proposed"
    assert legacy_resize(with_status(given, allocated_resources=amounts({"cpu": "3"}))) == ""


@pytest.mark.row("H-06")
def test_a_request_that_is_taken_back_leaves_nothing_in_between() -> None:
    shown = [
        legacy_resize(pod)
        for pod in (
            resized(pending("Deferred"), seen=2),
            resized(pending("Deferred"), wanted="1", seen=2),
            resized(wanted="1", seen=3),
        )
    ]
    assert shown == ["Deferred", "Deferred", ""]


@pytest.mark.row("H-09")
@pytest.mark.parametrize(
    ("word", "kind", "reason"),
    [
        ("Deferred", "PodResizePending", "Deferred"),
        ("Infeasible", "PodResizePending", "Infeasible"),
        ("InProgress", "PodResizeInProgress", ""),
    ],
)
def test_an_old_nodes_word_becomes_a_condition(word: str, kind: str, reason: str) -> None:
    (made,) = legacy_conditions(with_status(resized(), resize=word))
    assert made == PodCondition(type=kind, status="True", reason=reason)


@pytest.mark.parametrize(
    "given",
    [
        resized(),
        with_status(resized(pending("Deferred")), resize="Infeasible"),
        with_status(resized(), resize="Proposed"),
    ],
)
def test_conditions_are_made_only_of_an_old_nodes_word(given: Pod) -> None:
    assert legacy_conditions(given) == ()


OLD = pod(container("c", {"cpu": "1"}, image_pull_policy="Always"), labels={"a": "b"})


def spec(given: Pod, **fields: Any) -> Pod:
    return msgspec.structs.replace(given, spec=msgspec.structs.replace(given.spec, **fields))


@pytest.mark.row("H-07")
@pytest.mark.parametrize(
    ("new", "only"),
    [
        (spec(OLD, containers=(container("c", {"cpu": "2"}, image_pull_policy="Always"),)), True),
        (spec(OLD, containers=(container("c", {"cpu": "2"}, {"memory": "1Gi"}, image_pull_policy="Always"),)), True),
        (OLD, False),
        (spec(OLD, containers=(container("c", {"cpu": "2"}),)), False),
        (spec(OLD, containers=(container("d", {"cpu": "2"}, image_pull_policy="Always"),)), False),
        (spec(OLD, host_network=True), False),
        (spec(OLD, containers=(container("c", {"cpu": "1", "x.y/z": "1"}, image_pull_policy="Always"),)), False),
        (
            msgspec.structs.replace(
                spec(OLD, containers=(container("c", {"cpu": "2"}, image_pull_policy="Always"),)),
                metadata=msgspec.structs.replace(OLD.metadata, labels={}),
            ),
            False,
        ),
    ],
)
def test_what_is_a_resize_and_nothing_else(new: Pod, only: bool) -> None:
    assert is_only_a_resize(new, OLD) is only


@pytest.mark.row("H-08")
@pytest.mark.parametrize(
    ("given", "modern"),
    [
        ({"resourceName": "cpu", "policy": "Restart"}, {"resourceName": "cpu", "restartPolicy": RESTART}),
        (
            {"resourceName": "cpu", "policy": "RestartNotRequired"},
            {"resourceName": "cpu", "restartPolicy": "NotRequired"},
        ),
        ({"resourceName": "cpu", "policy": "Never"}, {"resourceName": "cpu", "policy": "Never"}),
        ({"policy": "Restart", "restartPolicy": "NotRequired"}, {"policy": "Restart", "restartPolicy": "NotRequired"}),
        ("nonsense", "nonsense"),
    ],
)
def test_policies_of_the_drafts(given: Any, modern: Any) -> None:
    def made(item: Any) -> Any:
        containers = [{"name": "c", "resizePolicy": [item]}, {"name": "d"}, 7]
        return {"kind": "Pod", "spec": {"containers": containers, "initContainers": containers, "x": 1}}

    assert modern_policies(made(given)) == made(modern)


@pytest.mark.parametrize(
    "document", [{}, {"spec": None}, {"spec": {"containers": {}}}, {"spec": {"containers": [None]}}]
)
def test_what_is_no_pod_stays_as_it_is(document: Any) -> None:
    assert modern_policies(document) == document
