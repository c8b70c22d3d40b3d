"""What controllers share: expectations, slow start, claims."""

import pytest

from podfit.api.apps.v1.deployments import ReplicaSet
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.v1.types import ObjectMeta, OwnerReference
from podfit.controllers.expectations import SECONDS, Expectations
from podfit.controllers.slow_start import slow_start
from podfit.core.selectors import Requirement
from podfit.decide.workload.claims import claims
from support.clock import FakeClock

WEB = (Requirement("app", "In", ("web",)),)


async def test_expectations_are_met_forgotten_or_given_up() -> None:
    clock = FakeClock()
    expected: Expectations[str] = Expectations(clock)
    assert expected.satisfied("a")
    expected.expect("a", creations=2)
    expected.created("a")
    assert not expected.satisfied("a")
    expected.created("a")
    assert expected.satisfied("a")
    expected.expect("a", deletions=["u1", "u2"])
    expected.deleted("a", "u1")
    expected.deleted("a", "u1")
    assert not expected.satisfied("a")
    expected.deleted("a", "u2")
    assert expected.satisfied("a")
    expected.expect("a", creations=1)
    await clock.advance(SECONDS)
    assert not expected.satisfied("a")
    await clock.advance(1)
    assert expected.satisfied("a")
    expected.expect("a", creations=1)
    expected.forget("a")
    assert expected.satisfied("a")


@pytest.mark.parametrize(
    ("count", "refused_from", "begun", "done"),
    [(0, 9, 0, 0), (1, 9, 1, 1), (10, 99, 10, 10), (10, 0, 1, 0), (10, 4, 7, 4)],
)
async def test_a_refusal_ends_slow_start(count: int, refused_from: int, begun: int, done: int) -> None:
    called: list[int] = []

    async def work(index: int) -> None:
        called.append(index)
        if index >= refused_from:
            raise ConnectionError(str(index))

    ended = await slow_start(count, work)
    assert called == list(range(begun))
    assert ended[0] == done
    assert (ended[1] is not None) == (done < begun)


def pod(name: str, *, app: str = "web", owner: str = "", going: bool = False) -> Pod:
    references = (OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="set", uid=owner, controller=True),)
    stamp = "2026-01-01T00:00:00Z" if going else None
    owners = references if owner else ()
    meta = ObjectMeta(name=name, labels={"app": app}, owner_references=owners, deletion_timestamp=stamp)
    return Pod(metadata=meta)


CANDIDATES = (
    pod("mine", owner="me"),
    pod("left", owner="me", app="db"),
    pod("other", owner="you"),
    pod("orphan"),
    pod("going", going=True),
    pod("unlike", app="db"),
)


@pytest.mark.parametrize(("going", "adopt", "release"), [(False, ["orphan"], ["left"]), (True, [], [])])
def test_claims(going: bool, adopt: list[str], release: list[str]) -> None:
    meta = ObjectMeta(name="set", uid="me", deletion_timestamp="2026-01-01T00:00:00Z" if going else None)
    found = claims(ReplicaSet(metadata=meta), WEB, CANDIDATES)
    assert [pod.metadata.name for pod in found.owned] == ["mine"]
    assert [pod.metadata.name for pod in found.adopt] == adopt
    assert [pod.metadata.name for pod in found.release] == release
