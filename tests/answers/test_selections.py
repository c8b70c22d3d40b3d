"""Answers over many: what is selected, what is promised of it together, and who may see how much of it."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from podfit.actions.resize_pods import Options, Progress, carry_out
from podfit.answers.facts import selection as selections
from podfit.answers.facts.selection import Selection, parse_selection, select
from podfit.answers.facts.target import TargetError
from podfit.answers.plan.read_plan import Planned
from podfit.answers.plan.recommended_request import NoRecommendation
from podfit.answers.plan.resize_request import ResizeRequest
from podfit.answers.plan.result import DEFERRED, FITS
from podfit.answers.plan.several_targets import plan_selection
from podfit.cli.app import run
from podfit.cli.questions.resize_options import request_of_several
from podfit.client.kubeconfig import load
from podfit.core.errors import ApiError
from podfit.core.quantity import ZERO, Quantity
from podfit.net.system import SystemClock
from podfit.testing.cluster import Cluster

SIZES = {"requests": {"cpu": "500m", "memory": "64Mi"}}


def deployment(name: str, replicas: int, **labels: str) -> dict[str, Any]:
    own = {"app": name}
    container = {"name": "app", "image": "busybox:1.36", "resources": SIZES}
    template = {"metadata": {"labels": own | labels}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": own}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "labels": labels}, "spec": spec}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two nodes of four cores, with a shop of two workloads, one in another namespace, and a pod of nobody."""
    made = Cluster(tmp_path_factory.mktemp("cluster"), nodes=2)
    made.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    made.settle()
    made.apply(deployment("web", 2, tier="front"), deployment("api", 1, tier="back"))
    made.apply(deployment("web", 1, tier="front"), namespace="other")
    container = {"name": "app", "image": "busybox:1.36", "resources": SIZES}
    alone = {"metadata": {"name": "alone", "labels": {"tier": "front"}}, "spec": {"containers": [container]}}
    made.apply({"apiVersion": "v1", "kind": "Pod", **alone})
    made.settle()
    yield made
    made.close()


def selected(cluster: Cluster, *words: str, labels: str = "", everywhere: bool = False) -> list[str]:
    found = parse_selection(words, labels, everywhere=everywhere)
    assert found is not None
    return [f"{one.namespace} {one.target}" for one in cluster.run(select(cluster.client, "default", found))]


def planned(cluster: Cluster, found: Selection | None, cpu: str = "", **more: Any) -> Planned:
    assert found is not None
    given = {"undo": False, "from_vpa": False, "also_template": False} | more
    request = request_of_several(cpu, "", "", None, **given)
    return cluster.run(plan_selection(cluster.client, "default", found, request))


def test_targets_are_named_as_in_kubectl_or_selected_by_kind_and_labels(cluster: Cluster) -> None:
    assert selected(cluster, "deployment/web", "deploy/api", "deployment/web") == [
        "default deployment/web",
        "default deployment/api",
    ]
    assert selected(cluster, "deploy", "web", "api") == ["default deployment/web", "default deployment/api"]
    assert selected(cluster, "deployment", labels="tier=front") == ["default deployment/web"]
    assert selected(cluster, "deployments", labels="tier=front", everywhere=True) == [
        "default deployment/web",
        "other deployment/web",
    ]
    owned = selected(cluster, labels="tier=front", everywhere=True)
    assert owned[0] == "default pod/alone"
    assert [one.rpartition("-")[0] for one in owned[1:]] == ["default replicaset/web", "other replicaset/web"]
    assert parse_selection(["pod", "web"], "", everywhere=False) is None
    assert parse_selection(["pod/web"], "", everywhere=False) is None


@pytest.mark.parametrize(
    ("words", "labels", "said"),
    [
        (["deploy/web"], "a=b", "-l selects of a kind, such as deployment, and cannot be combined with deploy/web"),
        (["deploy", "web"], "a=b", "cannot be combined with web"),
        (["node"], "a=b", '"node" is not one of'),
        ([], "a in", "-l a in: unable to parse"),
        (["deploy/web", "api"], "", '"api" is not one of'),
    ],
)
def test_a_selection_that_is_none_is_refused(words: list[str], labels: str, said: str) -> None:
    with pytest.raises(TargetError, match=said):
        parse_selection(words, labels, everywhere=False)


