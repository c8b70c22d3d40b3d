"""What `why` and `plan` say of pods that a node would not run on spare capacity is what the node then does."""

from typing import Any

import pytest

from podfit.answers.facts.snapshot import Reader
from podfit.answers.facts.target import POD, Target
from podfit.answers.plan.amounts import Amount
from podfit.answers.plan.plan import plan
from podfit.answers.plan.resize_request import ResizeRequest
from podfit.answers.plan.rollout import plan_rollouts
from podfit.answers.why.pods import why_pod
from podfit.core.quantity import Quantity
from podfit.testing.cluster import Clock, Cluster

lending = pytest.mark.podfit(nodes=[{"cpu": "4", "memory": "4Gi"}], lend_spare=True)
OWN = {"requests": {"cpu": "2", "memory": "2Gi"}, "limits": {"memory": "3500Mi"}}
SPARE = {"podfit.dev/spare-cpu": "1500", "podfit.dev/spare-memory": "256"}
FIT = {"requests": SPARE, "limits": SPARE}
UNFIT = {"requests": {**SPARE, "cpu": "100m"}, "limits": SPARE}
WHY = "its node ends it (UnfitForSpare): a pod that asks for podfit.dev/spare-cpu or podfit.dev/spare-memory has no"


def pod(name: str, resources: dict[str, Any]) -> dict[str, Any]:
    spec = {"containers": [{"name": "app", "image": "app:1", "resources": resources}], "restartPolicy": "Never"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


@pytest.fixture
def owner(cluster: Cluster, clock: Clock) -> Cluster:
    """It uses so much that the others' 1500m are not lent yet."""
    cluster.apply(pod("owner", OWN))
    cluster.load("owner", cpu=1.0, memory=512 << 20)
    clock.advance(seconds=30)
    return cluster


@lending
def test_a_pod_that_waits_for_spare_capacity_is_told_what_its_node_will_make_of_it(
    owner: Cluster, clock: Clock
) -> None:
    owner.apply(pod("unfit", UNFIT), pod("fit", FIT))
    snapshots = {
        name: owner.run(Reader(owner.client, "default", owner._virtual).read(Target(POD, name), usage=True))
        for name in ("unfit", "fit")
    }
    told = {name: why_pod(one.pods[0], one, owner._virtual.now()).message for name, one in snapshots.items()}
    assert WHY in told["unfit"]
    assert "Insufficient podfit.dev/spare-cpu" in told["fit"]
    assert "UnfitForSpare" not in told["fit"]
    [planned] = plan(snapshots["unfit"], ResizeRequest({"cpu": Amount(Quantity.parse("200m"))}, "app")).pods
    assert planned.verdict == "infeasible"
    assert planned.text.startswith(WHY)
    owner.load("owner", cpu=0.1, memory=512 << 20)
    clock.advance(minutes=3)
    status = owner.pod("unfit").document["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "UnfitForSpare")
    assert owner.pod("fit").phase == "Running"


@lending
def test_a_manifest_whose_new_pods_no_node_runs_is_told(owner: Cluster) -> None:
    def workload(resources: dict[str, Any]) -> dict[str, Any]:
        container = {"name": "app", "image": "app:1", "resources": resources}
        template = {"metadata": {"labels": {"app": "batch"}}, "spec": {"containers": [container]}}
        spec = {"replicas": 1, "selector": {"matchLabels": {"app": "batch"}}, "template": template}
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "batch"}, "spec": spec}

    small = dict.fromkeys(SPARE, "100")
    owner.apply(workload({"requests": small, "limits": small}))
    assert owner.pod(next(one.name for one in owner.pods() if one.name.startswith("batch"))).phase == "Running"
    unfit = workload({"requests": {**small, "cpu": "100m"}, "limits": small})
    [told] = owner.run(plan_rollouts(owner.client, [unfit], "default", owner._virtual))
    assert told.text.startswith(f"of each new pod, {WHY}")
    owner.apply(unfit)
    owner.settle()
    reasons = {one.document["status"].get("reason", "") for one in owner.pods() if one.name.startswith("batch")}
    assert reasons == {"", "UnfitForSpare"}
