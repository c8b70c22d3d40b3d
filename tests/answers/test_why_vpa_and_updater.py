"""What `why vpa/NAME` says of every pod is what the updater's next pass then does, on random workloads and with random
settings of the updater.
"""

import json
import random
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from podfit.answers.why.vpa import WITHIN, VpaFacts, VpaWhy, foretold, read_facts, why_vpa
from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscalerCondition
from podfit.api.coordination.v1.types import Lease, LeaseSpec
from podfit.api.core.v1.limits.types import LimitRange
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert, to_dict
from podfit.api.meta.v1.types import ObjectMeta
from podfit.client.election import Election, LeaseTiming
from podfit.client.vpa_kinds import VPAS
from podfit.core.times import format_micro
from podfit.decide.autoscaling.actions import Deed, Verdict
from podfit.decide.autoscaling.gates import Gates
from podfit.decide.autoscaling.priority import Thresholds
from podfit.decide.autoscaling.published import IN_UP, LEASE, AdmissionLease
from podfit.decide.autoscaling.scope import AGGREGATION
from podfit.decide.autoscaling.slices import RECOMMENDATIONS
from podfit.decide.autoscaling.update_settings import UpdateSettings
from podfit.vpa.updater.settings import UpdaterSettings
from podfit.vpa.updater.updater import Updater
from support.vpa_world import NAMESPACE, World, recommending

CONDITIONS: tuple[list[dict[str, str]], ...] = (
    [],
    [],
    [],
    [{"type": "PodResizePending", "status": "True", "reason": "Deferred", "message": "no room"}],
    [{"type": "PodResizePending", "status": "True", "reason": "Infeasible", "message": "too large"}],
    [{"type": "PodResizeInProgress", "status": "True"}],
)
MODES = ("Off", "Initial", "Recreate", "InPlace", "InPlaceOrRecreate")


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
        if pick.random() < 0.1:
            await world.report(f"{name}-{number}", phase="Pending")
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    for vpa in [f"{name}-old", name] if pick.random() < 0.25 else [name]:
        policy: dict[str, Any] = {"updateMode": pick.choice(MODES)}
        if pick.random() < 0.3:
            policy["minReplicas"] = pick.choice((1, 3))
        await world.vpa(vpa, target, updatePolicy=policy)
        wide = ({"cpu": "40m", "memory": "200Mi"}, {"cpu": "1", "memory": "1Gi"}) if pick.random() < 0.4 else None
        await world.recommend(vpa, *pick.choice((("100m", "300Mi"), ("500m", "600Mi"), ("50m", "300Mi"))), bounds=wide)
        if pick.random() < 0.3:
            await by_pod(world, vpa, [f"{name}-{number}" for number in range(pods) if pick.random() < 0.7], pick)


async def by_pod(world: World, vpa: str, pods: list[str], pick: random.Random) -> None:
    """Some pods have sizes of their own."""
    await world.annotate_vpa(vpa, {AGGREGATION: "pod"})
    amounts = {pod: pick.choice(("100m", "400m", "70m")) for pod in pods}
    slices = {pod: {"app": {"cpu": [amount] * 3, "memory": ["300Mi"] * 3}} for pod, amount in amounts.items()}
    text = json.dumps({"aggregation": "pod", "slices": slices})
    status = (await world.seen(vpa)).status
    said = VerticalPodAutoscalerCondition(type=RECOMMENDATIONS, status="True", message=text)
    document: dict[str, Any] = to_dict(replace(status, conditions=(*status.conditions, said)))
    await world.say_status(vpa, document)


async def limited(world: World, pick: random.Random) -> None:
    """Sometimes a LimitRange, younger than the pods: it moves what is recommended for them, or refuses it."""
    if pick.random() < 0.5:
        least = {"cpu": pick.choice(("60m", "120m", "450m")), "memory": pick.choice(("200Mi", "310Mi"))}
        item = {"type": pick.choice(("Container", "Pod")), "min": least}
        document = {"metadata": {"name": "least", "namespace": NAMESPACE}, "spec": {"limits": [item]}}
        await world.client.create(convert(document, LimitRange))