def test_nothing_and_too_much_are_refused(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TargetError, match="-l tier=none selects nothing that runs in namespace default"):
        selected(cluster, labels="tier=none")
    monkeypatch.setattr(selections, "MOST_TARGETS", 1)
    with pytest.raises(TargetError, match="deployment -A selects 3 workloads and pods: narrow it to 1 with -l"):
        selected(cluster, "deployment", everywhere=True)
    monkeypatch.setattr(selections, "MOST_READ", 2)
    for words, what in ((["deployment"], "deployments"), ([], "pods")):
        with pytest.raises(TargetError, match=f"there are more than 2 {what}: narrow it with -l"):
            selected(cluster, *words, everywhere=True)


def test_what_is_planned_together_is_done_together(cluster: Cluster) -> None:
    """Sums before, asked for and granted are those of the pods then; a fifth more in two namespaces, and back."""
    front = parse_selection([], "tier=front", everywhere=True)
    for cpu, undo, total in (("+20%", False, "2400m"), ("", True, "2")):
        found = planned(cluster, front, cpu, undo=undo)
        assert {pod.verdict for pod in found.plan.pods} == {FITS}
        assert len(found.plan.pods) == 4
        (requested,) = (one for one in found.plan.sums if (one.resource, one.side) == ("cpu", "requests"))
        assert (requested.after, requested.granted) == (total, total)
        assert requests_of(cluster) == Quantity.parse(requested.before)
        assert carried_out(cluster, found) == 4
        cluster.settle()
        assert requests_of(cluster) == Quantity.parse(requested.granted)


def test_what_has_no_room_is_not_in_what_fits_now(cluster: Cluster) -> None:
    """Of four pods of three cores on two nodes of four, one fits on each."""
    found = planned(cluster, parse_selection(["deployment"], "", everywhere=True), "3")
    verdicts = sorted(pod.verdict for pod in found.plan.pods)
    assert verdicts.count(DEFERRED) >= 2
    (requested,) = (one for one in found.plan.sums if (one.resource, one.side) == ("cpu", "requests"))
    fitting = verdicts.count(FITS)
    assert Quantity.parse(requested.after) == Quantity.of(12)
    assert Quantity.parse(requested.granted).milli() == 3000 * fitting + 500 * (4 - fitting)


def requests_of(cluster: Cluster) -> Quantity:
    """Of the pods of the tier, CPU."""
    pods = [view.pod for where in ("default", "other") for view in cluster.pods(where)]
    front = [pod for pod in pods if pod.metadata.labels.get("tier") == "front"]
    return sum((pod.spec.containers[0].resources.requests["cpu"] for pod in front), ZERO)


def carried_out(cluster: Cluster, found: Planned) -> int:
    async def act() -> int:
        told = carry_out(cluster.client, found, Options(), SystemClock(), progress=Progress())
        return len([outcome async for outcome in told])

    return cluster.run(act())


def test_a_vpa_recommends_for_none_of_them(cluster: Cluster) -> None:
    with pytest.raises(NoRecommendation, match="no VPA in namespace default recommends sizes for deployment/web"):
        planned(cluster, parse_selection(["deploy", "web", "api"], "", everywhere=False), from_vpa=True)


def test_who_may_read_one_namespace_is_told_of_no_other(cluster: Cluster) -> None:
    """An account that may view `other`: there it plans; of all namespaces, and of this one, it is refused."""
    cluster.apply(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "viewer"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
            "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "other"}],
        },
        namespace="other",
    )
    path: Path = cluster.kubeconfig_of("default", namespace="other")

    async def asked(where: str, found: Selection) -> Planned:
        client = load([path]).client()
        try:
            return await plan_selection(client, where, found, ResizeRequest(undo=True))
        finally:
            await client.close()

    front = Selection(labels="tier=front")
    with pytest.raises(ApiError, match="cannot list resource"):
        cluster.run(asked("default", front))
    with pytest.raises(ApiError, match="cannot list resource"):
        cluster.run(asked("other", Selection(labels="tier=front", everywhere=True)))


