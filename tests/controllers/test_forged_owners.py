"""Objects of other tenants that name a workload as their controller: they are none of its, whatever they know of it.

Each holds itself by a finalizer against the garbage collector, as the attack did.
"""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

from podfit.core.errors import ApiError
from podfit.testing.cluster import Cluster
from support.forged_owners import PLURALS, Twins, resource

NUMBERS = count()
RECREATE = {"strategy": {"type": "Recreate", "rollingUpdate": None}}
VICTIMS: dict[str, tuple[str, dict[str, Any]]] = {
    "Deployment": ("Deployment", {}),
    "Deployment that recreates": ("Deployment", RECREATE),
    "ReplicaSet": ("ReplicaSet", {}),
    "ReplicationController": ("ReplicationController", {}),
    "StatefulSet": ("StatefulSet", {}),
    "DaemonSet": ("DaemonSet", {}),
    "Job": ("Job", {}),
    "CronJob": ("CronJob", {}),
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(Path(tmp_path_factory.mktemp("forged")), nodes=2)
    yield made
    made.close()


def twins(cluster: Cluster, what: str) -> Twins:
    kind, spec = VICTIMS[what]
    made = Twins(cluster, next(NUMBERS), kind, **spec)
    cluster.clock.advance(65 if kind == "CronJob" else 10)
    return made


def test_a_recreating_deployment_does_not_wait_for_pods_of_a_foreign_replica_set(cluster: Cluster) -> None:
    pair = twins(cluster, "Deployment that recreates")
    pair.forge("ReplicaSet", "w-forged", labels={"pod-template-hash": "h"})
    pair.both({"spec": {"template": {"metadata": {"annotations": {"v": "2"}}}}})
    cluster.clock.advance(35)
    assert [version for *_, version in pair.seen(pair.victim)["pods"]] == ["2"] * 3
    assert pair.seen(pair.victim) == pair.seen(pair.other)
    pair.untouched()


def test_a_foreign_replica_set_is_neither_counted_nor_scaled(cluster: Cluster) -> None:
    pair = twins(cluster, "Deployment")
    pair.forge("ReplicaSet", "w-forged", labels={"pod-template-hash": "h"})
    pair.both({"spec": {"replicas": 4}})
    cluster.clock.advance(10)
    assert pair.seen(pair.victim)["status"]["replicas"] == 4
    assert pair.seen(pair.victim) == pair.seen(pair.other)
    pair.untouched()


def test_a_foreign_pod_of_a_stateful_sets_name_takes_no_place_of_its(cluster: Cluster) -> None:
    pair = twins(cluster, "StatefulSet")
    pair.forge("Pod", "w-0")
    for namespace in (pair.victim, pair.other):
        cluster.delete("w-0", namespace=namespace)
    cluster.clock.advance(12)
    assert cluster.pod("w-0", pair.victim).phase == "Running"
    assert pair.seen(pair.victim) == pair.seen(pair.other)


@pytest.mark.parametrize("what", VICTIMS)
def test_foreign_objects_change_nothing_that_a_controller_does(cluster: Cluster, what: str) -> None:
    pair, random = twins(cluster, what), Random(24)
    for number in range(5):
        pair.forge_anything(random, number)
    pair.act(random, 0)
    assert pair.seen(pair.victim) == pair.seen(pair.other)
    pair.untouched()


@pytest.mark.campaign
@pytest.mark.timeout(900)
@pytest.mark.parametrize("what", VICTIMS)
def test_owners_are_forged_many_times(tmp_path: Path, what: str, figure: Callable[[str, object], None]) -> None:
    """Owners: 4 courses for each kind of workload. Objects that name it as their controller, of another namespace,
    kind, group, name or UID, are made at random and hold themselves by a finalizer; it ends as one that nobody attacks.
    """
    forged = 0
    cluster = Cluster(tmp_path, nodes=2)
    for seed in range(4):
        pair, random = twins(cluster, what), Random(seed)
        for number in range(8):
            pair.forge_anything(random, number)
            pair.act(random, number)
        cluster.clock.advance(120)
        assert pair.seen(pair.victim) == pair.seen(pair.other), seed
        pair.untouched()
        forged += len(pair.forged)
        pair.close()
    cluster.close()
    figure("forged objects", forged)


@pytest.mark.parametrize("policy", ["Foreground", "Orphan", "Background"])
def test_a_workload_goes_whoever_blocks_it_from_another_namespace(cluster: Cluster, policy: str) -> None:
    pair = twins(cluster, "ReplicaSet")
    for kind in ("Pod", "Job"):
        pair.forge(kind, f"held-{kind.lower()}")
    cluster.run(cluster.client.delete(resource("ReplicaSet"), "w", pair.victim, propagation=policy))
    cluster.clock.advance(15)
    with pytest.raises(ApiError, match="not found"):
        cluster.run(cluster.client.get(resource("ReplicaSet"), "w", pair.victim))
    assert len(cluster.pods(pair.victim)) == (3 if policy == "Orphan" else 0)
    pair.untouched()


def test_every_kind_of_workload_is_attacked() -> None:
    assert {kind for kind, _ in VICTIMS.values()} == PLURALS.keys() - {
        "Pod", "ControllerRevision", "PersistentVolumeClaim",
    }  # fmt: skip
