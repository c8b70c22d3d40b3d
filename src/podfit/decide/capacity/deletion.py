"""The removal of a node, as a generator: it yields actions and is sent what came of them (C-060 to C-064, C-096).

taint and cordon ─▶ pause ─▶ evict each pod, again and again ─▶ wait for their end ─▶ the provider deletes the machine
                                                 └─ in vain: the taint goes, and so does the removal
"""

from collections.abc import Generator, Sequence
from typing import TypeAlias

import msgspec

from podfit.api.core.v1.pods.types import Pod
from podfit.decide.capacity.drain import LONG_TERMINATING
from podfit.decide.capacity.look import NORMAL, WARNING, RemoveNode, Say
from podfit.decide.capacity.settings import DrainSettings
from podfit.decide.lifecycle.termination import spec_grace

RETRY = 10.0
"""Seconds from one try of an eviction to the next."""
LOOK_AGAIN = 5.0
DS_EVICTION = "cluster-autoscaler.kubernetes.io/enable-ds-eviction"


class Taint(msgspec.Struct, frozen=True):
    """Put ToBeDeleted on the node, or take it off; with `cordon` the node is cordoned, or no more."""

    on: bool
    cordon: bool


class Wait(msgspec.Struct, frozen=True):
    seconds: float


class EvictPod(msgspec.Struct, frozen=True):
    pod: Pod
    grace: float


class LookForPods(msgspec.Struct, frozen=True):
    """The answer names in its error those of these that are still there."""

    pods: tuple[Pod, ...]


class DeleteMachine(msgspec.Struct, frozen=True):
    """The provider deletes it; the Node goes too."""


Action: TypeAlias = Taint | Wait | EvictPod | LookForPods | DeleteMachine | Say
Outcome: TypeAlias = str
"""Empty when it is done, else what was in the way."""
Removal: TypeAlias = Generator[Action, Outcome, Outcome]


def remove(job: RemoveNode, settings: DrainSettings) -> Removal:
    """Returns why the node is still there; empty when it is gone."""
    node = job.node
    error = yield Taint(on=True, cordon=settings.cordon)
    if error:
        yield Say(node, WARNING, "ScaleDownFailed", f"failed to mark the node as toBeDeleted/unschedulable: {error}")
        return error
    yield Say(node, NORMAL, "ScaleDown", "marked the node as toBeDeleted/unschedulable")
    yield _begins(job)
    yield Wait(settings.after_taint)
    error = yield from _emptied(job, settings)
    if not error:
        error = yield DeleteMachine()
    if error:
        verb = "drain and delete" if job.move else "delete empty"
        yield Say(node, WARNING, "ScaleDownFailed", f"failed to {verb} node: {error}")
        yield Taint(on=False, cordon=settings.cordon)
        return error
    yield Say(node, NORMAL, "ScaleDown", "nodes removed by cluster autoscaler")
    name = node.metadata.name
    if job.move:
        yield Say(None, NORMAL, "ScaleDown", f"Scale-down: node {name} removed with drain")
    else:
        yield Say(None, NORMAL, "ScaleDownEmpty", f"Scale-down: empty node {name} removed")
    return ""


def _begins(job: RemoveNode) -> Say:
    name = job.node.metadata.name
    if not job.move:
        return Say(None, NORMAL, "ScaleDownEmpty", f'Scale-down: removing empty node "{name}"')
    pods = ",".join(pod.metadata.name for pod in job.move)
    text = f"Scale-down: removing node {name}, utilization: {job.utilization:.3f}, pods to reschedule: {pods}"
    return Say(None, NORMAL, "ScaleDown", text)


def _emptied(job: RemoveNode, settings: DrainSettings) -> Removal:
    usual = settings.daemons_of_occupied if job.move else settings.daemons_of_empty
    daemons = [pod for pod in job.daemon_set if _evicts_daemon(pod, usual=usual)]
    left, passed, refused = list(job.move), 0.0, dict[str, str]()
    while left:
        refused = {}
        for pod in left:
            error = yield EvictPod(pod, _grace(pod, settings))
            if error:
                refused[pod.metadata.uid] = error
            else:
                yield Say(pod, NORMAL, "ScaleDown", "deleting pod for node scale down")
        left = [pod for pod in left if pod.metadata.uid in refused]
        if not left or passed + RETRY > settings.eviction_time:
            break
        passed += RETRY
        yield Wait(RETRY)
    for pod in left:
        yield Say(pod, WARNING, "ScaleDownFailed", "failed to delete pod for ScaleDown")
    if left:
        return f"failed to evict pod {_name(left[0])}: {refused[left[0].metadata.uid]}"
    for pod in daemons:  # their controller makes them anew elsewhere or not at all; nobody waits for them
        yield EvictPod(pod, _grace(pod, settings))
    return (yield from _gone(job.move, settings))


def _gone(pods: Sequence[Pod], settings: DrainSettings) -> Removal:
    """Their grace and 30 seconds more."""
    if not pods:
        return ""
    until, passed = max(_grace(pod, settings) for pod in pods) + LONG_TERMINATING, 0.0
    while True:
        there = yield LookForPods(tuple(pods))
        if not there:
            return ""
        if passed >= until:
            return f"pods remaining after timeout: {there}"
        passed += LOOK_AGAIN
        yield Wait(LOOK_AGAIN)


def _grace(pod: Pod, settings: DrainSettings) -> float:
    return min(spec_grace(pod), settings.most_grace)


def _evicts_daemon(pod: Pod, *, usual: bool) -> bool:
    said = pod.metadata.annotations.get(DS_EVICTION)
    return usual if said not in ("true", "false") else said == "true"


def _name(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"
