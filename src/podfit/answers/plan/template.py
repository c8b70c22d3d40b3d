"""Plans a change of a workload's template to the sizes that its pods were resized to, so that a rollout keeps them.

To change a template is what begins a rollout, and a rollout replaces every pod: what a resize in place is there to
avoid. So each kind is asked first whether it comes to that.

    Deployment    no rollout, if its ReplicaSet gets the same template before the controller looks: the controller takes
                  a ReplicaSet for the newest when the templates are equal. It does not look while it is paused:
                      template and pause, in one write ─▶ ReplicaSet ─▶ both compared ─▶ resume
    StatefulSet   no rollout, if its pods get the label of the new revision while the controller replaces none:
    DaemonSet         template and hold, in one write ─▶ revision ─▶ labels ─▶ release
                  a rollout, while another one is under way, or nobody has seen it
    ReplicaSet, ReplicationController    none ever; but one that is owned is its owner's business
    Job           its template cannot be changed
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from podfit.answers.facts.commands import HERE, Commands
from podfit.answers.facts.target import WORKLOADS, Target, query_of
from podfit.answers.plan.amounts import RequestError
from podfit.answers.plan.changes import Change, ResourceChange, changes, resizing
from podfit.answers.plan.resize_request import BEFORE, ResizeRequest, apply_to_template
from podfit.api.apps.v1.daemonsets import DaemonSet
from podfit.api.apps.v1.deployments import Deployment, ReplicaSet
from podfit.api.apps.v1.statefulsets import StatefulSet
from podfit.api.batch.v1.types import Job
from podfit.api.core.v1.pods.templates import PodTemplateSpec
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta import codec
from podfit.api.meta.owners import ObjectIdentity, controller_named, group_of, is_controlled_by
from podfit.api.meta.v1.types import ObjectMeta
from podfit.client.rest import Client
from podfit.core.errors import ApiError
from podfit.decide.workload import kinds
from podfit.decide.workload.daemon.steps import replaces
from podfit.decide.workload.deployment.revisions import sorted_out
from podfit.decide.workload.deployment.status import is_replaced
from podfit.decide.workload.in_place import hold
from podfit.decide.workload.stateful import identity
from podfit.decide.workload.stateful.steps import replaced_from

Document = Mapping[str, Any]
HASH = "pod-template-hash"
STORED, ROLLS_OUT, REFUSED, UNCHANGED = "stored", "rolls out", "refused", "unchanged"
REPLICA_SETS = next(kind for kind in WORKLOADS if kind.kind == "ReplicaSet")


class TemplatePlan(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`text` says how a rollout is avoided, what one would do, or why the template cannot be changed."""

    target: str
    verdict: str
    text: str = ""
    changes: tuple[Change, ...] = ()
    sizes: tuple[ResourceChange, ...] = ()
    fix: str = ""

    @property
    def good(self) -> bool:
        """Whether it can be done without a rollout."""
        return self.verdict in (STORED, UNCHANGED)


TYPES = {known.kind: known.type for known in kinds.WORKLOADS}


class WorkloadTemplate(msgspec.Struct, frozen=True):
    """A workload as the API has it. `replica_sets` are a Deployment's; `problem` says why they were not read. `alike`
    are the names of those that have its template to the letter: a newer server may know more of it than podfit's types.
    """

    target: Target
    owner: Any
    replica_sets: tuple[ReplicaSet, ...] = ()
    alike: frozenset[str] = frozenset()
    problem: str = ""

    @property
    def template(self) -> Pod:
        """The pod that it makes, with the notes of the workload itself, which know what it was before."""
        template = self.owner.spec.template or PodTemplateSpec()
        meta = ObjectMeta(name=self.target.name, annotations=self.owner.metadata.annotations)
        return Pod(metadata=meta, spec=template.spec)

    @property
    def relabels(self) -> bool:
        """Whether its pods stay by the label of the new revision, which its controller would replace otherwise."""
        owner = self.owner
        return isinstance(owner, StatefulSet | DaemonSet) and hold.replaces_any(owner)

    @property
    def current(self) -> ReplicaSet | None:
        """The ReplicaSet that a Deployment's controller takes for the newest."""
        if not isinstance(self.owner, Deployment):
            return None
        return sorted_out(
            self.owner, [replica_set for replica_set in self.replica_sets if replica_set.metadata.name in self.alike]
        ).new

    def another_with(self, template: Pod) -> ReplicaSet | None:
        """What the controller takes for the newest, if not the current one, once that has this template, too."""
        current = self.current
        if current is None:
            return None
        changed, same = _with(self.owner, template), _with(current, template)
        sets = [
            same if replica_set.metadata.name == current.metadata.name else replica_set
            for replica_set in self.replica_sets
        ]
        newest = sorted_out(changed, sets).new
        return newest if newest is not None and newest.metadata.name != current.metadata.name else None


def _with(owner: Any, template: Pod) -> Any:
    return replace(owner, spec=replace(owner.spec, template=replace(owner.spec.template, spec=template.spec)))


