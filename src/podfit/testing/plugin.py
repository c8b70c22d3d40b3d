"""The fixtures, found by pytest through the package's entry point; nothing heavy is imported before one is used."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from podfit.testing.cluster import Clock, Cluster


OPTIONS = frozenset({"nodes", "vpa", "play_kwok_nodes", "lend_spare", "node_groups", "feature_gates", "seed", "store"})


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "podfit(nodes=1, vpa=False, play_kwok_nodes=False, lend_spare=False, node_groups=None, feature_gates=None, "
        "seed=None): "
        "what a test's cluster has",
    )


def options_of(mark: pytest.Mark) -> Mapping[str, Any]:
    """What the cluster is made with. Raises UsageError for what no cluster has, which would go unnoticed."""
    if mark.args or not mark.kwargs.keys() <= OPTIONS:
        raise pytest.UsageError(f"@pytest.mark.podfit takes {', '.join(sorted(OPTIONS))}, each by name, as nodes=3")
    return mark.kwargs


@pytest.fixture
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Cluster]":
    """A cluster of this test's own, with simulated nodes and a clock that stands still (docs/testing.md)."""
    from podfit.testing.cluster import Cluster

    marker = request.node.get_closest_marker("podfit")
    options = options_of(marker) if marker else {}
    directory: Path = tmp_path_factory.mktemp("podfit")
    made = Cluster(directory, **options)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def clock(cluster: "Cluster") -> "Clock":
    """The cluster's time: `clock.advance(hours=2)`."""
    return cluster.clock
