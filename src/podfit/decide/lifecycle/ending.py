"""The end of a pod's life: its containers are stopped, then what was made for it is removed.

    stop containers       by the grace period; the room is free from here on, before the API knows
    stop sandboxes        then the final status: Succeeded or Failed
    volumes and cgroup    gone
    remove sandboxes      with containers and logs, once the object is deleted or being deleted
    delete the object     with grace 0 and its uid: the API was waiting for this

Each effect can be repeated, so an end that was interrupted begins again from the top.
"""

from msgspec.structs import replace

from podfit.decide.lifecycle import effects as do
from podfit.decide.lifecycle.life import At, PodLife, Stage, Step
from podfit.decide.lifecycle.termination import grace_of, stop_all


def finish(life: PodLife) -> Step:
    """The next part of the end. Ended containers stay in the runtime until the object goes, for logs and exit codes."""
    if life.stage is Stage.LIVING:
        return life.in_turn(at=At.ENDING), (do.Look(),)
    deleted = life.gone or life.pod.metadata.deletion_timestamp is not None
    if life.stage is Stage.STOPPED and deleted:
        return life.in_turn(at=At.DELETING), (do.Look(probes=False),)
    return replace(life, failures=0), (do.WakeUp(),)


def stop(life: PodLife) -> Step:
    stops = stop_all(life.pod, life.turn.facts, grace_of(life.pod, life.failure, gone=life.gone))
    return life, (stops, do.ForgetProbes(), do.Continue())


def stop_sandboxes(life: PodLife) -> Step:
    return life, (do.StopSandboxes(_sandboxes(life)), do.Continue())


def clean(life: PodLife) -> Step:
    return life, (do.RemoveVolumes(), do.RemoveCgroup(), do.Continue())


def delete(life: PodLife) -> Step:
    sandboxes = _sandboxes(life)
    removed = (do.StopSandboxes(sandboxes), do.RemoveSandboxes(sandboxes), do.ForgetFiles())
    if life.gone:
        return life, (*removed, do.Continue())
    return life, (do.AwaitWritten(), *removed, do.DeleteObject(), do.Continue())


def carried_out(life: PodLife) -> Step:
    match life.turn.at:
        case At.ENDING:
            return life.in_turn(at=At.FREED), (do.Look(probes=False),)
        case At.FREED:
            return life.in_turn(at=At.CLEANING), (do.Look(probes=False),)
        case At.CLEANING:
            return finish(replace(life, stage=Stage.STOPPED))
        case At.DELETING:
            return finish(replace(life, stage=Stage.DELETED))
    raise AssertionError(f"nothing without an answer is done while {life.turn.at.value}")


def _sandboxes(life: PodLife) -> tuple[str, ...]:
    return tuple(sandbox.id for sandbox in life.turn.facts.sandboxes)
