"""Bursts with real containers: memory that grows, CPU that is wanted at once, and loads that stay as they are.

Runs on this machine's cgroup version, and in the guest of cgroup v2 (tests/guest/test_bursts.py).
"""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

import pytest
import pytest_asyncio

from podfit.api.core.v1.pods.types import Pod
from podfit.decide.pod.resize_state import BURST
from podfit.kubelet.cgroup.protocol import Missing
from support.bursts import LITTLE, STEP, bursting, ceiling, grant, ramp
from support.eventually import eventually_async
from support.real_node import MI, STAY, RealNode, condition, container, identity, needs, real_node, settled, status

CORES = str(min(2, os.cpu_count() or 1))
"""The guest has one, and no ceiling is above what a node has."""
FLOOR = 100
"""Millicores of which a container has to use four fifths to count as held back, in a guest that may get little of the
machine."""
pytestmark = [pytest.mark.node, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def node(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RealNode]:
    async with real_node(tmp_path_factory.mktemp("node"), kernel_first=True) as real:
        yield real


def bursts(pod: Pod) -> bool:
    return condition(pod, BURST) is not None


async def uses(node: RealNode, pod: Pod, mib: int) -> bool:
    """Whether the container came so far without having been killed."""

    async def seen() -> tuple[str, int]:
        now = await node.pod(pod.metadata.name)
        assert now is not None
        try:
            return str(now.status.phase), node.holds(pod, "c1").memory_usage or 0
        except Missing:
            return "gone", 0

    phase, _ = await eventually_async(
        seen, lambda told: told[0] != "Running" or told[1] >= mib * MI, within=60, what=f"{mib} MiB are used", every=0.1
    )
    return phase == "Running"


async def test_memory_that_grows_meets_no_limit(node: RealNode) -> None:
    pod = await bursting(node, "ramp", ramp(77, 25, 177), memory=("128Mi", "256Mi"))
    assert await uses(node, pod, 175)
    raised = await node.until(lambda now: bursts(now) and settled(now), "ramp")
    assert identity(raised, "c1") == identity(pod, "c1")
    resources = status(raised, "c1").resources
    assert resources is not None
    assert 177 * MI <= resources.limits["memory"].value() <= 256 * MI
    assert node.holds(pod, "c1").memory_limit == resources.limits["memory"].value()
    said = condition(raised, BURST)
    assert said is not None
    assert "memory grows" in said.message
    assert raised.spec == pod.spec, "it is for the updater to write the spec"
    await node.delete("ramp")


async def step_up(node: RealNode, pod: Pod) -> float:
    """Have the load of STEP begin; when that was, on the monotonic clock. Its `sleep` may be over by the time that the
    signal comes, and may have the smaller number.
    """

    async def processes() -> tuple[int, ...]:
        return node.holds(pod, "c1").processes

    found = await eventually_async(processes, lambda now: len(now) > 1, within=60, what="the load waits", every=0.02)
    for process in found:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGUSR1)
    return time.monotonic()


def quota_of(milli: int) -> int:
    """Microseconds of each tenth of a second."""
    return 100 * milli


async def step_of_cpu(node: RealNode, name: str, *, floor: int = FLOOR) -> float:
    """Seconds from the load's step to the first raise in the kernel."""
    pod = await bursting(node, name, STEP, cpu=(f"{floor}m", CORES), memory=("64Mi", "64Mi"))
    began = await step_up(node, pod)

    async def quota() -> int:
        return node.holds(pod, "c1").cpu.quota or 0

    await eventually_async(quota, lambda now: now > quota_of(floor), within=60, what="the limit is raised", every=0.02)
    took = time.monotonic() - began
    await node.delete(name)
    return took


async def test_cpu_that_is_wanted_is_given(node: RealNode) -> None:
    """How soon is a figure of the campaign: with other work beside it, none of this is at its pace."""
    assert await step_of_cpu(node, "step") > 0


async def test_the_spec_follows_and_a_kubelet_that_died_keeps_what_was_moved(node: RealNode) -> None:
    """SIGKILL leaves the checkpoints, and the next kubelet starts from them."""
    pod = await bursting(node, "died", STEP, cpu=(f"{FLOOR}m", CORES), memory=("64Mi", "64Mi"))
    await step_up(node, pod)
    await node.until(lambda now: bursts(now) and settled(now), "died")
    await node.kubelet.stop(stop_pods=False)
    held = node.holds(pod, "c1").cpu.quota
    node.kubelet = node.new_kubelet()
    await node.kubelet.start()
    after = await node.until(lambda now: bursts(now) and settled(now), "died")
    quota = node.holds(pod, "c1").cpu.quota
    assert quota is not None
    assert held is not None
    assert quota >= held > quota_of(FLOOR)
    assert identity(after, "c1") == identity(pod, "c1")
    await grant(node, "died", None)

    def taken_back(now: Pod) -> bool:
        return not bursts(now) and settled(now) and node.holds(pod, "c1").cpu.quota == quota_of(FLOOR)

    await node.until(taken_back, "died")
    await node.delete("died")


