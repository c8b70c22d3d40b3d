"""The time of day of a whole cluster is set, forward and back: pods run on, and resizes, restarts and deletions happen
when they would have.
"""

import random
from collections.abc import Callable
from typing import Any

import pytest

from podfit.core.errors import ApiError
from podfit.testing.cluster import Clock, Cluster

Figure = Callable[[str, object], None]

HOUR, DAY, DECADE = 3600.0, 86400.0, 10 * 365.25 * 86400
JUMPS = [HOUR, -HOUR, DAY, -DAY, DECADE, -DECADE]
PERIOD = 180.0  # seconds in which the node tries again whatever waits
SIZES = ("100m", "300m", "500m", "900m")


def pod(name: str, cpu: str = "500m", **spec: Any) -> dict[str, Any]:
    app = {"name": "app", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [app], **spec}}


def quota(cluster: Cluster) -> dict[str, str]:
    used: dict[str, str] = cluster.get("v1", "ResourceQuota", "all")["status"]["used"]
    return used


QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "all"},
    "spec": {"hard": {"pods": "50", "requests.cpu": "50"}},
}


@pytest.mark.parametrize("seconds", JUMPS)
def test_a_cluster_goes_on(cluster: Cluster, clock: Clock, seconds: float) -> None:
    sleeper = pod("sleeper", restartPolicy="Never")
    sleeper["spec"]["containers"][0]["command"] = ["sleep", "600"]
    limited = pod("limited", "100m", activeDeadlineSeconds=500)
    cluster.apply(QUOTA, pod("web"), pod("hog", "2"), sleeper, limited)
    cluster.resize("web", app={"requests": {"cpu": "2"}})
    assert cluster.pod("web").resizing == "Deferred"
    clock.jump(seconds)
    cluster.resize("limited", app={"requests": {"cpu": "2500m"}})
    clock.advance(400)
    assert [cluster.pod(name).phase for name in ("web", "hog", "sleeper", "limited")] == ["Running"] * 4
    assert (cluster.pod("web").resizing, cluster.pod("limited").resizing) == ("Deferred", "Deferred")
    cluster.resize("hog", app={"requests": {"cpu": "500m"}})
    first, second = ("web", "limited") if seconds > 0 else ("limited", "web")  # as their conditions' times say
    assert (cluster.pod(first).resizing, cluster.pod(second).resizing) == ("", "Deferred")
    clock.jump(-seconds)
    clock.advance(300)
    assert (cluster.pod("web").resizing, cluster.pod("web").actual.cpu) == ("", 2.0)
    assert (cluster.pod("sleeper").phase, cluster.pod("limited").phase) == ("Succeeded", "Failed")
    assert [cluster.pod(name).restarts for name in ("web", "hog")] == [0, 0]
    cluster.delete("hog")
    clock.advance(60)
    assert sorted(pod.name for pod in cluster.pods()) == ["limited", "sleeper", "web"]
    assert quota(cluster) == {"pods": "1", "requests.cpu": "2"}


@pytest.mark.parametrize("seconds", JUMPS)
def test_a_crashing_container_is_started_again_in_time(cluster: Cluster, clock: Clock, seconds: float) -> None:
    crashing = pod("crashing")
    crashing["spec"]["containers"][0]["command"] = ["sleep", "1"]
    cluster.apply(crashing)
    clock.advance(60)
    for jump in (seconds, -seconds):
        before = cluster.pod("crashing").restarts
        clock.jump(jump)
        clock.advance(310)  # the longest back-off
        assert cluster.pod("crashing").restarts > before
    assert cluster.pod("crashing").restarts < 40


# ---------------------------------------------------------------------- at random


class Course:
    """Resizes, deletions and jumps of the time of day, the same ones for the same seed."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self.cluster, self.random = cluster, random.Random(seed)
        self.names = [f"p{number}" for number in range(5)]
        self.offset, self.made, self.checked = 0.0, len(self.names), 0
        cluster.apply(QUOTA, *(pod(name) for name in self.names))
        self.uids = {name: cluster.pod(name).pod.metadata.uid for name in self.names}

    def run(self, jumps: int) -> None:
        for _ in range(jumps):
            self._jump()
            self._act()
            self.cluster.clock.advance(self.random.choice((0.5, 3, 30, 90)))
            self._check()
        self.cluster.clock.jump(-self.offset)
        self.cluster.clock.advance(PERIOD)
        self._check()
        for name in self.names:
            assert self.cluster.pod(name).resizing in ("", "Deferred")
        for name in self.names[1:]:
            self.cluster.resize(name, app={"requests": {"cpu": "100m"}})
        self.cluster.clock.advance(PERIOD)
        for name in self.names:
            seen = self.cluster.pod(name)
            assert (seen.resizing, seen.desired, seen.restarts) == ("", seen.actual, 0)
        assert quota(self.cluster)["pods"] == str(len(self.names))

    def _jump(self) -> None:
        """Never further than ten years from the right time."""
        jump = self.random.choice(JUMPS)
        jump = -self.offset if abs(self.offset + jump) > DECADE else jump
        self.offset += jump
        self.cluster.clock.jump(jump)

    def _act(self) -> None:
        name = self.random.choice(self.names)
        if self.random.random() < 0.8:
            self.cluster.resize(name, app={"requests": {"cpu": self.random.choice(SIZES)}})
            return
        self.cluster.delete(name)
        self.cluster.clock.advance(31)
        with pytest.raises(ApiError, match="not found"):
            self.cluster.pod(name)
        self.cluster.apply(pod(name))
        self.made += 1
        self.uids[name] = self.cluster.wait_for(name, phase="Running", within=PERIOD).pod.metadata.uid

    def _check(self) -> None:
        """Nobody is lost, restarted or evicted; the node is ready, and never promises more than it has."""
        seen = {view.name: view for view in self.cluster.pods()}
        assert {name: view.pod.metadata.uid for name, view in seen.items()} == self.uids
        assert all(view.phase == "Running" and view.restarts == 0 for view in seen.values())
        assert sum(view.allocated.cpu for view in seen.values()) <= 4
        (node,) = self.cluster.nodes()
        assert {condition.type: condition.status for condition in node.status.conditions}["Ready"] == "True"
        self.checked += 1


def test_jumps_at_random(cluster: Cluster) -> None:
    Course(cluster, 1).run(12)


@pytest.mark.campaign
@pytest.mark.timeout(600)
def test_jumps_at_random_many_times(cluster: Cluster, figure: Figure) -> None:
    """The time of day of a cluster is set 500 times, by an hour, a day or ten years, forward or back, while pods are
    resized, deleted and made. No pod is lost, restarted or evicted, the node stays ready and promises no more than it
    has, and at the right time again every pod has its desired size.
    """
    course = Course(cluster, 500)
    course.run(500)
    figure("jumps", 500)
    figure("pods", course.made)
    figure("invariants checked", course.checked)
    figure("lost or restarted", 0)
