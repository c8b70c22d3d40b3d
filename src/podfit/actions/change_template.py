"""Carries out a `template` plan: patches the workload's template. Beside `resize_pods` the only module here that
writes.

A Deployment is left as it was found when anything goes wrong on the way: the template goes back, and so does the pause.
"""

import asyncio
from typing import Any

from podfit.actions.relabel import NotRelabelled, change_template
from podfit.actions.resize_pods import Options, Outcome, difference
from podfit.answers.facts.commands import Commands
from podfit.answers.facts.target import Target
from podfit.answers.plan.resize_request import BEFORE, ResizeRequest, apply_to_template, remembered
from podfit.answers.plan.template import (
    REFUSED,
    REPLICA_SETS,
    ROLLS_OUT,
    STORED,
    UNCHANGED,
    TemplatePlan,
    WorkloadTemplate,
    read_workload,
    template_plan,
)
from podfit.api.core.v1.pods.aggregate import all_containers
from podfit.api.core.v1.pods.containers import ResourceRequirements
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta import codec
from podfit.client.rest import STRATEGIC_PATCH, Client
from podfit.core.errors import ApiError

Patch = dict[str, Any]
ATTEMPTS, CONFLICT = 5, 409
"""A Deployment's status changes with its pods, and each change makes it another version."""


async def dry_run_template(client: Client, workload: WorkloadTemplate, request: ResizeRequest, namespace: str) -> str:
    """What the API server has against the change, rights and webhooks included; nothing is stored. Empty: nothing."""
    try:
        await _send(client, workload.target, namespace, _template(workload, request), dry_run=True)
        if current := _current_replica_set(workload):
            await _send(client, current, namespace, _sizes(workload, request), dry_run=True)
    except ApiError as error:
        return error.message
    return ""


async def retemplate(
    client: Client,
    workload: WorkloadTemplate,
    request: ResizeRequest,
    plan: TemplatePlan,
    namespace: str,
    options: Options,
) -> Outcome:
    """Raises ConnectionError when the server goes away before anything was written. The workload is read again, for its
    pods took their time.
    """
    name = plan.target
    if plan.verdict == UNCHANGED:
        return Outcome(pod=name, state="unchanged")
    if plan.verdict == REFUSED or (plan.verdict == ROLLS_OUT and not options.disrupt):
        return Outcome(pod=name, state="refused", text=plan.text)
    if options.dry_run:
        problem = await dry_run_template(client, workload, request, namespace)
        return Outcome(pod=name, state="refused" if problem else "accepted", text=problem)
    conflict = ""
    for _ in range(ATTEMPTS):
        try:
            now = await read_workload(client, workload.target, namespace)
            again = template_plan(now, request, options.commands)
            if again != plan:
                return Outcome(
                    pod=name, state="refused", text=f"it was changed meanwhile: {again.text or again.verdict}"
                )
            return await _stored(client, now, request, plan, namespace, options)
        except ApiError as error:
            conflict = error.message
            if error.code != CONFLICT:
                break
    return Outcome(pod=name, state="refused", text=conflict)


async def _stored(
    client: Client,
    workload: WorkloadTemplate,
    request: ResizeRequest,
    plan: TemplatePlan,
    namespace: str,
    options: Options,
) -> Outcome:
    """Raises ApiError when nothing was changed."""
    if plan.verdict == STORED and (replica_set := _current_replica_set(workload)):
        return await _with_replica_set(client, workload, replica_set, request, namespace, options.commands)
    if plan.verdict == STORED and workload.relabels:
        return await _with_labels(client, workload, request, options)
    await _send(client, workload.target, namespace, _template(workload, request))
    return Outcome(pod=plan.target, state="done", text=plan.text)


async def _with_labels(client: Client, workload: WorkloadTemplate, request: ResizeRequest, options: Options) -> Outcome:
    """A StatefulSet or DaemonSet, whose pods stay as what they are by the label of the new revision."""
    name = str(workload.target)
    try:
        patch = _template(workload, request)
        stay = await change_template(client, workload.owner, patch, timeout=options.timeout)
    except NotRelabelled as error:
        undo = f"{options.commands.podfit('resize', name, '--undo', '--also-template')}"
        text = f"the template has the sizes, but {name} is left held, so that no pod is replaced ({error}): {undo}"
        return Outcome(pod=name, state="failed", text=text)
    return Outcome(pod=name, state="done", text=f"no rollout: {stay} {'pod stays' if stay == 1 else 'pods stay'}")


def _current_replica_set(workload: WorkloadTemplate) -> Target | None:
    current = workload.current
    return Target(REPLICA_SETS, current.metadata.name) if current is not None else None