async def test_a_load_that_stays_as_it_is_is_left_alone(node: RealNode) -> None:
    hold = f"(head -c {118 * MI} /dev/zero; exec sleep 99999) | tail -c {118 * MI} & {STAY}"
    sized = needs("50m", "32Mi", limit_cpu="500m", limit_memory="128Mi")
    pod = await node.runs("flat", container("c1", sized, script=hold))
    await node.uses(pod, "c1", 118 * MI)
    await grant(node, "flat", ceiling(c1={"cpu": ("500m", "1"), "memory": ("128Mi", "256Mi")}))
    looks = node.calls.said[:]
    began = time.monotonic()
    await eventually_async(_clock, lambda now: now - began > 3, within=10, what="three seconds have passed", every=0.2)
    assert node.calls.said == looks
    now = await node.pod("flat")
    assert now is not None
    assert not bursts(now)
    await node.delete("flat")


async def _clock() -> float:
    return time.monotonic()


async def survives(node: RealNode, name: str, *, bursts_too: bool) -> bool:
    """Whether a container lives that grows by 10 MiB/s from 60 % of its limit of 256 MiB up to 400 MiB."""
    grows = ramp(154, 10, 400)
    if bursts_too:
        pod = await bursting(node, name, grows, memory=("256Mi", "512Mi"))
    else:
        sized = needs("50m", "32Mi", limit_cpu="500m", limit_memory="256Mi")
        pod = await node.runs(name, container("c1", sized, script=grows), restartPolicy="Never")
    lives = await uses(node, pod, 398)
    await node.delete(name)
    return lives


@pytest.mark.campaign
@pytest.mark.timeout(1200)
async def test_twenty_ramps_of_memory(node: RealNode, figure: Callable[[str, object], None]) -> None:
    """20 containers that grow by 10 MiB/s from 60 % of 256 MiB to 400 MiB, four at a time, with a ceiling of 512 MiB;
    and 20 without.
    """
    lived = {True: 0, False: 0}
    for bursts_too, lives in lived.items():
        for batch in range(5):
            names = [f"ramp-{'with' if bursts_too else 'without'}-{4 * batch + place}" for place in range(4)]
            found = await asyncio.gather(*(survives(node, name, bursts_too=bursts_too) for name in names))
            lived[bursts_too] = lives = lives + sum(found)
    figure("OOM kills with a ceiling", 20 - lived[True])
    figure("OOM kills without", 20 - lived[False])
    assert lived == {True: 20, False: 0}


@pytest.mark.campaign
@pytest.mark.timeout(600)
async def test_twenty_steps_of_cpu(node: RealNode, figure: Callable[[str, object], None]) -> None:
    """20 containers with a limit of 0.2 cores that want 2 at once: seconds until the kernel has a higher limit."""
    took = sorted([await step_of_cpu(node, f"step-{number}", floor=200) for number in range(20)])
    figure("median s", round(took[10], 2))
    figure("largest s", round(took[-1], 2))
    assert took[-1] < 2


@pytest.mark.campaign
@pytest.mark.timeout(600)
async def test_twenty_loads_that_stay_as_they_are(node: RealNode, figure: Callable[[str, object], None]) -> None:
    """20 containers for a minute: memory at 92 % of the limit, CPU in pieces of a fifth of it. No limit moves."""
    hold = f"(head -c {118 * MI} /dev/zero; exec sleep 99999) | tail -c {118 * MI} & {LITTLE}"
    sized = needs("20m", "32Mi", limit_cpu="200m", limit_memory="128Mi")
    pods = [await node.runs(f"flat-{number}", container("c1", sized, script=hold)) for number in range(20)]
    for pod in pods:
        await node.uses(pod, "c1", 118 * MI)
    for pod in pods:
        text = ceiling(c1={"cpu": ("200m", "1"), "memory": ("128Mi", "256Mi")})
        await grant(node, pod.metadata.name, text)
    before, began = node.calls.said[:], time.monotonic()
    await eventually_async(_clock, lambda now: now - began > 60, within=90, what="a minute has passed", every=1)
    moved = node.calls.said[len(before) :]
    figure("limits that moved", len(moved))
    assert moved == []
    for pod in pods:
        await node.delete(pod.metadata.name)
