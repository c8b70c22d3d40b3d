"""Initial resources: from how many samples of whom, how far a hostile pod moves them, what bounds them, and memory."""

import json
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.api.core.v1.limits.types import LimitRange
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.api.recommender.v1alpha1 import ContainerRecommendation
from podfit.decide.autoscaling.initial import initial_patches, initial_requests, told, wants_initial
from podfit.decide.autoscaling.initial_usage import (
    LEAST_PODS,
    LEAST_SAMPLES,
    LONGEST_IMAGE,
    MOST_IN_NAMESPACE,
    MOST_PLACES,
    MOST_SAMPLES,
    InitialUsage,
    KnownUsage,
    Place,
    Sample,
    SavedPlace,
    SavedUsage,
)
from podfit.decide.limits.limit_range import add_defaults

MI = 1 << 20
WEB = Place("shop", "apps", "Deployment", "web", "app", "web:1")


def within_a_bucket(amount: int, first: int) -> float:
    """A bucket is five percent and one `first` wide, and what stands for it is its upper border, rounded up."""
    return 1.05 * amount + 2 * first


def used(usage: InitialUsage, place: Place, uid: str, amounts: Iterable[tuple[int, int]], start: float = 0.0) -> None:
    for number, (cpu, memory) in enumerate(amounts):
        usage.add(place, uid, Sample(start + 60.0 * number, cpu, memory))


def learnt(samples: int, pods: int = 3, cpu: int = 100, memory: int = 64 * MI) -> InitialUsage:
    """`samples` in all, dealt out to the pods."""
    usage = InitialUsage()
    for number in range(samples):
        usage.add(WEB, f"pod-{number % pods}", Sample(60.0 * number, cpu, memory))
    return usage


def known(usage: InitialUsage, place: Place = WEB) -> KnownUsage:
    found = usage.known(place)
    assert found is not None
    return found


def test_twenty_samples_of_three_pods_are_enough_and_fewer_are_not() -> None:
    assert learnt(LEAST_SAMPLES - 1).known(WEB) is None
    assert learnt(LEAST_SAMPLES, LEAST_PODS - 1).known(WEB) is None
    found = known(learnt(LEAST_SAMPLES))
    assert (found.samples, found.pods) == (20, 3)
    assert 100 <= found.amounts["cpu"].milli() <= within_a_bucket(100, 1)
    assert 64 * MI <= found.amounts["memory"].value() <= within_a_bucket(64 * MI, MI)


def test_what_is_saved_is_known_again_and_pods_that_live_count_once() -> None:
    usage = learnt(60)
    again = InitialUsage()
    again.restore(msgspec.json.decode(msgspec.json.encode(usage.saved()), type=SavedUsage))
    assert known(again) == known(usage)
    assert again.saved() == usage.saved()
    assert not again.add(WEB, "pod-2", Sample(60.0 * 59, 100, None)), "that sample was counted"
    assert again.add(WEB, "pod-2", Sample(60.0 * 60, 100, 64 * MI))
    assert known(again).pods == 3


@pytest.mark.parametrize(
    "wrong",
    [
        SavedUsage(version=2),
        SavedUsage(places=[SavedPlace(WEB, {10**6: 1}, {}, 1, 0.0)]),
        SavedUsage(places=[SavedPlace(WEB, {-1: 1}, {}, 1, 0.0)]),
        SavedUsage(places=[SavedPlace(WEB, {}, {0: 0}, 1, 0.0)]),
        SavedUsage(places=[SavedPlace(WEB, {0: MOST_SAMPLES}, {}, 1, 0.0)]),
        SavedUsage(places=[SavedPlace(WEB, {}, {}, 1, 0.0)] * (MOST_PLACES + 1)),
        SavedUsage(living=[("uid", "app", 0, 0.0)]),
    ],
    ids=["version", "bucket", "negative", "nothing", "samples", "places", "living"],
)
def test_what_was_never_saved_is_refused(wrong: SavedUsage) -> None:
    usage = InitialUsage()
    with pytest.raises(ValueError, match=r"version|samples|container"):
        usage.restore(wrong)
    assert len(usage) == 0


@pytest.mark.parametrize(
    "other",
    [
        WEB._replace(namespace="theirs"),
        WEB._replace(workload="api"),
        WEB._replace(kind="StatefulSet"),
        WEB._replace(group=""),
        WEB._replace(container="side"),
        WEB._replace(image="web:2"),
    ],
)
def test_nothing_is_told_of_another_namespace_workload_container_or_image(other: Place) -> None:
    assert learnt(100).known(other) is None


