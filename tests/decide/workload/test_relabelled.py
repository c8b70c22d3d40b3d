"""A pod with the label of the new revision is taken for updated, whatever its spec says: a rule of upstream.

Kubernetes 1.36.2: `getPodRevision` (`pkg/controller/statefulset/stateful_set_utils.go`) reads
`controller-revision-hash`, and `stateful_set_control.go` compares nothing else, where it counts updated replicas and
where it picks the pod that a rolling update deletes next; `IsPodUpdated`
(`pkg/controller/daemon/util/daemonset_util.go`) reads the same label, or `pod-template-generation`.
"""

from datetime import UTC, datetime
from typing import Any

import pytest

from podfit.api.apps.v1.daemonsets import DaemonSet
from podfit.api.apps.v1.statefulsets import StatefulSet
from podfit.api.core.v1.pods.templates import PodTemplateSpec
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.decide.workload.daemon.steps import Version, roll
from podfit.decide.workload.in_place import hold
from podfit.decide.workload.stateful.status import status_of
from podfit.decide.workload.stateful.steps import Delete, Revision, plan

NOW = datetime(2026, 11, 1, tzinfo=UTC)
READY = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-10-01T00:00:00Z"}


def pod(name: str, **labels: str) -> Pod:
    own = {"statefulset.kubernetes.io/pod-name": name, "apps.kubernetes.io/pod-index": name[-1]}
    marks = own | {key.replace("_", "-"): value for key, value in labels.items()}
    spec = {"nodeName": f"n{name[-1]}", "containers": [{"name": "c", "resources": {"requests": {"cpu": "7"}}}]}
    status = {"phase": "Running", "conditions": [READY]}
    return convert({"metadata": {"name": name, "uid": name, "labels": marks}, "spec": spec, "status": status}, Pod)


def stateful(**strategy: Any) -> StatefulSet:
    spec = {"replicas": 3, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": strategy}}
    return convert({"metadata": {"name": "w", "generation": 2}, "spec": spec}, StatefulSet)


@pytest.mark.parametrize(("labels", "deleted"), [("nnn", []), ("non", ["w-1"]), ("ooo", ["w-2"]), ("onn", ["w-0"])])
def test_of_a_stateful_set(labels: str, deleted: list[str]) -> None:
    names = {"n": "w-new", "o": "w-old"}
    pods = [pod(f"w-{number}", controller_revision_hash=names[label]) for number, label in enumerate(labels)]
    old, new = Revision("w-old", PodTemplateSpec()), Revision("w-new", PodTemplateSpec())
    step = plan(stateful(partition=0), old, new, pods, NOW)
    assert [action.pod.metadata.name for action in step.actions if isinstance(action, Delete)] == deleted
    assert not plan(stateful(partition=3), old, new, pods, NOW).updating, "held"
    status = status_of(stateful(partition=0), "w-old", "w-new", pods, NOW, collisions=0)
    assert status.updated_replicas == labels.count("n")
    assert (status.current_revision == "w-new") == (labels == "nnn"), "the rollout is over"


@pytest.mark.parametrize(
    ("labels", "deleted"),
    [
        ({"controller_revision_hash": "new"}, []),
        ({"controller_revision_hash": "old", "pod_template_generation": "2"}, []),
        ({"controller_revision_hash": "old", "pod_template_generation": "1"}, ["d-1"]),
    ],
)
def test_of_a_daemon_set(labels: dict[str, str], deleted: list[str]) -> None:
    daemons = convert(
        {"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}}}, DaemonSet
    )
    step = roll(daemons, {"n1": [pod("d-1", **labels)]}, Version("new", "2"), 1, NOW)
    assert [one.metadata.name for one in step.delete] == deleted
    held = convert({"spec": {"updateStrategy": {"type": "OnDelete"}}}, DaemonSet)
    assert roll(held, {"n1": [pod("d-1", **labels)]}, Version("new", "2"), 1, NOW).delete == ()


def test_a_hold_is_given_back_as_it_was() -> None:
    before = stateful(partition=1, maxUnavailable=2)
    patch = hold.held(before)
    assert patch["spec"] == {"updateStrategy": {"rollingUpdate": {"partition": 3}}}
    note = patch["metadata"]["annotations"]
    again = convert({"metadata": {"name": "w", "annotations": note}, "spec": {"replicas": 3}}, StatefulSet)
    assert hold.held(again)["metadata"]["annotations"] == note, "of the first, whoever holds it"
    rolling = {"partition": 1, "maxUnavailable": 2}
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling, "$patch": "replace"}
    assert hold.released(again)["spec"]["updateStrategy"] == strategy
    assert hold.first_replaced(again) == 1
    unreadable = convert({"metadata": {"annotations": {hold.HELD: "["}}}, StatefulSet)
    with pytest.raises(ValueError, match="cannot be read"):
        hold.released(unreadable)
