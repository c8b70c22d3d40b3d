"""Changes the template of a StatefulSet or DaemonSet without a rollout, under whichever controllers: its pods get the
label of the new revision (`decide.workload.in_place.hold` says why that is enough).

    template and hold, in one write ─▶ its controller makes the revision ─▶ pods are relabelled ─▶ release

What is interrupted leaves the workload held: nothing is replaced, and the message says how it is released.
"""

from contextlib import aclosing
from typing import Any

from podfit.answers.facts.target import query_of
from podfit.api.apps.v1.daemonsets import ControllerRevision
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import to_dict
from podfit.api.meta.owners import identity_of, is_controlled_by
from podfit.client.rest import Client
from podfit.core.errors import ApiError
from podfit.decide.workload.history import HASH
from podfit.decide.workload.in_place import hold
from podfit.decide.workload.in_place.hold import Labelled, Patch

ATTEMPTS, CONFLICT, GONE = 5, 409, 404
MANAGER = "podfit"


class NotRelabelled(Exception):
    """It is held, and not all of its pods have the label of its new template; the text says why."""


async def change_template(client: Client, owner: Labelled, template: Patch, *, timeout: float = 60.0) -> int:
    """How many pods stay, which without that would have been replaced.

    `owner` is as it was read, before the change; `template` a strategic merge patch of the workload, which is sent
    together with the hold. Raises ApiError when nothing was changed, NotRelabelled when it is left held.
    """
    kind = _kind(owner)
    meta, current = owner.metadata, hold.labels_of(owner, await _revisions(client, owner))
    before = {current[HASH]} if current is not None else set()
    if hold.is_held(owner):  # by somebody who came no further
        before |= {pod.metadata.labels.get(HASH, "") for pod in await pods_of(client, owner)}
    change = _together(template, hold.held(owner), {"metadata": {"resourceVersion": meta.resource_version}})
    changed = await client.patch(kind, meta.name, meta.namespace, change, field_manager=MANAGER)
    try:
        labels = await _new_labels(client, changed, timeout)
        stay = hold.staying(owner, await pods_of(client, changed), before)
        for pod in stay:
            await relabel(client, pod, labels)
        await release(client, changed)
    except (ApiError, ConnectionError) as error:
        raise NotRelabelled(error.message if isinstance(error, ApiError) else str(error)) from error
    return len(stay)


async def relabel(client: Client, pod: Pod, labels: dict[str, str]) -> None:
    """One that has gone meanwhile needs none. Raises ApiError."""
    meta = pod.metadata
    patch = {"metadata": {"uid": meta.uid, "labels": labels}}
    try:
        await client.patch(Pod, meta.name, meta.namespace, patch, field_manager=MANAGER)
    except ApiError as error:
        if error.code not in (GONE, CONFLICT):  # another pod has its name
            raise


async def release(client: Client, owner: Labelled) -> None:
    """Give it back the update strategy that it had. Raises ApiError."""
    meta, kind = owner.metadata, _kind(owner)
    await client.patch(kind, meta.name, meta.namespace, hold.released(owner), field_manager=MANAGER)


async def pods_of(client: Client, owner: Labelled) -> list[Pod]:
    query = query_of(to_dict(owner.spec.selector) if owner.spec.selector is not None else None)
    found = (await client.list(Pod, owner.metadata.namespace, labels=query)).items
    return [pod for pod in found if is_controlled_by(pod.metadata, identity_of(owner))]


async def _revisions(client: Client, owner: Labelled) -> list[ControllerRevision]:
    found = (await client.list(ControllerRevision, owner.metadata.namespace)).items
    return [one for one in found if is_controlled_by(one.metadata, identity_of(owner))]


async def _new_labels(client: Client, owner: Labelled, timeout: float) -> dict[str, str]:
    """The labels of the present template, once its controller has seen it. Raises NotRelabelled when it does not in
    time."""
    meta = owner.metadata
    seconds = max(1, round(timeout))
    events = client.watch(
        _kind(owner),
        meta.namespace,
        resource_version=meta.resource_version,
        fields=f"metadata.name={meta.name}",
        timeout=seconds,
    )
    async with aclosing(events):
        async for event in events:
            if event.type == "DELETED":
                raise NotRelabelled("it was deleted")
            if event.type == "BOOKMARK" or event.object.status.observed_generation < meta.generation:
                continue
            labels = hold.labels_of(event.object, await _revisions(client, event.object))
            if labels is not None:
                return labels
    raise NotRelabelled(f"no controller has looked at it in {seconds} s")


def _kind(owner: Labelled) -> type[Any]:
    return type(owner)


def _together(*patches: Patch) -> Patch:
    """One patch of several that change different things."""
    whole: Patch = {}
    for patch in patches:
        for key, value in patch.items():
            both: Any = isinstance(value, dict) and isinstance(whole.get(key), dict)
            whole[key] = _together(whole[key], value) if both else value
    return whole