async def _with_replica_set(
    client: Client,
    workload: WorkloadTemplate,
    replica_set: Target,
    request: ResizeRequest,
    namespace: str,
    commands: Commands,
) -> Outcome:
    """A Deployment, and the ReplicaSet that is to go on being its newest. The controller does not look meanwhile."""
    target, name = workload.target, str(workload.target)
    resume = commands.kubectl("rollout", "resume", name)
    first = _template(workload, request)
    first["spec"]["paused"] = True
    first["metadata"]["resourceVersion"] = workload.owner.metadata.resource_version
    await _send(client, target, namespace, first)
    try:
        await _send(client, replica_set, namespace, _sizes(workload, request))
        problem = await _differs(client, target, replica_set, namespace)
    except (ApiError, ConnectionError) as error:
        problem = _why(error)
    except asyncio.CancelledError:  # Ctrl-C
        await _back(client, workload, replica_set, namespace, resume, "it was interrupted")
        raise
    if problem:
        return await _back(client, workload, replica_set, namespace, resume, problem)
    if workload.owner.spec.paused:
        return Outcome(pod=name, state="done", text="no rollout; it is paused, as it was")
    try:
        await _send(client, target, namespace, {"spec": {"paused": None}})
    except (ApiError, ConnectionError) as error:
        text = f"the template has the sizes, but {name} is left paused ({_why(error)}): {resume}"
        return Outcome(pod=name, state="failed", text=text)
    return Outcome(pod=name, state="done", text="no rollout")


async def _differs(client: Client, target: Target, replica_set: Target, namespace: str) -> str:
    """Webhooks may have made something else of either, and then a rollout would begin."""
    now = await read_workload(client, target, namespace)
    if _current_replica_set(now) == replica_set:
        return ""
    return f"{target} and {replica_set} were not stored with the same template, so a rollout would begin"


async def _back(
    client: Client, workload: WorkloadTemplate, replica_set: Target, namespace: str, resume: str, problem: str
) -> Outcome:
    name = str(workload.target)
    annotations = {BEFORE: workload.owner.metadata.annotations.get(BEFORE)}
    before: Patch = {"spec": {"template": _whole(workload)}}
    try:
        await _send(client, replica_set, namespace, before)
        restored: Patch = {
            "metadata": {"annotations": annotations},
            "spec": {**before["spec"], "paused": workload.owner.spec.paused or None},
        }
        await _send(client, workload.target, namespace, restored)
    except (ApiError, ConnectionError) as error:
        fix = f"it is left paused, look at it and then: {resume}"
        return Outcome(pod=name, state="failed", text=f"{problem}; going back failed too ({_why(error)}); {fix}")
    return Outcome(pod=name, state="refused", text=f"{problem}; the template is as it was")


def _why(error: ApiError | ConnectionError) -> str:
    return error.message if isinstance(error, ApiError) else str(error)


def _template(workload: WorkloadTemplate, request: ResizeRequest) -> Patch:
    """The sizes, and the note of what was before, on the workload itself; on the template it would begin a rollout."""
    old = workload.template
    note: str | None = old.metadata.annotations.get(BEFORE, remembered(old))
    return {"metadata": {"annotations": {BEFORE: None if request.undo else note}}, **_sizes(workload, request)}


def _sizes(workload: WorkloadTemplate, request: ResizeRequest) -> Patch:
    return {"spec": {"template": _exactly(apply_to_template(request, workload.template), workload.template)}}


def _exactly(wanted: Pod, stored: Pod) -> Patch:
    """As a strategic merge adds to what is there, amounts that are to go are said to."""
    patch = difference(wanted, stored)
    old = {container.name: container.resources for container in all_containers(stored.spec)}
    for field in ("initContainers", "containers"):
        for changed in patch["spec"].get(field, ()):
            _clear(changed["resources"], codec.to_dict(old[changed["name"]]))
    if "resources" in patch["spec"] and stored.spec.resources is not None:
        _clear(patch["spec"]["resources"], codec.to_dict(stored.spec.resources))
    return patch


def _clear(resources: Patch, before: Patch) -> None:
    for side in ("requests", "limits"):
        gone = before.get(side, {}).keys() - resources.get(side, {}).keys()
        if gone:
            resources.setdefault(side, {}).update(dict.fromkeys(gone))


def _whole(workload: WorkloadTemplate) -> Patch:
    """Every size of the template as it was found."""
    spec = workload.template.spec
    found: Patch = {}
    for wire, containers in (("initContainers", spec.init_containers), ("containers", spec.containers)):
        if containers:
            found[wire] = [
                {"name": container.name, "resources": _replaced(container.resources)} for container in containers
            ]
    return {"spec": found | ({"resources": _replaced(spec.resources)} if spec.resources else {})}


def _replaced(resources: ResourceRequirements) -> Patch:
    return {"$patch": "replace", **codec.to_dict(resources)}


async def _send(client: Client, target: Target, namespace: str, patch: Patch, *, dry_run: bool = False) -> None:
    query = {"fieldManager": "podfit", **({"dryRun": "All"} if dry_run else {})}
    await client.request(
        "PATCH", target.path(namespace), codec.encode(patch), query=query, content_type=STRATEGIC_PATCH
    )
