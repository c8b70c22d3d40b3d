"""Plans a change of a workload's template to the sizes that its pods were resized to, so that a rollout keeps them.

To change a template is what begins a rollout, and a rollout replaces every pod: what a resize in place is there to
avoid. So each kind is asked first whether it comes to that.

    Deployment    no rollout, if its ReplicaSet gets the same template before the controller looks: the controller takes
                  a ReplicaSet for the newest when the templates are equal. It does not look while it is paused:
                      template and pause, in one write ─▶ ReplicaSet ─▶ both compared ─▶ resume
    StatefulSet   a rollout, unless OnDelete or a partition above all pods holds it back
    DaemonSet     a rollout, unless OnDelete
    ReplicaSet, ReplicationController    none ever; but one that is owned is its owner's business
    Job           its template cannot be changed
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from podfit.answers.facts.commands import HERE, Commands
from podfit.answers.facts.target import WORKLOADS, Target, query_of
from podfit.answers.plan.effects import Change, ResourceChange, changes, resizing
from podfit.answers.plan.resize_request import BEFORE, RequestError, ResizeRequest, apply_to_template
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta import codec
from podfit.api.meta.owners import ObjectIdentity, controller_named, group_of, is_controlled_by
from podfit.api.meta.v1.types import ObjectMeta
from podfit.client.rest import Client
from podfit.core.errors import ApiError

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


class Workload(msgspec.Struct, frozen=True):
    """As the API has it. `replica_sets` are a Deployment's; `problem` says why they were not read."""

    target: Target
    document: Document
    replica_sets: tuple[Document, ...] = ()
    problem: str = ""

    @property
    def template(self) -> Pod:
        """The pod that it makes, with the notes of the workload itself, which know what it was before."""
        annotations = self.document["metadata"].get("annotations") or {}
        spec = codec.convert({"spec": self.document["spec"]["template"].get("spec") or {}}, Pod).spec
        return Pod(metadata=ObjectMeta(name=self.target.name, annotations=annotations), spec=spec)

    @property
    def current(self) -> Document | None:
        """The ReplicaSet that a Deployment's controller takes for the newest: the oldest of those with its template."""
        mine = bare(self.document["spec"]["template"])
        same = [replica_set for replica_set in self.replica_sets if bare(replica_set["spec"]["template"]) == mine]
        return min(
            same, key=lambda replica_set: str(replica_set["metadata"].get("creationTimestamp", "")), default=None
        )


async def read_workload(client: Client, target: Target, namespace: str) -> Workload:
    document = msgspec.json.decode(await client.request("GET", target.path(namespace)))
    if target.kind.kind != "Deployment":
        return Workload(target, document)
    try:
        path = f"{REPLICA_SETS.path}/namespaces/{namespace}/{REPLICA_SETS.resource}"
        body = await client.request("GET", path, query={"labelSelector": query_of(document["spec"].get("selector"))})
    except ApiError as error:
        return Workload(target, document, problem=error.message)
    meta = codec.convert(document["metadata"], ObjectMeta)
    owner = ObjectIdentity(group_of(target.kind.api_version), target.kind.kind, namespace, meta.name, meta.uid)
    items = msgspec.json.decode(body).get("items") or ()
    return Workload(target, document, tuple(item for item in items if is_controlled_by(_meta(item), owner)))


def template_plan(workload: Workload, request: ResizeRequest, commands: Commands = HERE) -> TemplatePlan:
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
    verdict, text, fix = _consequence(workload, commands)
    return TemplatePlan(
        target=str(target), verdict=verdict, text=text, changes=changed, fix=fix, sizes=tuple(resizing(new, old))
    )


def _consequence(workload: Workload, commands: Commands) -> tuple[str, str, str]:
    spec, target = workload.document["spec"], workload.target
    strategy = spec.get("updateStrategy") or {}
    match target.kind.kind:
        case "Deployment":
            return _of_a_deployment(workload, commands)
        case "StatefulSet" | "DaemonSet" if strategy.get("type") == "OnDelete":
            return STORED, "no rollout: its update strategy is OnDelete", ""
        case "StatefulSet":
            return _of_a_stateful_set(spec, target, commands)
        case "DaemonSet":
            fix = _patch(commands, target, '{"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}}')
            return ROLLS_OUT, "a rollout replaces every pod; it waits with updateStrategy OnDelete", fix
        case "Job":
            return REFUSED, "the template of a Job cannot be changed", ""
        case _:
            owner = controller_named(_meta(workload.document))
            if owner is not None:
                known = next((kind.shown for kind in WORKLOADS if kind.names_a(owner)), owner.kind.lower())
                return REFUSED, f"its template is managed by {known}/{owner.name}: resize that instead", ""
            return STORED, f"no rollout: a {target.kind.kind} never replaces pods", ""


def _of_a_deployment(workload: Workload, commands: Commands) -> tuple[str, str, str]:
    spec, status = workload.document["spec"], workload.document.get("status") or {}
    wanted = spec.get("replicas", 1)
    seen, newest = status.get("observedGeneration") or 0, workload.document["metadata"].get("generation", 0)
    settled = seen >= newest and status.get("updatedReplicas", 0) == wanted == status.get("replicas", 0)
    if not settled and not spec.get("paused"):
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
    name = current["metadata"]["name"]
    after = "it stays paused" if spec.get("paused") else "paused for that moment"
    return STORED, f"no rollout: replicaset/{name} gets the same template ({after})", ""


def _of_a_stateful_set(spec: Document, target: Target, commands: Commands) -> tuple[str, str, str]:
    replicas, first = spec.get("replicas", 1), (spec.get("ordinals") or {}).get("start", 0)
    partition = ((spec.get("updateStrategy") or {}).get("rollingUpdate") or {}).get("partition") or 0
    if partition >= first + replicas:
        return STORED, f"no rollout: partition {partition} holds all pods back", ""
    held = f'{{"spec":{{"updateStrategy":{{"rollingUpdate":{{"partition":{first + replicas}}}}}}}}}'
    fix = _patch(commands, target, held)
    whom = "every pod" if partition <= first else f"the pods from ordinal {partition} on"
    return ROLLS_OUT, f"a rollout replaces {whom}; a partition above all pods holds it back", fix


def _patch(commands: Commands, target: Target, patch: str) -> str:
    return commands.kubectl("patch", str(target), "--type", "merge", "-p", patch)


def bare(template: Document) -> Any:
    """Without the hash that a controller adds, and without nulls: how a Deployment's controller compares them."""
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


def _meta(document: Document) -> ObjectMeta:
    return codec.convert(document["metadata"], ObjectMeta)
