"""What `why vpa/NAME` says of every pod is what the updater's next pass then does, on random workloads."""

import random
from pathlib import Path
from typing import Any

import pytest

from podfit.answers.autoscaling.updater import SETTINGS, next_pass
from podfit.answers.why.vpa import read_facts
from podfit.api.core.v1.pods.types import Pod
from podfit.decide.autoscaling.actions import Deed, Verdict
from podfit.vpa.updater.updater import Updater, UpdaterSettings
from support.vpa_world import NAMESPACE, World, recommending

CONDITIONS: tuple[list[dict[str, str]], ...] = (
    [],
    [],
    [],
    [{"type": "PodResizePending", "status": "True", "reason": "Deferred", "message": "no room"}],
    [{"type": "PodResizePending", "status": "True", "reason": "Infeasible", "message": "too large"}],
    [{"type": "PodResizeInProgress", "status": "True"}],
)


async def situation(world: World, name: str, pick: random.Random) -> None:
    """A Deployment, its ReplicaSet that wants more or fewer pods than there are, and a VPA; sometimes an older one."""
    await world.deployment(name)
    pods = pick.randint(1, 4)
    await world.replicaset(f"{name}-rs", name, max(0, pods + pick.choice((-1, 0, 0, 0, 1, 2))))
    restart = pick.random() < 0.3
    for number in range(pods):
        owner = "" if pick.random() < 0.1 else f"{name}-rs"
        status: dict[str, Any] = {"conditions": pick.choice(CONDITIONS)}
        await world.pod(f"{name}-{number}", name, owner=owner, restart=restart, **status)
    policy: dict[str, Any] = {"updateMode": pick.choice(("Off", "Initial", "Recreate", "InPlace", "InPlaceOrRecreate"))}
    if pick.random() < 0.3:
        policy["minReplicas"] = pick.choice((1, 3))
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    names = [f"{name}-old", name] if pick.random() < 0.15 else [name]
    for vpa in names:
        await world.vpa(vpa, target, updatePolicy=policy)
        await world.recommend(vpa, *pick.choice((("100m", "300Mi"), ("500m", "600Mi"), ("50m", "300Mi"))))


async def differences(directory: Path, seed: int, number: int) -> dict[Deed, int]:
    """So many situations in one cluster; how many pods came to each end. AssertionError where it was told otherwise."""
    pick, ends = random.Random(seed), dict.fromkeys(Deed, 0)
    async with recommending(directory) as world:
        for place in range(number):
            await situation(world, f"w{place}", pick)
        settings = UpdaterSettings(admission=None, rules=SETTINGS)
        await world.run(Updater(world.client, clock=world.clock, settings=settings).run())
        told: dict[str, Verdict] = {}
        for place in range(number):
            facts = await read_facts(world.client, f"w{place}", NAMESPACE, world.clock)
            assert facts.view is not None
            told |= next_pass(facts.view).verdicts
        before = {pod.metadata.uid: pod for pod in (await world.client.list(Pod, NAMESPACE)).items}
        await world.minutes(1)
        after = {pod.metadata.uid: pod for pod in (await world.client.list(Pod, NAMESPACE)).items}
        for uid, verdict in told.items():
            deed = _deed(before[uid], after.get(uid))
            assert deed is verdict.deed, (
                f"seed {seed}, {before[uid].metadata.name}: told {verdict.deed} {verdict.reason}"
            )
            assert bool(verdict.reason) == (deed is Deed.LEFT), f"seed {seed}: {verdict}"
            ends[deed] += 1
    return ends


def _deed(before: Pod, after: Pod | None) -> Deed:
    if after is None or after.metadata.deletion_timestamp is not None:
        return Deed.EVICTED
    return Deed.LEFT if before.spec == after.spec else Deed.RESIZED


async def test_what_is_told_of_every_pod_is_what_the_next_pass_does(tmp_path: Path) -> None:
    ends = await differences(tmp_path, 24, 20)
    assert ends[Deed.RESIZED] > 3
    assert ends[Deed.LEFT] > 10


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(20))
async def test_what_is_told_of_every_pod_holds_in_many_clusters(tmp_path: Path, seed: int) -> None:
    ends = await differences(tmp_path, seed, 100)
    assert ends[Deed.RESIZED]
