"""A pod's promise and record from its last status and from what the runtime holds (R-091)."""

import pytest
from msgspec.structs import asdict

from podfit.api.core.v1.pods.types import Pod
from podfit.decide.cgroup.container_resources import Machine, container_resources
from podfit.decide.lifecycle.facts import LinuxResources
from podfit.decide.pod.allocated import PodResources
from podfit.kubelet.allocation.rebuild import actuated, allocated
from support.placed import placed, resized
from support.pods import container, needs, pod, running, with_status

pytestmark = pytest.mark.row("R-091")

MACHINE = Machine(memory=8 << 30)
SMALL = needs({"cpu": "100m", "memory": "64Mi"}, {"cpu": "100m", "memory": "64Mi"})
LARGE = needs({"cpu": "200m", "memory": "96Mi"}, {"cpu": "200m", "memory": "96Mi"})
ODD = needs({"cpu": "700m"}, {"cpu": "700m"})


def small() -> Pod:
    """Two containers that were reported at 100m and 64Mi."""
    amounts = {"cpu": "100m", "memory": "64Mi"}
    made = placed(pod(container("c1", amounts, amounts), container("c2", amounts, amounts)))
    return with_status(made, container_statuses=tuple(running(name, SMALL, amounts) for name in ("c1", "c2")))


def held(given: Pod, **sizes: object) -> dict[str, LinuxResources]:
    """What a runtime shows that was told these sizes."""
    by_name = {container.name: container for container in given.spec.containers}
    return {
        name: LinuxResources(**asdict(container_resources(given, by_name[name], MACHINE, size)))  # type: ignore[arg-type]  # keywords of several types
        for name, size in sizes.items()
    }


def test_a_resize_that_waited_goes_on_waiting() -> None:
    wanted = resized(small(), c1=LARGE, c2=LARGE)
    seen = held(wanted, c1=SMALL, c2=SMALL)
    both = PodResources({"c1": SMALL, "c2": SMALL})
    assert allocated(wanted, seen, MACHINE) == both
    assert actuated(wanted, seen, MACHINE) == both


def test_a_resize_that_had_reached_one_container_was_promised_to_all() -> None:
    wanted = resized(small(), c1=LARGE, c2=LARGE)
    seen = held(wanted, c1=LARGE, c2=SMALL)
    assert allocated(wanted, seen, MACHINE) == PodResources({"c1": LARGE, "c2": LARGE})
    assert actuated(wanted, seen, MACHINE) == PodResources({"c1": LARGE, "c2": SMALL})


def test_a_resize_that_had_reached_all_of_them_needs_nothing_more() -> None:
    wanted = resized(small(), c1=LARGE)
    seen = held(wanted, c1=LARGE, c2=SMALL)
    assert allocated(wanted, seen, MACHINE) == PodResources({"c1": LARGE, "c2": SMALL})
    assert actuated(wanted, seen, MACHINE) == PodResources({"c1": LARGE, "c2": SMALL})


def test_what_somebody_else_wrote_is_no_promise() -> None:
    wanted = resized(small(), c1=LARGE)
    assert allocated(wanted, held(wanted, c1=ODD), MACHINE) == PodResources({"c1": SMALL, "c2": SMALL})


def test_without_the_runtime_the_status_has_to_do() -> None:
    wanted = resized(small(), c1=LARGE)
    assert allocated(wanted, {}, MACHINE) == PodResources({"c1": SMALL, "c2": SMALL})


def test_a_pod_that_never_ran_has_neither() -> None:
    new = placed(pod(container("c1", {"cpu": "1"})))
    assert allocated(new, {}, MACHINE) is None
    assert actuated(new, {}, MACHINE) is None