# -------------------------------------------------------------------- as a user sees it


def ask(cluster: Cluster, *arguments: str) -> int:
    return run([*arguments, "--kubeconfig", str(cluster.kubeconfig)])


def test_a_plan_of_several_tells_namespaces_sums_and_the_next_step(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(cluster, "plan", "deployment", "-l", "tier=front", "-A", "--cpu", "600m") == 0
    out = capsys.readouterr().out
    assert out.splitlines()[2].split()[:2] == ["NAMESPACE", "POD"]
    assert "3 pods: fits 3\n  cpu requests together: 1500m → 1800m\n" in out
    assert "  memory requests together: 192Mi, as before\n" in out
    assert "next: podfit resize deployment -l tier=front -A --cpu 600m --kubeconfig" in out
    assert ask(cluster, "plan", "deployment", "-A", "--cpu", "3", "-o", "json") == 1
    sums = msgspec.json.decode(capsys.readouterr().out)["sums"]
    assert sums[0].keys() == {"resource", "side", "before", "after", "granted"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["plan", "deployment", "-A", "--fit"], "--fit is about one target, not about deployment -A"),
        (["plan", "deployment", "-A"], "one of --cpu, --memory, -f, --from-vpa and --undo is required"),
        (["plan", "deploy/web", "deploy/api", "-f", "x"], "-f is about one target"),
        (["plan", "deploy/web", "deploy/api", "--undo", "--cpu", "1"], "--undo cannot be combined with --cpu"),
        (["plan", "deploy/web", "deploy/api", "--from-vpa", "--cpu", "1"], "--from-vpa cannot be combined with --cpu"),
        (
            ["resize", "deploy/web", "deploy/api", "--cpu", "1", "--also-template"],
            "--also-template is about one target",
        ),
        (["resize", "-A", "--cpu", "1"], "-A alone would resize every pod of the cluster"),
        (["export", "-l", "tier=front"], "name a kind of workloads, such as deployment -l tier=front"),
        (["export", "deploy/web", "deploy/api", "--to", "patch"], "--to patch names no object"),
        (["export", "deploy/web", "deploy/api", "--drift", "-f", "x"], "-f is about one target"),
        (["why", "--watch", "--interval", "0"], "must be at least 0.2 seconds"),
        (["why", "--watch", "--interval", "nan"], "must be at least 0.2 seconds"),
    ],
)
def test_wrong_usage_of_several_is_told(
    cluster: Cluster, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(cluster, *arguments) == 2
    assert said in capsys.readouterr().err


def test_export_of_several_is_a_file_to_apply(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(cluster, "export", "deployment", "-A") == 0
    captured = capsys.readouterr()
    documents = list(yaml.safe_load_all(captured.out))
    assert [(one["metadata"]["namespace"], one["metadata"]["name"]) for one in documents] == [
        ("default", "api"),
        ("default", "web"),
        ("other", "web"),
    ]
    for document in documents:
        resources = document["spec"]["template"]["spec"]["containers"][0]["resources"]
        assert resources == SIZES
    for line in ("3 workloads, 4 pods", "cpu requests together: 2", "memory requests together: 256Mi"):
        assert f"note: {line}\n" in captured.err
    assert ask(cluster, "export", "deployment", "-A", "-o", "json") == 0
    assert msgspec.json.decode(capsys.readouterr().out) == {"apiVersion": "v1", "kind": "List", "items": documents}
    assert ask(cluster, "export", "deployment", "-A", "--to", "helm") == 0
    values = yaml.safe_load(capsys.readouterr().out)
    assert sorted(values) == ["default/deployment/api", "default/deployment/web", "other/deployment/web"]
    assert ask(cluster, "export", "deployment", "-A", "--drift") == 0


def test_why_is_asked_again_until_nobody_reads(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    times = count()
    monkeypatch.setattr("podfit.cli.render.reader_left", lambda: next(times) >= 2)
    assert ask(cluster, "why", "pod/alone", "--watch", "--interval", "0.2") == 0
    assert capsys.readouterr().out.count("alone  nothing is outstanding") == 3
