"""ResourceQuota: what is charged, when, and the words of a refusal."""

from datetime import UTC, datetime

import msgspec
import pytest

from podfit.api.core.v1.limits.types import (
    ResourceQuota,
    ResourceQuotaSpec,
    ResourceQuotaStatus,
    ScopedResourceSelectorRequirement,
    ScopeSelector,
)
from podfit.api.core.v1.pods.types import Pod, PodStatus
from podfit.api.meta.v1.types import ObjectMeta
from podfit.core.quantity import Quantity
from podfit.decide.forbidden import Forbidden
from podfit.decide.limits.quota import Charged, charge, matches, pod_usage, recount
from support.pods import Amounts, amounts, container, infeasible, needs, pod, running, with_status


def quota(hard: Amounts, used: Amounts | None = None, scopes: tuple[str, ...] = ()) -> ResourceQuota:
    return ResourceQuota(
        metadata=ObjectMeta(name="q"),
        spec=ResourceQuotaSpec(hard=amounts(hard), scopes=scopes),
        status=ResourceQuotaStatus(hard=amounts(hard), used=amounts(used)),
    )


def sized(cpu: str, held: str | None = None, *, hopeless: bool = False) -> Pod:
    status = PodStatus()
    if held:
        report = running("a", needs({"cpu": held}), {"cpu": held})
        status = PodStatus(container_statuses=(report,), conditions=(infeasible(),) if hopeless else ())
    return pod(container("a", {"cpu": cpu}), status=status)


@pytest.mark.row("R-065")
def test_growth_is_charged_at_once_and_only_the_growth() -> None:
    """R-065."""
    verdict = charge(sized("300m", "100m"), sized("100m", "100m"), [quota({"cpu": "1", "pods": "5"}, {"cpu": "400m"})])
    assert isinstance(verdict, Charged)
    assert verdict.quotas[0].status.used == amounts({"cpu": "600m"})


@pytest.mark.row("R-064")
def test_growth_beyond_the_limit_names_what_is_exceeded() -> None:
    """R-064."""
    limit = quota({"cpu": "800m", "requests.cpu": "800m", "memory": "1Gi"}, {"cpu": "600m", "requests.cpu": "600m"})
    new = pod(container("a", {"cpu": "400m", "memory": "1Mi"}))
    old = pod(container("a", {"cpu": "100m", "memory": "1Mi"}))
    verdict = charge(new, old, [limit])
    assert verdict == Forbidden(
        "exceeded quota: q, requested: cpu=300m,requests.cpu=300m, used: cpu=600m,requests.cpu=600m, "
        "limited: cpu=800m,requests.cpu=800m"
    )


@pytest.mark.row("R-066")
def test_a_decrease_touches_no_quota_even_an_exceeded_one() -> None:
    """R-066."""
    verdict = charge(sized("50m", "100m"), sized("100m", "100m"), [quota({"cpu": "10m"}, {"cpu": "100m"})])
    assert verdict == Charged()


@pytest.mark.row("R-067", "R-068")
@pytest.mark.parametrize(
    ("given", "charged"),
    [(sized("300m", "100m"), "300m"), (sized("50m", "100m"), "100m"), (sized("300m", "100m", hopeless=True), "100m")],
    ids=["deferred (R-067)", "shrinking", "infeasible (R-068)"],
)
def test_what_a_pod_with_a_pending_resize_is_charged(given: Pod, charged: str) -> None:
    assert pod_usage(given)["requests.cpu"] == Quantity.parse(charged)


def test_pq5_a_larger_request_after_an_infeasible_one_is_charged() -> None:
    old = sized("5", "100m", hopeless=True)
    newer = msgspec.structs.replace(sized("900m", "100m"), metadata=msgspec.structs.replace(old.metadata, generation=2))
    newer = with_status(newer, conditions=old.status.conditions)
    verdict = charge(newer, old, [quota({"cpu": "500m"}, {"cpu": "100m"})])
    assert isinstance(verdict, Forbidden)
    assert "requested: cpu=800m" in verdict.text


def test_finished_pods_are_charged_as_objects_only() -> None:
    done = with_status(sized("1"), phase="Succeeded")
    assert pod_usage(done) == {"count/pods": Quantity.of(1)}


def test_a_pod_whose_grace_ran_out_is_charged_as_an_object_only() -> None:
    going = sized("1")
    metadata = msgspec.structs.replace(
        going.metadata, deletion_timestamp="2026-01-01T00:00:00Z", deletion_grace_period_seconds=30
    )
    going = msgspec.structs.replace(going, metadata=metadata)
    assert "cpu" in pod_usage(going, now=datetime(2026, 1, 1, 0, 0, 29, tzinfo=UTC))
    assert "cpu" not in pod_usage(going, now=datetime(2026, 1, 1, 0, 0, 31, tzinfo=UTC))


def test_what_the_quota_limits_has_to_be_specified_unless_the_pod_speaks_as_a_whole() -> None:
    limit = quota({"limits.memory": "1Gi", "cpu": "4"})
    silent = charge(pod(container("a", {"cpu": "1"}), container("b")), None, [limit])
    assert silent == Forbidden("failed quota: q: must specify cpu for: b; limits.memory for: a,b")
    whole = pod(container("a"), resources=needs({"cpu": "1"}, {"memory": "1Gi"}))
    assert isinstance(charge(whole, None, [limit]), Charged)


def test_a_quota_nobody_counted_yet_refuses() -> None:
    fresh = msgspec.structs.replace(quota({"cpu": "1"}), status=ResourceQuotaStatus())
    assert charge(sized("1"), None, [fresh]) == Forbidden("status unknown for quota: q, resources: cpu")


@pytest.mark.parametrize(
    ("scope", "inside"),
    [("BestEffort", False), ("NotBestEffort", True), ("Terminating", False), ("NotTerminating", True)],
)
def test_scopes(scope: str, inside: bool) -> None:
    assert matches(quota({"pods": "1"}, scopes=(scope,)), sized("1")) is inside


def test_scope_selector_by_priority_class() -> None:
    requirement = ScopedResourceSelectorRequirement(operator="In", scope_name="PriorityClass", values=("high",))
    limit = quota({"pods": "1"})
    spec = msgspec.structs.replace(limit.spec, scope_selector=ScopeSelector(match_expressions=(requirement,)))
    limit = msgspec.structs.replace(limit, spec=spec)
    assert matches(limit, pod(container("a"), priority_class_name="high"))
    assert not matches(limit, pod(container("a"), priority_class_name="low"))


def test_recount_adds_up_all_pods() -> None:
    status = recount(quota({"pods": "9", "requests.cpu": "4"}), [sized("1"), sized("500m"), sized("2", "3")])
    assert status.used == amounts({"pods": "3", "requests.cpu": "4500m"})
