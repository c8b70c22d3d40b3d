"""Rows of tables, as kubectl prints them."""

from typing import Any

import msgspec
import pytest

from podfit.api.core.v1.events.columns import event_row
from podfit.api.core.v1.events.types import Event, EventSeries, EventSource
from podfit.api.core.v1.limits.types import ResourceQuota, ResourceQuotaStatus
from podfit.api.core.v1.nodes.columns import node_row
from podfit.api.core.v1.nodes.types import Node, NodeAddress, NodeCondition, NodeSpec, NodeStatus, NodeSystemInfo
from podfit.api.core.v1.pods.columns import pod_row, pod_status
from podfit.api.core.v1.pods.container_status import (
    ContainerState,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
)
from podfit.api.core.v1.pods.types import Pod, PodCondition, PodIP, PodReadinessGate
from podfit.api.core.v1.references import ObjectReference
from podfit.api.kinds.core import quota_row
from podfit.api.kinds.rbac import binding_row
from podfit.api.meta.columns import since
from podfit.api.meta.v1.types import ObjectMeta
from podfit.api.rbac.v1.types import RoleBinding, RoleRef, Subject
from podfit.api.registry import resources
from support.pods import RUNNING, amounts, container, pod, sidecar, with_status

NOW = "2026-01-02T00:00:00Z"


def waiting(reason: str) -> ContainerState:
    return ContainerState(waiting=ContainerStateWaiting(reason=reason))


def ended(code: int = 0, reason: str = "", signal: int = 0, at: str = "2026-01-01T23:59:55Z") -> ContainerState:
    over = ContainerStateTerminated(exit_code=code, reason=reason, signal=signal, finished_at=at)
    return ContainerState(terminated=over)


def of(name: str, state: ContainerState, **more: Any) -> ContainerStatus:
    return ContainerStatus(name=name, state=state, **more)


def lives(*statuses: ContainerStatus, init: tuple[ContainerStatus, ...] = (), **more: Any) -> Pod:
    given = pod(container("a"), container("b"), init=(container("i"), sidecar("s")))
    more.setdefault("phase", "Running")
    return with_status(given, container_statuses=statuses, init_container_statuses=init, **more)


READY = PodCondition(type="Ready", status="True")
UP = {"ready": True, "started": True}
INIT_DONE = (of("i", ended(), ready=True), of("s", RUNNING, **UP))


@pytest.mark.parametrize(
    ("given", "status"),
    [
        (lives(phase="Pending"), "Pending"),
        (lives(of("a", RUNNING, **UP), of("b", RUNNING, **UP), init=INIT_DONE), "Running"),
        (lives(of("a", waiting("CrashLoopBackOff")), of("b", RUNNING, **UP), init=INIT_DONE), "CrashLoopBackOff"),
        (lives(of("a", ended(reason="Completed")), of("b", RUNNING, **UP), conditions=(READY,)), "Running"),
        (lives(of("a", ended(reason="Completed")), of("b", RUNNING, **UP)), "NotReady"),
        (lives(of("a", ended(reason="Completed")), of("b", ended(reason="Completed")), phase="Succeeded"), "Completed"),
        (lives(of("a", ended(137, "OOMKilled"))), "OOMKilled"),
        (lives(of("a", ended(3))), "ExitCode:3"),
        (lives(of("a", ended(0, signal=9))), "Signal:9"),
        (lives(init=(of("i", RUNNING),), phase="Pending"), "Init:0/2"),
        (lives(init=(of("i", ended()), of("s", waiting("PodInitializing"))), phase="Pending"), "Init:1/2"),
        (lives(init=(of("i", ended(1, "Error")),), phase="Pending"), "Init:Error"),
        (lives(init=(of("i", waiting("ImagePullBackOff")),), phase="Pending"), "Init:ImagePullBackOff"),
        (lives(phase="Failed", reason="Evicted"), "Evicted"),
        (
            lives(phase="Pending", conditions=(PodCondition(type="PodScheduled", reason="SchedulingGated"),)),
            "SchedulingGated",
        ),
    ],
)
def test_status_of_a_pod(given: Pod, status: str) -> None:
    assert pod_status(given) == status


def test_a_pod_that_is_going_is_terminating_until_it_is_over() -> None:
    given = lives(of("a", RUNNING, **UP))
    metadata = msgspec.structs.replace(given.metadata, deletion_timestamp=NOW)
    assert pod_status(msgspec.structs.replace(given, metadata=metadata)) == "Terminating"
    over = with_status(given, phase="Succeeded", container_statuses=())
    assert pod_status(msgspec.structs.replace(over, metadata=metadata)) == "Succeeded"