async def read_workload(client: Client, target: Target, namespace: str) -> WorkloadTemplate:
    document = msgspec.json.decode(await client.request("GET", target.path(namespace)))
    owner = codec.convert(document, TYPES[target.kind.kind])
    if target.kind.kind != "Deployment":
        return WorkloadTemplate(target, owner)
    try:
        path = f"{REPLICA_SETS.path}/namespaces/{namespace}/{REPLICA_SETS.resource}"
        body = await client.request("GET", path, query={"labelSelector": query_of(document["spec"].get("selector"))})
    except ApiError as error:
        return WorkloadTemplate(target, owner, problem=error.message)
    identity = ObjectIdentity(
        group_of(target.kind.api_version), target.kind.kind, namespace, owner.metadata.name, owner.metadata.uid
    )
    mine, sets, alike = bare(document["spec"]["template"]), list[ReplicaSet](), set[str]()
    for item in msgspec.json.decode(body).get("items") or ():
        replica_set = codec.convert(item, ReplicaSet)
        if is_controlled_by(replica_set.metadata, identity):
            sets.append(replica_set)
            alike |= {replica_set.metadata.name} if bare(item["spec"]["template"]) == mine else set()
    return WorkloadTemplate(target, owner, tuple(sets), frozenset(alike))


def template_plan(workload: WorkloadTemplate, request: ResizeRequest, commands: Commands = HERE) -> TemplatePlan:
    """What a change of the template would bring about; nothing is written."""
    target, old = workload.target, workload.template
    if request.undo and BEFORE not in old.metadata.annotations:
        return TemplatePlan(target=str(target), verdict=UNCHANGED, text="podfit has not changed it")
    try:
        new = apply_to_template(request, old)
    except RequestError as error:
        return TemplatePlan(target=str(target), verdict=REFUSED, text=f"its template: {error}")
    changed = tuple(changes(new, old))
    if not changed:
        return TemplatePlan(target=str(target), verdict=UNCHANGED)
    verdict, text, fix = _consequence(workload, new, commands)
    return TemplatePlan(
        target=str(target), verdict=verdict, text=text, changes=changed, fix=fix, sizes=tuple(resizing(new, old))
    )


def _consequence(workload: WorkloadTemplate, new: Pod, commands: Commands) -> tuple[str, str, str]:
    """The consequence by what each controller does with pods of an old template (`decide.workload`)."""
    target, owner = workload.target, workload.owner
    match owner:
        case Deployment():
            return _of_a_deployment(workload, owner, new, commands)
        case StatefulSet():
            return _of_a_stateful_set(owner, target, commands)
        case DaemonSet() if not replaces(owner):
            return STORED, f"no rollout: its update strategy is {owner.spec.update_strategy.type}", ""
        case DaemonSet() if hold.is_at_rest(owner):
            return STORED, "no rollout: its pods get the labels of the new template (OnDelete for that moment)", ""
        case DaemonSet():
            fix = _patch(commands, target, '{"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}}')
            return ROLLS_OUT, "a rollout replaces every pod; it waits with updateStrategy OnDelete", fix
        case Job():
            return REFUSED, "the template of a Job cannot be changed", ""
    above = controller_named(owner.metadata)
    if above is not None:
        known = next((kind.shown for kind in WORKLOADS if kind.names_a(above)), above.kind.lower())
        return REFUSED, f"its template is managed by {known}/{above.name}: resize that instead", ""
    return STORED, f"no rollout: a {target.kind.kind} never replaces pods", ""


def _of_a_deployment(
    workload: WorkloadTemplate, owner: Deployment, new: Pod, commands: Commands
) -> tuple[str, str, str]:
    seen, newest, paused = owner.status.observed_generation, owner.metadata.generation, bool(owner.spec.paused)
    if not paused and not is_replaced(owner, owner.status):
        watch = commands.kubectl("rollout", "status", str(workload.target))
        if not seen:
            return REFUSED, "no controller has seen this Deployment yet, so none would follow its template", watch
        if seen < newest:
            text = f"its controller has seen generation {seen} of {newest}: a rollout may be about to begin"
            return REFUSED, text, watch
        return REFUSED, "a rollout is under way", watch
    current = workload.current
    if current is None:
        why = f": {workload.problem}" if workload.problem else ""
        return ROLLS_OUT, f"a rollout replaces every pod, as the ReplicaSet behind it is not known{why}", ""
    if (other := workload.another_with(new)) is not None:
        text = f"replicaset/{other.metadata.name}, which is older, has this template already"
        return ROLLS_OUT, f"a rollout replaces every pod: {text}", ""
    after = "it stays paused" if paused else "paused for that moment"
    return STORED, f"no rollout: replicaset/{current.metadata.name} gets the same template ({after})", ""


def _of_a_stateful_set(owner: StatefulSet, target: Target, commands: Commands) -> tuple[str, str, str]:
    begin, first, size = replaced_from(owner), identity.first(owner), identity.size(owner)
    if begin is None:
        return STORED, f"no rollout: its update strategy is {owner.spec.update_strategy.type}", ""
    if begin >= first + size:
        return STORED, f"no rollout: partition {begin - first} holds all pods back", ""
    if hold.is_at_rest(owner):
        text = f"no rollout: its pods get the label of the new revision (partition {size} for that moment)"
        return STORED, text, ""
    held = f'{{"spec":{{"updateStrategy":{{"rollingUpdate":{{"partition":{size}}}}}}}}}'
    fix = _patch(commands, target, held)
    whom = "every pod" if begin <= first else f"the pods from ordinal {begin} on"
    return ROLLS_OUT, f"a rollout replaces {whom}; a partition above all pods holds it back", fix


def _patch(commands: Commands, target: Target, patch: str) -> str:
    return commands.kubectl("patch", str(target), "--type", "merge", "-p", patch)


def bare(template: Document) -> Any:
    """Without the hash that a controller adds, and without nulls."""
    plain = _plain(template)
    labels = (plain.get("metadata") or {}).get("labels") or {}
    labels.pop(HASH, None)
    return plain


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value
