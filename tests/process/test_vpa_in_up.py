"""The Vertical Pod Autoscaler of `podfit up`, with nothing set up."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from podfit.api.coordination.v1.types import Lease
from podfit.api.core.v1.pods.types import Pod
from podfit.client.election import is_renewed, told_by_holder
from podfit.client.vpa_kinds import VPAS
from podfit.decide.autoscaling.published import ANNOTATION, IN_UP, LEASE, published
from podfit.testing.clock import EPOCH
from podfit.testing.cluster import Cluster
from podfit.vpa.updater.settings import UpdaterSettings
from support.eventually import PATIENCE

NAMESPACE = "default"
VPA = {
    "apiVersion": "autoscaling.k8s.io/v1",
    "kind": "VerticalPodAutoscaler",
    "metadata": {"name": "web"},
    "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
}
LABELS = {"app": "web"}


def deployment(cpu: str) -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu, "memory": "64Mi"}}
    pod = {
        "metadata": {"labels": LABELS},
        "spec": {"containers": [{"name": "app", "image": "i", "resources": resources}]},
    }
    spec = {"replicas": 1, "selector": {"matchLabels": LABELS}, "template": pod}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path, vpa=True)
    try:
        made.clock.advance(1)
        yield made
    finally:
        made.close()


def requests(cluster: Cluster) -> list[tuple[str, str, int]]:
    """CPU, memory and restarts of every pod's container."""
    pods = cluster.run(cluster.client.list(Pod, NAMESPACE)).items
    return [
        (
            str(pod.spec.containers[0].resources.requests["cpu"]),
            str(pod.spec.containers[0].resources.requests["memory"]),
            pod.status.container_statuses[0].restart_count,
        )
        for pod in pods
        if pod.metadata.deletion_timestamp is None
    ]


@pytest.mark.row("V-001", "V-006", "V-100", "V-124")
def test_vpa_sizes_a_deployment_without_any_set_up(cluster: Cluster) -> None:
    cluster.apply(deployment("5m"), VPA)
    (stored,) = cluster.run(cluster.client.list(VPAS, NAMESPACE)).items
    assert stored.spec.update_policy is not None
    assert stored.spec.update_policy.update_mode == "Recreate"
    assert requests(cluster) == [("5m", "64Mi", 0)]
    cluster.clock.advance(minutes=4)
    ((cpu, memory, restarts),) = requests(cluster)
    assert (cpu, memory, restarts) == ("25m", "250Mi", 0)
    conditions = {
        condition.type for condition in cluster.run(cluster.client.get(VPAS, "web", NAMESPACE)).status.conditions
    }
    assert conditions == {"RecommendationProvided", "podfit.dev/InPlaceByDefault"}
    for pod in cluster.run(cluster.client.list(Pod, NAMESPACE)).items:
        cluster.run(cluster.client.delete(Pod, pod.metadata.name, NAMESPACE, grace=0))
    cluster.clock.advance(5)
    assert requests(cluster) == [("25m", "250Mi", 0)], "the new pod is made with it"


def test_what_its_updater_runs_with_is_in_its_lease(cluster: Cluster) -> None:
    cluster.apply(deployment("5m"), VPA)
    cluster.clock.advance(minutes=2)
    lease = cluster.run(cluster.client.get(Lease, LEASE, "kube-system"))
    assert is_renewed(lease, EPOCH + timedelta(seconds=cluster.clock.elapsed))
    settings = published(told_by_holder(lease)[ANNOTATION])
    assert (settings.rules, settings.interval) == (UpdaterSettings(rules=IN_UP).rules, 60)
    assert settings.rules.thresholds.lifetime == timedelta(hours=12)


def test_vpa_of_the_readme_acts_on_its_deployment(cluster: Cluster) -> None:
    """A simulated container uses nothing, so it gets the least that a VPA gives."""
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    text = readme.partition("Let an autoscaler do it.")[2].partition("<<'EOF'\n")[2].partition("EOF\n")[0]
    cluster.apply(text)
    assert requests(cluster) == [("10m", "250Mi", 0)]
    cluster.clock.advance(minutes=4)
    assert requests(cluster) == [("25m", "250Mi", 0)]


def test_vpa_costs_no_numpy_while_there_is_none() -> None:
    code = (
        "import sys, tempfile, pathlib\n"
        "from podfit.testing.cluster import Cluster\n"
        "made = Cluster(pathlib.Path(tempfile.mkdtemp()), vpa=True)\n"
        "made.clock.advance(120)\n"
        "sys.exit('numpy' in sys.modules or 'podfit.process.vpa.in_up' not in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60 * PATIENCE).returncode == 0
