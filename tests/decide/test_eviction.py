"""Who is evicted first, and what is said of it."""

from typing import Any

import pytest

from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.decide.node.eviction import Eviction, Shortage, eviction, is_split, measured, ranked, reclaims, shortages
from podfit.decide.node.pod_load import EVERYTHING, Load, LocalStorage, Used
from podfit.decide.node.pressure import Observation, parse

MI = 1 << 20


def load(name: str, used: int = 0, *, request: str = "", priority: int = 0, **more: Any) -> Load:
    """`used` and `request` are of memory, or of disk if `disk` says which part."""
    disk = more.pop("disk", "")
    resource = "ephemeral-storage" if disk else "memory"
    resources = {"resources": {"requests": {resource: request}}} if request else {}
    spec = {"containers": [{"name": "c", **resources}], "priority": priority, **more}
    pod = convert({"metadata": {"name": name, "namespace": "d"}, "spec": spec}, Pod)
    if not disk:
        return Load(pod, {"c": used * MI})
    return Load(pod, storage=LocalStorage(**{disk: {"c": Used(used * MI, used)}}))


def short(signal: str, available: int = 1, *, threshold: str = "50%") -> Shortage:
    return Shortage(parse(f"{signal}<{threshold}")[0], Observation(available, 1000 * MI))


def names(loads: list[Load]) -> list[str]:
    return [load.pod.metadata.name for load in loads]


@pytest.mark.parametrize(
    ("loads", "order"),
    [
        ([load("within", 90, request="100Mi"), load("over", 20, request="10Mi")], ["over", "within"]),
        ([load("a-lot", 500, priority=10), load("a-bit", 5)], ["a-bit", "a-lot"]),
        ([load("more", 50, request="10Mi"), load("most", 90, request="10Mi")], ["most", "more"]),
        ([load("near", 90, request="100Mi"), load("far", 10, request="100Mi")], ["near", "far"]),
        ([load("system", 900, priority=2_000_000_000), load("mine", 1)], ["mine"]),
        ([], []),
    ],
)
def test_memory(loads: list[Load], order: list[str]) -> None:
    assert names(ranked(loads, short("memory.available"))) == order


def test_an_init_container_that_is_over_adds_nothing_to_what_was_requested() -> None:
    large = [{"name": "i", "resources": {"requests": {"memory": "50Mi"}}}]
    assert load("p", 90, request="10Mi", initContainers=large).memory_over == 40 * MI, "it is the larger of the two"


@pytest.mark.parametrize(
    ("signal", "loads", "order"),
    [
        (
            "nodefs.available",
            [load("within", 90, request="100Mi", disk="logs"), load("over", 20, request="10Mi", disk="logs")],
            ["over", "within"],
        ),
        (
            "nodefs.available",
            [load("high", 500, priority=9, disk="volumes"), load("low", 5, disk="roots")],
            ["low", "high"],
        ),
        ("imagefs.available", [load("few", 50, disk="roots"), load("most", 90, disk="volumes")], ["most", "few"]),
        (
            "nodefs.inodesFree",
            [load("few", 5, request="1Ki", disk="logs"), load("many", 6, disk="logs")],
            ["many", "few"],
        ),
    ],
)
def test_disk(signal: str, loads: list[Load], order: list[str]) -> None:
    assert names(ranked(loads, short(signal))) == order


def test_with_a_disk_of_their_own_layers_do_not_count_for_the_nodes() -> None:
    layers, logs = load("layers", 90, disk="roots"), load("logs", 1, disk="logs")
    assert names(ranked([layers, logs], short("nodefs.available"), split=True)) == ["logs", "layers"]
    assert names(ranked([logs, layers], short("imagefs.available"), split=True)) == ["layers", "logs"]
    assert measured(short("nodefs.available"), split=False) == EVERYTHING


@pytest.mark.parametrize(
    ("signal", "together", "apart"),
    [
        ("nodefs.available", True, False),
        ("nodefs.inodesFree", True, False),
        ("imagefs.available", True, True),
        ("imagefs.inodesFree", True, True),
        ("memory.available", False, False),
        ("pid.available", False, False),
    ],
)
def test_when_images_and_ended_containers_go_first(signal: str, together: bool, apart: bool) -> None:
    assert (reclaims(short(signal), split=False), reclaims(short(signal), split=True)) == (together, apart)


def test_disks_are_split_when_their_devices_differ() -> None:
    disk = {"nodefs.available": Observation(1, 2, 7), "imagefs.available": Observation(1, 2, 7)}
    assert not is_split(disk)
    assert is_split(disk | {"imagefs.available": Observation(1, 2, 8)})
    assert not is_split({})


def test_process_numbers_go_by_priority() -> None:
    loads = [load("high", 1, priority=5), load("low", 9, priority=1)]
    assert names(ranked(loads, short("pid.available"))) == ["low", "high"]


def test_memory_comes_before_disks() -> None:
    seen = {"nodefs.available": Observation(1, 1000), "memory.available": Observation(50 * MI, 8 << 30)}
    found = shortages(parse("nodefs.available<10%,memory.available<100Mi"), seen)
    assert [shortage.resource for shortage in found] == ["memory", "ephemeral-storage"]


@pytest.mark.parametrize(
    ("shortage", "pod", "message"),
    [
        (
            Shortage(parse("memory.available<100Mi")[0], Observation(50 * MI, 8 << 30)),
            load("web", 20, request="10Mi"),
            (
                "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. "
                "Container c was using 20Mi, request is 10Mi, has larger consumption of memory. "
            ),
        ),
        (
            short("nodefs.available", 40 * MI, threshold="10%"),
            load("web", 20, disk="roots"),
            (
                "The node was low on resource: ephemeral-storage. Threshold quantity: 100Mi, available: 40Mi. "
                "Container c was using 20Mi, request is 0, has larger consumption of ephemeral-storage. "
            ),
        ),
        (
            Shortage(parse("nodefs.inodesFree<5%")[0], Observation(2000, 65536)),
            load("web", 20, disk="roots"),
            "The node was low on resource: inodes. Threshold quantity: 3276, available: 2k. ",
        ),
    ],
)
def test_the_message_names_who_uses_more_than_they_asked_for(shortage: Shortage, pod: Load, message: str) -> None:
    found = eviction([shortage], [pod])
    assert isinstance(found, Eviction)
    assert found.message == message


def test_nobody_goes_without_a_shortage() -> None:
    assert eviction((), [load("web", 1)]) is None