def test_pod_row() -> None:
    given = lives(
        of("a", RUNNING, restart_count=2, last_state=ended(1), **UP),
        of("b", waiting("ContainerCreating")),
        init=(of("i", ended(), restart_count=7), of("s", RUNNING, restart_count=1, **UP)),
        conditions=(PodCondition(type="x/y", status="True"),),
        pod_ips=(PodIP(ip="10.0.0.1"),),
    )
    spec = msgspec.structs.replace(
        given.spec,
        node_name="n1",
        readiness_gates=(PodReadinessGate(condition_type="x/y"), PodReadinessGate(condition_type="z")),
    )
    metadata = msgspec.structs.replace(given.metadata, creation_timestamp="2026-01-01T23:00:00Z")
    row = pod_row(msgspec.structs.replace(given, spec=spec, metadata=metadata), NOW)
    assert row == ["web", "2/3", "ContainerCreating", "3 (5s ago)", "60m", "10.0.0.1", "n1", "<none>", "1/2"]


def test_node_row() -> None:
    node = Node(
        metadata=ObjectMeta(
            name="n1", creation_timestamp="2026-01-01T00:00:00Z", labels={"node-role.kubernetes.io/worker": ""}
        ),
        spec=NodeSpec(unschedulable=True),
        status=NodeStatus(
            conditions=(NodeCondition(type="Ready", status="Unknown"),),
            addresses=(NodeAddress(type="InternalIP", address="10.0.0.9"),),
            node_info=NodeSystemInfo(kubelet_version="v1.36.2", os_image="Debian"),
        ),
    )
    assert node_row(node, NOW) == [
        "n1",
        "NotReady,SchedulingDisabled",
        "worker",
        "24h",
        "v1.36.2",
        "10.0.0.9",
        "<none>",
        "Debian",
        "<unknown>",
        "<unknown>",
    ]


def test_event_row_counts_a_series() -> None:
    event = Event(
        metadata=ObjectMeta(name="e"),
        type="Normal",
        reason="Pulled",
        message="done\n",
        count=1,
        event_time="2026-01-01T23:50:00.000000Z",
        involved_object=ObjectReference(kind="Pod", name="p"),
        source=EventSource(component="kubelet", host="n1"),
        series=EventSeries(count=4, last_observed_time="2026-01-01T23:59:00.000000Z"),
    )
    assert event_row(event, NOW) == ["60s", "Normal", "Pulled", "pod/p", "", "kubelet, n1", "done", "10m", 4, "e"]


def test_quota_and_binding_rows() -> None:
    hard = amounts({"pods": "30", "limits.cpu": "4", "requests.storage": "9Gi"})
    status = ResourceQuotaStatus(hard=hard, used=amounts({"pods": "1", "requests.storage": "1Gi"}))
    quota = ResourceQuota(metadata=ObjectMeta(name="q"), status=status)
    assert quota_row(quota, NOW) == ["q", "pods: 1/30, requests.storage: 1Gi/9Gi", "limits.cpu: 0/4", "<unknown>"]
    subjects = (
        Subject(kind="User", name="u"),
        Subject(kind="User", name="v"),
        Subject(kind="ServiceAccount", name="s", namespace="n"),
    )
    binding = RoleBinding(metadata=ObjectMeta(name="b"), role_ref=RoleRef(kind="Role", name="r"), subjects=subjects)
    assert binding_row(binding, NOW) == ["b", "Role/r", "<unknown>", "u, v", "", "n/s"]


@pytest.mark.parametrize(
    "info", [resource for resource in resources() if resource.stored], ids=lambda info: info.resource
)
def test_every_kind_has_a_row_as_long_as_its_columns(info: Any) -> None:
    obj = info.type(metadata=ObjectMeta(name="x", creation_timestamp="2026-01-01T23:59:58Z"))
    row = info.row(obj, NOW)
    assert len(row) == len(info.columns)
    assert row[[column.format for column in info.columns].index("name")] == "x"


@pytest.mark.parametrize("moment", [None, "2025-02-29T00:00:00Z"])
def test_a_moment_nobody_knows(moment: str | None) -> None:
    assert since(moment, NOW) == "<unknown>"