def settings_of(pick: random.Random) -> UpdaterSettings:
    """As flags may set them."""
    rules = UpdateSettings(
        gates=Gates(cpu_startup_boost=pick.random() < 0.7, in_place=pick.random() < 0.7, per_vpa_config=True),
        min_replicas=pick.choice((1, 2, 2, 3)),
        tolerance=pick.choice((0.0, 0.3, 0.5, 1.0)),
        thresholds=Thresholds(
            update=pick.choice((0.05, 0.1, 0.9)),
            lifetime=timedelta(minutes=pick.choice((1, 720))),
            quick_oom=timedelta(minutes=10),
        ),
        skip_disruption_budget=pick.random() < 0.3,
        upstream_compatible=pick.random() < 0.3,
    )
    return UpdaterSettings(
        rules=rules,
        admission=AdmissionLease() if pick.random() < 0.1 else None,
        ignored=frozenset([NAMESPACE]) if pick.random() < 0.05 else frozenset(),
    )


async def published(world: World, settings: UpdaterSettings) -> None:
    """As by the process that runs the updater, which leads."""
    told = settings.published().annotation()
    pace = LeaseTiming(duration=3600)
    assert await Election(world.client, world.clock, name=LEASE, identity="a", pace=pace, told=told).hold()


async def differences(directory: Path, seed: int, number: int, *, passes: int = 2) -> Counter[str]:
    """So many situations in one cluster; how many pods came to each end. AssertionError where it was told otherwise."""
    pick, ends = random.Random(seed), Counter[str]()
    async with recommending(directory) as world:
        for place in range(number):
            await situation(world, f"w{place}", pick)
        settings = settings_of(pick)
        await limited(world, pick)
        await published(world, settings)
        await world.run(Updater(world.client, clock=world.clock, settings=settings).run())
        for _ in range(passes):
            told: dict[str, Verdict] = {}
            for vpa in (await world.client.list(VPAS, NAMESPACE)).items:
                facts = await read_facts(world.client, vpa.metadata.name, NAMESPACE, world.clock)
                assert not facts.updater.unknown
                for uid, foreseen in foretold(facts).verdicts.items():
                    if uid not in told or foreseen.deed is not Deed.LEFT:
                        told[uid] = foreseen
                ends[WITHIN] += _within(facts, why_vpa(facts, world.clock.now()), seed)
            pods = (await world.client.list(Pod, NAMESPACE)).items
            before = {pod.metadata.uid: pod for pod in pods if pod.metadata.deletion_timestamp is None}
            await world.minutes(1)
            after = {pod.metadata.uid: pod for pod in (await world.client.list(Pod, NAMESPACE)).items}
            for uid, pod in before.items():
                deed, verdict = _deed(pod, after.get(uid)), told.get(uid)
                said = (verdict.deed, verdict.reason) if verdict is not None else (Deed.LEFT, "not its own")
                where = f"seed {seed}, {pod.metadata.name}, {settings.rules}: told {said}"
                assert deed is said[0], f"{where}, happened {deed}"
                assert bool(said[1]) == (deed is Deed.LEFT), where
                ends[deed.value] += 1
    return ends


def _within(facts: VpaFacts, told: VpaWhy, seed: int) -> int:
    """How many sizes are told of pods that are left for being within the bounds; none of them is outside."""
    left = {uid for uid, verdict in foretold(facts).verdicts.items() if "within the bounds" in verdict.reason}
    within = {pod.metadata.name for pod in facts.pods or () if pod.metadata.uid in left and not pod.status.conditions}
    stands = [stand for stand in told.stands if stand.pod in within]
    outside = [stand for stand in stands if stand.stands != WITHIN]
    assert not outside, f"seed {seed}, {outside[:1]}"
    return len(stands)


def _deed(before: Pod, after: Pod | None) -> Deed:
    if after is None or after.metadata.deletion_timestamp is not None:
        return Deed.EVICTED
    return Deed.LEFT if before.spec == after.spec else Deed.RESIZED


async def test_what_is_told_of_every_pod_is_what_the_next_pass_does(tmp_path: Path) -> None:
    ends = Counter[str]()
    for seed in (0, 6):
        ends += await differences(tmp_path / str(seed), seed, 8)
    assert ends[Deed.RESIZED.value] > 3
    assert ends[Deed.LEFT.value] > 10
    assert ends[WITHIN] > 3


