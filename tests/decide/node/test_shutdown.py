"""Who ends when, as a node is shut down."""

import pytest

from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.decide.node.shutdown import Groups, ShutdownGroup, by_group, grace, is_shutdown, problem, two_groups

CRITICAL = 2_000_000_000


def pod(name: str, priority: int | None = None, own: int | None = 30) -> Pod:
    spec = {"priority": priority, "terminationGracePeriodSeconds": own}
    return convert({"metadata": {"name": name}, "spec": {"containers": [], **spec}}, Pod)


def test_the_two_periods_make_two_groups() -> None:
    assert two_groups(0, 0) == ()
    assert two_groups(30, 10) == (ShutdownGroup(0, 20), ShutdownGroup(CRITICAL, 10))


@pytest.mark.parametrize(
    ("groups", "order"),
    [
        (two_groups(30, 10), [["none", "low", "high"], ["system", "node"]]),
        (
            (ShutdownGroup(1000, 5), ShutdownGroup(CRITICAL + 1000, 5), ShutdownGroup(10, 5)),
            [["none", "low"], ["high", "system"], ["node"]],
        ),
        ((ShutdownGroup(500, 5), ShutdownGroup(600, 5)), [["none", "low"], ["high", "system", "node"]]),
    ],
)
def test_the_lowest_go_first_and_no_group_is_empty(groups: Groups, order: list[list[str]]) -> None:
    pods = [pod("none"), pod("low", -5), pod("high", 1000), pod("system", CRITICAL), pod("node", CRITICAL + 1000)]
    assert [[member.metadata.name for member in members] for _, members in by_group(groups, pods)] == order


@pytest.mark.parametrize(("own", "seconds"), [(30, 10), (5, 5), (None, 10), (0, 1)])
def test_the_shorter_time_counts(own: int | None, seconds: int) -> None:
    assert grace(pod("p", own=own), ShutdownGroup(0, 10)) == seconds


@pytest.mark.parametrize(
    ("period", "critical", "groups", "text"),
    [
        (30, 10, (), ""),
        (0, 0, (), ""),
        (0, 0, (ShutdownGroup(0, 10),), ""),
        (10, 20, (), "shutdownGracePeriodCriticalPods 20s: must not be more than shutdownGracePeriod"),
        (0.5, 0, (), "shutdownGracePeriod 0.5s: must be 0 or at least 1s"),
        (30, 10, (ShutdownGroup(0, 10),), "shutdownGracePeriodByPodPriority: either this, or"),
        (0, 0, (ShutdownGroup(0, -1),), "must not be negative"),
        (0, 0, (ShutdownGroup(0, 1), ShutdownGroup(0, 2)), "a priority is there twice"),
    ],
)
def test_what_cannot_be_followed(period: float, critical: float, groups: Groups, text: str) -> None:
    found = problem(period, critical, groups)
    assert (text in found) if text else not found


@pytest.mark.parametrize(
    ("manager", "ends"), [("", True), ("stopping", True), ("running", False), ("degraded", False), ("unknown", False)]
)
def test_whether_sigterm_comes_with_a_shutdown(manager: str, ends: bool) -> None:
    assert is_shutdown(two_groups(30, 10), manager) is ends
    assert not is_shutdown((), manager)
