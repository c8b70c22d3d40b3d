"""What others ask of a pod, whether it has a worker yet or not."""

from collections.abc import Mapping

from podfit.api.core.v1.pods.types import Pod, PodStatus
from podfit.api.meta.v1.types import ObjectMeta
from podfit.decide.lifecycle.facts import Failure
from podfit.kubelet.actuation.actuator import LivePod
from podfit.kubelet.pods.known_pods import KnownPods
from podfit.kubelet.pods.pod_changes import RetryAdmission
from support.clock import FakeClock

POD = Pod(metadata=ObjectMeta(name="web", namespace="default", uid="u1"))
RUNNING = PodStatus(phase="Running")


class Listener:
    """A worker that notes what it hears."""

    def __init__(self) -> None:
        self.pod, self.status, self.active = POD, RUNNING, True
        self.live: LivePod | None = None
        self.heard: list[str] = []

    def go_first(self) -> None:
        self.heard.append("go_first")

    def wake(self) -> None:
        self.heard.append("wake")

    def listed(self, states: Mapping[str, str]) -> None:
        self.heard.append(f"listed {dict(states)}")

    def preempt(self) -> None:
        self.heard.append("preempt")

    def fail(self, failure: Failure) -> None:
        self.heard.append(failure.reason)

    def shown(self, mirror: Pod | None) -> None:
        self.heard.append("shown" if mirror else "not shown")


async def test_a_worker_hears_what_is_asked_of_its_pod_alone() -> None:
    known, worker = KnownPods(), Listener()
    known.begin("u1", worker)
    for uid in ("u1", "u2"):
        known.resize(uid, "pod_updated")
        known.wake(uid)
        known.listed(uid, {"c": "running"})
        known.fail(uid, Failure("Evicted", ""))
        known.shown(uid, POD)
    assert worker.heard == ["go_first", "wake", "listed {'c': 'running'}", "Evicted", "shown"]
    assert (known.uids(), known.pods(), list(known.active())) == ({"u1"}, [POD], [POD])
    assert [pod.status for pod in known.told()] == [RUNNING], "whatever the API has"
    worker.active = False
    assert not list(known.active())
    known.end("u1")
    assert not known.uids()


async def test_a_pod_that_has_to_end_before_it_has_a_worker_ends_with_its_first() -> None:
    known, worker, next_worker = KnownPods(), Listener(), Listener()
    known.preempt("u1")
    known.begin("u1", worker)
    assert worker.heard == ["preempt"]
    known.end("u1")
    known.begin("u1", next_worker)
    assert next_worker.heard == []


async def test_a_pod_that_waits_is_tried_again_once() -> None:
    known, clock = KnownPods(), FakeClock()
    known.wake("u1")
    assert known.waiting_changes() == [], "nothing waits"
    known.hold(POD)
    known.add_again_by("u1", clock.call_later(1, lambda: known.add_again("u1")))
    known.wake_all()
    await clock.advance(2)
    assert known.waiting_changes() == [RetryAdmission("u1")], "the timer is over"
    assert known.release("u1") == POD
    known.resize("u1", "pod_updated")
    assert known.waiting_changes() == []