async def _two_pods(world: World) -> None:
    """Of a Deployment that needs them both, with a recommendation by which they change in place."""
    await world.deployment("web")
    await world.replicaset("web-rs", "web", 2)
    for number in range(2):
        await world.pod(f"web-{number}", "web", owner="web-rs", restart=True)
    await world.vpa("web", updatePolicy={"updateMode": "InPlaceOrRecreate"})
    await world.recommend("web", "500m", "600Mi")


async def _told(world: World) -> VpaWhy:
    facts = await read_facts(world.client, "web", NAMESPACE, world.clock)
    return why_vpa(facts, world.clock.now())


async def test_settings_that_nobody_has_published_are_named_as_assumed(tmp_path: Path) -> None:
    """Also where the updater is another's, and where its Lease still has what one of ours has said."""
    async with recommending(tmp_path) as world:
        await _two_pods(world)
        nobody = await _told(world)
        assert nobody.next
        assert nobody.updater == "podfit's updater, with the settings of podfit up,"
        assert nobody.notes[-1].endswith("are assumed: no updater holds the Lease kube-system/vpa-updater")
        await published(world, UpdaterSettings(rules=UpdateSettings(min_replicas=3)))
        ours = await _told(world)
        assert (ours.updater, ours.next) == ("podfit's updater", ())
        assert {stand.why for stand in ours.stands} == {
            "the updater does nothing: no admission controller renews the Lease kube-system/vpa-admission-controller"
        }
        lease = await world.client.get(Lease, LEASE, "kube-system")
        spec = LeaseSpec(holder_identity="vpa-updater-6b", renew_time=format_micro(world.clock.now()))
        await world.client.update(Lease(metadata=lease.metadata, spec=_lasting(spec)))
        theirs = await _told(world)
        assert theirs.next == nobody.next
        assert "vpa-updater-6b holds the Lease kube-system/vpa-updater and does not say them" in theirs.notes[-1]


def _lasting(spec: LeaseSpec) -> LeaseSpec:
    return LeaseSpec(
        holder_identity=spec.holder_identity, renew_time=spec.renew_time, lease_duration_seconds=15, lease_transitions=1
    )


async def test_the_settings_that_run_decide_what_is_told(tmp_path: Path) -> None:
    """A copy of podfit up's said that two pods are enough to restart one, whatever --min-replicas was."""
    async with recommending(tmp_path) as world:
        await _two_pods(world)
        lease = ObjectMeta(name=AdmissionLease().name, namespace="kube-system")
        renewed = LeaseSpec(renew_time=format_micro(world.clock.now()))
        await world.client.create(Lease(metadata=lease, spec=renewed))
        await published(world, UpdaterSettings(rules=IN_UP))
        assert (await _told(world)).next
    async with recommending(tmp_path / "strict") as world:
        await _two_pods(world)
        strict = UpdaterSettings(rules=UpdateSettings(gates=IN_UP.gates, min_replicas=3), admission=None)
        await published(world, strict)
        told = await _told(world)
        assert not any(step.startswith(("resizes ", "evicts ")) for step in told.next)
        assert all("fewer pods than minReplicas" in stand.why for stand in told.stands)
    async with recommending(tmp_path / "elsewhere") as world:
        await _two_pods(world)
        await published(world, UpdaterSettings(admission=None, namespace="other"))
        told = await _told(world)
        assert {stand.why for stand in told.stands} == {"the updater does not work in namespace default"}


@pytest.mark.campaign
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", range(4))
async def test_what_is_told_of_every_pod_holds_in_many_clusters(
    tmp_path: Path, part: int, figure: Callable[[str, object], None]
) -> None:
    """A part of 2,000 random workloads in 100 clusters, each with its own settings of the updater, two passes each:
    what `why vpa/NAME` says of every pod is what the pass then does with it.
    """
    ends = Counter[str]()
    for seed in range(100 + 25 * part, 125 + 25 * part):
        ends += await differences(tmp_path / str(seed), seed, 20)
    assert all(ends[deed.value] for deed in Deed), ends
    for deed in Deed:
        figure(deed.value, ends[deed.value])
    figure("sizes within bounds", ends[WITHIN])