def test_one_resource_may_be_known_without_the_other() -> None:
    usage = InitialUsage()
    for number in range(30):
        usage.add(WEB, f"pod-{number % 3}", Sample(float(number), 100, None))
    assert list(known(usage).amounts) == ["cpu"]


@settings(max_examples=25)
@given(st.lists(st.integers(1, 4000), min_size=181, max_size=300))
def test_twenty_fat_samples_among_many_move_it_no_further_than_the_largest_honest_one(honest: list[int]) -> None:
    """Beside 181 honest ones they are less than a tenth."""
    usage = InitialUsage()
    for number, cpu in enumerate(honest):
        usage.add(WEB, f"pod-{number % 7}", Sample(float(number), cpu, cpu * MI))
    used(usage, WEB, "hostile", [(900_000, 900 << 30)] * 20, 1000.0)
    found = known(usage).amounts
    assert found["cpu"].milli() <= within_a_bucket(max(honest), 1)
    assert found["memory"].value() <= within_a_bucket(max(honest) * MI, MI)


@settings(max_examples=25)
@given(
    st.lists(st.integers(1, 4000), min_size=20, max_size=200),
    st.integers(0, 20),
    st.lists(st.integers(0, 9), min_size=1),
)
def test_it_is_the_percentile_whatever_the_order(amounts: list[int], fat: int, order: list[int]) -> None:
    """At least nine of ten samples are not above it, and one bucket lower that is not so."""
    every = [*amounts, *[900_000] * fat]
    every.sort(key=lambda amount: (order[amount % len(order)], amount))
    usage = InitialUsage()
    for number, cpu in enumerate(every):
        usage.add(WEB, f"pod-{number % 3}", Sample(float(number), cpu, None))
    found = known(usage).amounts["cpu"].milli()
    assert sum(amount <= found for amount in every) >= 0.9 * len(every)
    assert sum(amount < (found - 2) / 1.05 for amount in every) < 0.9 * len(every)


def test_a_sample_counts_once_and_a_pod_once() -> None:
    usage = learnt(LEAST_SAMPLES)
    assert not usage.add(WEB, "pod-0", Sample(0.0, 5000, 0))
    assert known(usage).samples == LEAST_SAMPLES
    for _ in range(3):
        usage.add(WEB, "one", Sample(1e6, 100, 64 * MI))
    assert (known(usage).samples, known(usage).pods) == (LEAST_SAMPLES + 1, 4)


def test_old_samples_fade_as_new_ones_come() -> None:
    usage = learnt(MOST_SAMPLES - 1, cpu=100)
    used(usage, WEB, "pod-3", [(1000, MI)] * 300, 1e7)
    assert known(usage).amounts["cpu"].milli() > 900
    assert known(usage).samples < MOST_SAMPLES


def test_what_is_remembered_is_bounded_and_no_namespace_costs_another_its_share() -> None:
    usage = learnt(LEAST_SAMPLES)
    for number in range(MOST_IN_NAMESPACE + 50):
        for pod in range(3):
            used(
                usage,
                Place("greedy", "apps", "Deployment", f"w-{number}", "app", "i"),
                f"{number}-{pod}",
                [(1, 1)],
                1e6,
            )
    assert len(usage) == MOST_IN_NAMESPACE + 1
    for namespace in range(20):
        for number in range(MOST_IN_NAMESPACE):
            used(
                usage,
                Place(f"n-{namespace}", "", "", f"w-{number}", "app", "i"),
                f"{namespace}-{number}",
                [(1, 1)],
                2e6,
            )
    assert len(usage) == MOST_PLACES
    assert known(usage).samples == LEAST_SAMPLES, "the oldest of all, in a namespace of one place"
    usage.keep(())
    assert not usage._living
    usage.keep_namespaces(["shop"])
    assert len(usage) == 1


def test_an_image_of_a_name_without_end_is_not_remembered() -> None:
    usage = InitialUsage()
    assert not usage.add(WEB._replace(image="i" * (LONGEST_IMAGE + 1)), "pod", Sample(0.0, 1, 1))
    assert len(usage) == 0


# -------------------------------------------------------------------- what is given


def pod(*containers: dict[str, Any], **spec: Any) -> Pod:
    return convert({"spec": {"containers": containers or [{"name": "app", "image": "i"}], **spec}}, Pod)


