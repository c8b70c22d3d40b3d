"""A part of the cluster's range for each node."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podfit.decide.workload.nodes.ipam import BadRange, NodeRanges


def test_the_lowest_part_that_is_free() -> None:
    ranges = NodeRanges.of("10.244.0.0/16", 24)
    assert ranges.free(()) == "10.244.0.0/24"
    assert ranges.free(["10.244.0.0/24", "10.244.2.0/24"]) == "10.244.1.0/24"
    assert ranges.free(["10.244.0.0/23"]) == "10.244.2.0/24"
    assert ranges.free(["10.0.0.0/8"]) == ""


def test_what_is_no_network_or_none_of_the_clusters_does_not_count() -> None:
    assert NodeRanges.of("10.244.0.0/16", 24).free(["fd00::/64", "nothing", "10.1.0.0/16"]) == "10.244.0.0/24"


@given(st.sets(st.integers(0, 15), max_size=16))
def test_a_part_is_given_once_and_all_are(taken: set[int]) -> None:
    ranges = NodeRanges.of("10.9.0.0/20", 24)
    known = [f"10.9.{number}.0/24" for number in taken]
    while free := ranges.free(known):
        assert free not in known
        known.append(free)
    assert len(known) == 16


@pytest.mark.parametrize(
    ("cluster", "mask", "text"),
    [
        ("nothing", 24, "--cluster-cidr nothing"),
        ("10.244.0.1/16", 24, "host bits"),
        ("fd00::/48", 64, "--cluster-cidr fd00::/48"),
        ("10.244.0.0/16", 15, "from 16 to 30"),
        ("10.0.0.0/8", 25, "from 8 to 24"),
        ("10.244.0.0/24", 31, "from 24 to 30"),
    ],
)
def test_ranges_that_cannot_be(cluster: str, mask: int, text: str) -> None:
    with pytest.raises(BadRange, match=text):
        NodeRanges.of(cluster, mask)
