"""Which limits a node has moved: what is remembered, for which spec, inside which ceiling, and what a kill leaves."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from podfit.api.core.v1.pods.burst import CEILING
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.core.features import FeatureGates
from podfit.core.quantity import Quantity
from podfit.kubelet.bursts.record import BurstRecord
from podfit.kubelet.checkpoints.checkpoint import CheckpointError
from podfit.kubelet.disk.writer import DiskWriter
from support.bursts import ceiling
from support.clock import FakeClock

TO_TWO = {"c": {"cpu": Quantity.parse("2")}}


def pod(text: str | None = ceiling(c={"cpu": ("200m", "2")}), *, generation: int = 1, guaranteed: bool = False) -> Pod:
    limits = {"cpu": "200m", "memory": "64Mi"}
    resources = {"requests": limits if guaranteed else {"cpu": "100m"}, "limits": limits}
    metadata = {"name": "p", "namespace": "default", "uid": "u", "generation": generation}
    annotations = {} if text is None else {CEILING: text}
    spec = {"containers": [{"name": "c", "image": "i", "resources": resources}]}
    return convert({"metadata": {**metadata, "annotations": annotations}, "spec": spec}, Pod)


def record(path: Path) -> BurstRecord:
    clock = FakeClock()
    return BurstRecord(path / "burst_limits_state", DiskWriter(clock), clock, FeatureGates())


def cpu(found: Pod) -> tuple[str, str]:
    """Request and limit."""
    resources = found.spec.containers[0].resources
    return str(resources.requests["cpu"]), str(resources.limits["cpu"])


async def test_what_was_moved_is_desired_also_after_a_kill(tmp_path: Path) -> None:
    first = record(tmp_path)
    assert first.desired(pod()) == pod()
    await first.put(pod(), TO_TWO, "throttled")
    for known in (first, record(tmp_path)):
        assert cpu(known.desired(pod())) == ("100m", "2")
        (said,) = known.conditions(pod())
        assert (said.status, said.message, said.observed_generation) == ("True", "throttled", 1)


async def test_of_a_guaranteed_pod_requests_move_along(tmp_path: Path) -> None:
    known = record(tmp_path)
    await known.put(pod(guaranteed=True), TO_TWO, "throttled")
    assert cpu(known.desired(pod(guaranteed=True))) == ("2", "2")


async def test_another_spec_counts_at_once(tmp_path: Path) -> None:
    known = record(tmp_path)
    await known.put(pod(), TO_TWO, "throttled")
    later = pod(generation=2)
    assert known.desired(later) is later
    assert known.is_over(later)
    assert known.conditions(later) == ()
    await known.forget(["u"])
    assert not record(tmp_path).uids


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        (None, "200m"),
        ("{}", "200m"),
        ("nonsense", "200m"),
        (ceiling(other={"cpu": ("1", "2")}), "200m"),
        (ceiling(c={"memory": ("64Mi", "128Mi")}), "200m"),
        (ceiling(c={"cpu": ("200m", "1")}), "1"),
        (ceiling(c={"cpu": ("200m", "8")}), "2"),
    ],
)
async def test_nothing_outside_of_the_ceiling_that_the_pod_has_now_holds(
    tmp_path: Path, text: str | None, limit: str
) -> None:
    known = record(tmp_path)
    await known.put(pod(), TO_TWO, "throttled")
    assert cpu(known.desired(pod(text)))[1] == limit


async def test_a_move_beside_an_earlier_one_keeps_it(tmp_path: Path) -> None:
    known, both = record(tmp_path), pod(ceiling(c={"cpu": ("200m", "2"), "memory": ("64Mi", "1Gi")}))
    await known.put(both, TO_TWO, "throttled")
    await known.put(both, {"c": {"memory": Quantity.parse("512Mi")}}, "grows")
    limits = known.desired(both).spec.containers[0].resources.limits
    assert {name: str(amount) for name, amount in limits.items()} == {"cpu": "2", "memory": "512Mi"}


async def test_what_cannot_be_written_was_not_moved(tmp_path: Path) -> None:
    (tmp_path / "burst_limits_state").mkdir()
    known = record(tmp_path)
    with pytest.raises(CheckpointError, match="could not write"):
        await known.put(pod(), TO_TWO, "throttled")
    assert known.desired(pod()) == pod()


@pytest.mark.parametrize("content", [b"", b"{", b'{"u": 1}', b'{"u": {"generation": 1}}', b"\0" * 4096])
async def test_a_damaged_record_leaves_the_specs(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "burst_limits_state").write_bytes(content)
    known = record(tmp_path)
    assert known.desired(pod()) == pod()
    await known.put(pod(), TO_TWO, "throttled")
    assert cpu(record(tmp_path).desired(pod()))[1] == "2"


async def test_a_record_of_amounts_that_are_none_does_no_harm(tmp_path: Path) -> None:
    """Whoever may write the kubelet's files may do more; but it is not to stop the kubelet."""
    known = record(tmp_path)
    await known.put(pod(), TO_TWO, "throttled")
    file = tmp_path / "burst_limits_state"
    file.write_bytes(file.read_bytes().replace(b'"2"', b'"x"'))
    assert record(tmp_path).desired(pod()) == pod()


def test_a_new_pod_of_the_name_has_nothing_of_the_old(tmp_path: Path) -> None:
    known = record(tmp_path)
    newer = pod()
    newer = replace(newer, metadata=replace(newer.metadata, uid="v"))
    assert known.desired(newer) is newer