def sized(**resources: Any) -> dict[str, Any]:
    return {"name": "app", "image": "i", "resources": resources}


def known_of_app() -> tuple[ContainerRecommendation, ...]:
    usage = learnt(144, 12, cpu=118, memory=62 * MI)
    return (told("app", known(usage), "cronjob/report"),)


def given_to(pod: Pod, **more: Any) -> dict[str, dict[str, str]]:
    found = initial_requests(pod, known_of_app(), more.pop("limit_ranges", ()), **more)
    return {
        name: {resource: str(amount) for resource, amount in given.requests.items()} for name, given in found.items()
    }


def test_a_container_that_asks_for_nothing_gets_requests_and_no_limits() -> None:
    patches = list(initial_patches(pod(), initial_requests(pod(), known_of_app(), ()), annotated=False))
    assert [operation["path"] for operation in patches] == [
        "/metadata/annotations",
        "/spec/containers/0/resources",
        "/spec/containers/0/resources/requests",
        "/spec/containers/0/resources/requests/cpu",
        "/spec/containers/0/resources/requests/memory",
        "/metadata/annotations/podfit.dev~1initial-resources",
    ]
    said = json.loads(patches[-1]["value"])["app"]
    assert said["requests"] == {operation["path"].rpartition("/")[2]: operation["value"] for operation in patches[3:5]}
    assert (said["source"], said["confidence"]) == ("90 % of 144 samples of 12 pods of cronjob/report", 0.1)


@pytest.mark.parametrize(
    "left_alone",
    [
        pod(sized(requests={"cpu": "1m"})),
        pod(sized(requests={"memory": "1Mi"})),
        pod(sized(limits={"memory": "1Gi"})),
        pod(resources={"requests": {"cpu": "1"}}),
        pod({"name": "other", "image": "i"}),
        pod(sized(requests={"podfit.dev/spare-memory": "64"})),
        pod({"name": "other", "image": "i"}, initContainers=[{"name": "app", "image": "i"}]),
    ],
)
def test_what_somebody_asks_for_is_left_alone(left_alone: Pod) -> None:
    assert given_to(left_alone) == {}


def test_a_device_is_not_a_size() -> None:
    assert "app" in given_to(pod(sized(requests={"example.org/gpu": "1"}, limits={"example.org/gpu": "1"})))
    assert wants_initial(pod(resources={}))


def vpa(**policy: Any) -> VerticalPodAutoscaler:
    spec = {"resourcePolicy": {"containerPolicies": [{"containerName": "*", **policy}]}}
    return convert({"metadata": {"name": "web"}, "spec": spec}, VerticalPodAutoscaler)


def test_policies_and_limit_ranges_bound_it() -> None:
    spec = {"limits": [{"type": "Container", "min": {"memory": "128Mi"}, "max": {"cpu": "50m"}}]}
    limits = (convert({"metadata": {"name": "l"}, "spec": spec}, LimitRange),)
    assert given_to(pod(), limit_ranges=limits) == {"app": {"cpu": "50m", "memory": "128Mi"}}
    bounding = vpa(maxAllowed={"cpu": "60m"}, minAllowed={"memory": "100Mi"})
    assert given_to(pod(), vpa=bounding) == {"app": {"cpu": "60m", "memory": "100Mi"}}
    assert given_to(pod(), vpa=bounding, limit_ranges=limits) == {"app": {"cpu": "50m", "memory": "128Mi"}}
    found = initial_requests(pod(), known_of_app(), limits, bounding)["app"]
    assert "cpu capped to Max in container LimitRange" in found.notes
    assert given_to(pod(), vpa=vpa(mode="Off")) == {}
    assert given_to(pod(), vpa=vpa(), sized=["app"]) == {}


def test_what_a_limit_range_put_in_is_no_word_of_the_author() -> None:
    """Its default is replaced, and the limit that it put in is not passed."""
    item = {"type": "Container", "defaultRequest": {"cpu": "7m", "memory": "8Mi"}, "default": {"memory": "50Mi"}}
    limits = (convert({"metadata": {"name": "l"}, "spec": {"limits": [item]}}, LimitRange),)
    defaulted = add_defaults(pod({"name": "app", "image": "i"}, sized() | {"name": "b"}), limits)
    assert given_to(defaulted, limit_ranges=limits) == {"app": {"cpu": "121m", "memory": "50Mi"}}
    own = add_defaults(pod(sized(requests={"cpu": "1m"})), limits)
    assert given_to(own, limit_ranges=limits) == {}
