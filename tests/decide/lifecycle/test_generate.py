"""A pod's whole status at each turn of its life, in the shapes that a 1.36 kubelet writes."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from podfit.api.core.v1.pods.container_status import ContainerStateWaiting
from podfit.api.core.v1.pods.types import Pod, PodCondition, PodReadinessGate, PodStatus
from podfit.api.meta import codec
from podfit.decide.cgroup.container_resources import Machine
from podfit.decide.lifecycle.facts import (
    ContainerState,
    ContainerStatus,
    Failure,
    LinuxResources,
    PodFacts,
    SandboxState,
    SandboxStatus,
    StatusInput,
)
from podfit.decide.lifecycle.status import generate, rejected
from support.clock import EPOCH
from support.placed import placed
from support.pods import container, needs, pod, sidecar

SECOND = 10**9
START = int(EPOCH.timestamp()) * SECOND
BOX = SandboxStatus(
    id="box",
    name="web",
    namespace="default",
    uid="web",
    attempt=0,
    state=SandboxState.READY,
    created_at=START,
    ips=("10.0.0.7",),
)
NO_BOX = replace(BOX, state=SandboxState.NOT_READY)
WEB = placed(pod(container("c1"), restart_policy="Always"))


def instance(name: str = "c1", *, attempt: int = 0, code: int | None = None, **more: Any) -> ContainerStatus:
    """Runs, unless it ended with `code`."""
    ended: dict[str, Any] = (
        {}
        if code is None
        else {"exit_code": code, "finished_at": START + SECOND, "reason": "Error" if code else "Completed"}
    )
    fields = {
        "id": f"{name}-{attempt}",
        "name": name,
        "attempt": attempt,
        "created_at": START,
        "started_at": START,
        "state": ContainerState.RUNNING if code is None else ContainerState.EXITED,
        "image": "docker.io/library/app:1",
        "image_ref": "sha256:1",
        **ended,
        **more,
    }
    return ContainerStatus(**fields)


def facts(given: Pod, *instances: ContainerStatus, box: SandboxStatus | None = BOX, **more: Any) -> StatusInput:
    fields = {
        "allocated": given,
        "previous": given.status,
        "machine": Machine(memory=1 << 30),
        "node_ip": "192.0.2.1",
        "now": EPOCH,
        **more,
    }
    return StatusInput(pod=given, observed=PodFacts("web", status=box, containers=instances), **fields)


def holds(status: PodStatus) -> list[str]:
    """`Ready=False(PodFailed)`"""
    return [
        f"{condition.type}={condition.status}" + (f"({condition.reason})" if condition.reason else "")
        for condition in status.conditions
    ]


@pytest.mark.row("R-151")
def test_before_anything_runs() -> None:
    assert codec.to_dict(generate(facts(WEB, box=None))) == {
        "observedGeneration": 1,
        "phase": "Pending",
        "conditions": [
            {
                "type": kind,
                "status": status,
                "lastProbeTime": None,
                "lastTransitionTime": "2026-01-01T00:00:00Z",
                "observedGeneration": 1,
                **why,
            }
            for kind, status, why in (
                ("PodReadyToStartContainers", "False", {}),
                ("Initialized", "True", {}),
                ("Ready", "False", UNREADY),
                ("ContainersReady", "False", UNREADY),
                ("PodScheduled", "True", {}),
            )
        ],
        "hostIP": "192.0.2.1",
        "hostIPs": [{"ip": "192.0.2.1"}],
        "startTime": "2026-01-01T00:00:00Z",
        "containerStatuses": [
            {
                "name": "c1",
                "state": {"waiting": {"reason": "ContainerCreating"}},
                "lastState": {},
                "ready": False,
                "restartCount": 0,
                "image": "app:1",
                "imageID": "",
                "started": False,
            }
        ],
        "qosClass": "BestEffort",
        "resources": {},
    }


UNREADY = {"reason": "ContainersNotReady", "message": "containers with unready status: [c1]"}


@pytest.mark.row("R-150")
def test_running() -> None:
    status = codec.to_dict(generate(facts(WEB, instance())))
    assert status["phase"] == "Running"
    assert (status["podIP"], status["podIPs"]) == ("10.0.0.7", [{"ip": "10.0.0.7"}])
    assert status["containerStatuses"] == [
        {
            "name": "c1",
            "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
            "lastState": {},
            "ready": True,
            "restartCount": 0,
            "image": "docker.io/library/app:1",
            "imageID": "sha256:1",
            "containerID": "containerd://c1-0",
            "started": True,
            "resources": {},
        }
    ]
    assert [condition["status"] for condition in status["conditions"]] == ["True"] * 5


@pytest.mark.parametrize(
    ("policy", "codes", "phase"),
    [
        ("Always", [0], "Running"),
        ("Always", [1], "Running"),
        ("OnFailure", [0], "Succeeded"),
        ("OnFailure", [1], "Running"),
        ("OnFailure", [0, 1], "Running"),
        ("Never", [0], "Succeeded"),
        ("Never", [1], "Failed"),
        ("Never", [0, 1], "Failed"),
        ("Never", [0, None], "Running"),
        ("Never", [1, None], "Running"),
    ],
)
def test_phase_follows_exits_and_policy(policy: str, codes: list[int | None], phase: str) -> None:
    given = placed(pod(*(container(f"c{n}") for n in range(len(codes))), restart_policy=policy))
    seen = facts(given, *(instance(f"c{n}", code=code) for n, code in enumerate(codes)))
    assert generate(replace(seen, observed=replace(seen.observed, status=NO_BOX))).phase == phase
    lags = phase in ("Succeeded", "Failed")
    assert generate(seen).phase == ("Pending" if lags else phase), "while the sandbox comes down"
    assert generate(seen, freed=True).phase == phase


def test_success_is_said_by_conditions_first_and_by_the_phase_when_the_sidecar_ends() -> None:
    job = placed(pod(container("main"), init=(sidecar("s1"),), restart_policy="Never"))
    before = msgspec.structs.replace(job.status, phase="Running")
    ending = facts(job, instance("main", code=0), instance("s1"), previous=before)
    assert generate(ending).phase == "Running"
    assert "Ready=False(PodCompleted)" in holds(generate(ending))
    done = generate(facts(job, instance("main", code=0), instance("s1", code=0), box=NO_BOX, previous=before))
    assert done.phase == "Succeeded"
    assert holds(done) == [
        "PodReadyToStartContainers=False",
        "Initialized=True(PodCompleted)",
        "Ready=False(PodCompleted)",
        "ContainersReady=False(PodCompleted)",
        "PodScheduled=True",
    ]


def test_a_deleted_pod_ends_by_its_exit_codes() -> None:
    assert generate(facts(WEB, instance(), ended=True)).phase == "Running"
    assert generate(facts(WEB, instance(code=0), box=NO_BOX, ended=True)).phase == "Succeeded"
    assert generate(facts(WEB, instance(code=143), box=NO_BOX, ended=True)).phase == "Failed"
    never_started = generate(facts(WEB, box=None, ended=True))
    assert never_started.phase == "Failed"
    assert codec.to_dict(never_started.container_statuses[0].state) == {
        "terminated": {
            "exitCode": 137,
            "reason": "ContainerStatusUnknown",
            "startedAt": None,
            "finishedAt": None,
            "message": "The container could not be located when the pod was terminated",
        }
    }


@pytest.mark.parametrize("policy", ["Always", "Never"])
def test_a_container_of_unknown_state_is_told_so_that_it_may_start_again(policy: str) -> None:
    """Under Never the API takes no status in which a container runs that was told to have ended."""
    status = generate(
        facts(placed(pod(container("c1"), restart_policy=policy)), instance(state=ContainerState.UNKNOWN))
    )
    (told,) = status.container_statuses
    ended = told.last_state if policy == "Never" else told.state
    assert ended.terminated is not None
    assert (ended.terminated.reason, status.phase) == ("ContainerStatusUnknown", "Running")
    assert (told.state.waiting is not None) == (policy == "Never")


def test_a_terminal_phase_is_for_ever() -> None:
    over = msgspec.structs.replace(WEB.status, phase="Failed", reason="Evicted", message="why")
    status = generate(facts(WEB, instance(code=0), previous=over))
    assert (status.phase, status.reason, status.message) == ("Failed", "Evicted", "why")


def test_ended_from_outside() -> None:
    why = ("DeadlineExceeded", "Pod was active on the node longer than the specified deadline")
    late = Failure(*why)
    running = msgspec.structs.replace(WEB.status, phase="Running")
    during = generate(facts(WEB, instance(), previous=running, failure=late))
    assert (during.phase, during.reason) == ("Running", "")
    assert "Ready=False(PodFailed)" in holds(during)
    after = generate(facts(WEB, instance(code=0), box=NO_BOX, previous=running, failure=late))
    assert (after.phase, after.reason, after.message) == ("Failed", *why)


def test_a_disruption_is_told_from_the_start_and_only_once() -> None:
    failure = Failure("Preempting", "for another", disruption="another one came")
    told = PodCondition(type="DisruptionTarget", status="True", reason="older")
    pod = msgspec.structs.replace(WEB, status=msgspec.structs.replace(WEB.status, conditions=(told,)))
    during = generate(facts(pod, instance(), previous=pod.status, failure=failure))
    found = [condition for condition in during.conditions if condition.type == "DisruptionTarget"]
    assert [(condition.status, condition.reason, condition.message) for condition in found] == [
        ("True", "TerminationByKubelet", "another one came")
    ]


def test_restart_and_back_off() -> None:
    one = generate(facts(WEB, instance(code=1))).container_statuses[0]
    assert one.state.terminated is not None
    assert (one.state.terminated.reason, one.ready, one.started, one.restart_count) == ("Error", False, False, 0)
    backoff = {"c1": ContainerStateWaiting(reason="CrashLoopBackOff", message="back-off 10s")}
    waits = generate(facts(WEB, instance(code=1), waiting=backoff)).container_statuses[0]
    assert waits.state.waiting == backoff["c1"]
    assert waits.last_state.terminated == one.state.terminated
    assert waits.container_id == "containerd://c1-0"
    again = generate(facts(WEB, instance(attempt=1), instance(code=1))).container_statuses[0]
    assert again.state.running is not None
    assert again.last_state.terminated == one.state.terminated
    assert again.restart_count == 1


def test_the_last_end_is_remembered_when_the_runtime_has_forgotten_it() -> None:
    before = generate(facts(WEB, instance(code=1)))
    again = generate(facts(WEB, instance(attempt=1), previous=before))
    assert again.container_statuses[0].last_state == before.container_statuses[0].state
    third = generate(facts(WEB, instance(attempt=1), previous=again))
    assert third.container_statuses[0].last_state == before.container_statuses[0].state


def test_a_lost_container_is_reported_as_lost() -> None:
    before = generate(facts(WEB, instance()))
    lost = generate(facts(WEB, previous=before)).container_statuses[0]
    assert lost.state.waiting is not None
    assert lost.last_state.terminated is not None
    assert (lost.last_state.terminated.reason, lost.restart_count) == ("ContainerStatusUnknown", 1)


def test_initialisation() -> None:
    init = (container("i1"), container("i2"), sidecar("s1"))
    given = placed(pod(container("c1"), init=init, restart_policy="Never"))
    first = generate(facts(given, instance("i1")))
    assert first.phase == "Pending"
    assert [status.state.waiting.reason for status in first.init_container_statuses[1:] if status.state.waiting] == [
        "PodInitializing"
    ] * 2
    assert (first.init_container_statuses[0].ready, first.init_container_statuses[0].started) == (False, True)
    messages = {condition.type: condition.message for condition in first.conditions}
    assert messages["Initialized"] == "containers with incomplete status: [i1 i2 s1]"
    assert messages["Ready"] == "containers with unready status: [s1 c1]"
    through = generate(facts(given, instance("i1", code=0), instance("i2", code=0), instance("s1")))
    assert "Initialized=True" in holds(through)
    assert through.phase == "Pending"
    assert [init_status.ready for init_status in through.init_container_statuses] == [True, True, True]
    failed = facts(given, instance("i1", code=2), box=NO_BOX)
    assert generate(failed).phase == "Failed"


@pytest.mark.row("R-176")
def test_resize_conditions_come_after_foreign_ones_and_go_at_the_end() -> None:
    foreign = PodCondition(type="example.com/x", status="True")
    pending = PodCondition(type="PodResizePending", status="True", reason="Deferred", observed_generation=2)
    web = msgspec.structs.replace(WEB, status=msgspec.structs.replace(WEB.status, conditions=(foreign, pending)))
    progress = PodCondition(type="PodResizeInProgress", status="True", observed_generation=1)
    status = generate(facts(web, instance(), resize_conditions=(pending, progress)))
    assert [condition.type for condition in status.conditions[:4]] == [
        "example.com/x",
        "PodResizePending",
        "PodResizeInProgress",
        "PodReadyToStartContainers",
    ]
    assert status.conditions[1].observed_generation == 2
    over = generate(facts(web, instance(code=0), ended=True, resize_conditions=(pending, progress)))
    assert not [condition for condition in over.conditions if condition.type.startswith("PodResize")]


def test_readiness_gates() -> None:
    web = placed(pod(container("c1"), readiness_gates=(PodReadinessGate(condition_type="example.com/x"),)))
    ready = next(condition for condition in generate(facts(web, instance())).conditions if condition.type == "Ready")
    assert ready.message == 'corresponding condition of pod readiness gate "example.com/x" does not exist.'


def test_transition_times_move_with_the_status() -> None:
    first = generate(facts(WEB))
    later = generate(facts(WEB, instance(), previous=first, now=EPOCH + timedelta(minutes=1)))
    times = {condition.type: condition.last_transition_time for condition in later.conditions}
    assert times["Ready"] == "2026-01-01T00:01:00Z"
    assert times["PodScheduled"] == "2026-01-01T00:00:00Z"
    assert later.start_time == first.start_time


@pytest.mark.row("R-122")
def test_observed_generation_never_goes_back() -> None:
    seen = msgspec.structs.replace(WEB.status, observed_generation=5)
    assert generate(facts(WEB, previous=seen)).observed_generation == 5


@pytest.mark.row("R-093", "R-152")
def test_resources_follow_the_runtime_while_it_runs() -> None:
    small = needs({"cpu": "100m", "memory": "64Mi"}, {"cpu": "200m", "memory": "128Mi"})
    web = placed(pod(container("c1", {"cpu": "200m", "memory": "64Mi"}, {"cpu": "400m", "memory": "128Mi"})))
    real = LinuxResources(cpu_shares=102, cpu_quota=20_000, cpu_period=100_000, memory_limit=128 << 20)
    shown = generate(facts(web, instance(resources=real))).container_statuses[0]
    assert shown.resources == small
    assert shown.allocated_resources == web.spec.containers[0].resources.requests
    ended = generate(facts(web, instance(resources=real, code=0))).container_statuses[0]
    assert ended.resources == web.spec.containers[0].resources


def test_host_network_has_the_nodes_address_from_the_start() -> None:
    status = generate(facts(placed(pod(container("c1"), host_network=True)), box=None))
    assert status.pod_ip == "192.0.2.1"


def test_rejected() -> None:
    assert codec.to_dict(rejected(WEB, "OutOfcpu", "no room", EPOCH)) == {
        "observedGeneration": 1,
        "phase": "Failed",
        "reason": "OutOfcpu",
        "message": "Pod was rejected: no room",
        "startTime": "2026-01-01T00:00:00Z",
        "qosClass": "BestEffort",
    }
