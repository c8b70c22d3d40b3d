"""What `kubectl apply` of a manifest would do to the pods of its workloads: which are resized, and which replaced.

    the manifest, applied without being stored ─▶ the template that there would be
    a pod of it, made without being stored     ─▶ the size after admission: LimitRange, VPA, webhooks
    pods, by the controllers' own decision     ─▶ what becomes of each, and by the node's what it says to the resize

Both are dry runs: nothing is written, but they need the rights of who would apply it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from podfit.answers.facts.snapshot import Reader
from podfit.answers.facts.target import WORKLOADS, Target
from podfit.answers.plan.plan import PodRequest, plan_requests
from podfit.answers.plan.resize_request import from_template
from podfit.answers.plan.result import DEFERRED, ERROR, INFEASIBLE, NOT_KNOWN, REFUSED, PodPlan
from podfit.api.apps.v1.daemonsets import ControllerRevision, DaemonSet
from podfit.api.apps.v1.deployments import Deployment, ReplicaSet
from podfit.api.apps.v1.statefulsets import StatefulSet
from podfit.api.core.v1.namespaces.types import Namespace
from podfit.api.core.v1.pods.phase import is_active
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta import codec
from podfit.api.meta.owners import controller_of, identity_of, is_controlled_by
from podfit.client.rest import STRATEGIC_PATCH, Client
from podfit.core.clock import Clock
from podfit.core.durations import go_duration
from podfit.core.errors import ApiError
from podfit.decide.pod.spare import foretold
from podfit.decide.workload.daemon import in_place as daemon_in_place
from podfit.decide.workload.daemon.nodes import GENERATION
from podfit.decide.workload.daemon.steps import Version, replaces, unavailable
from podfit.decide.workload.deployment.in_place import fits, in_turn
from podfit.decide.workload.deployment.revisions import sorted_out
from podfit.decide.workload.deployment.sizes import is_rolling, max_unavailable, wanted
from podfit.decide.workload.deployment.status import is_replaced
from podfit.decide.workload.history import HASH, templates_in
from podfit.decide.workload.in_place import hold, standing
from podfit.decide.workload.in_place.asking import Asked, asked
from podfit.decide.workload.in_place.fates import (
    NO_RESTART,
    OTHER_TEMPLATE,
    Fate,
    Replaced,
    ToBeResized,
    Waits,
    fate_of,
)
from podfit.decide.workload.pods import from_template as made_from
from podfit.decide.workload.pods import is_available
from podfit.decide.workload.stateful import identity
from podfit.decide.workload.stateful import in_place as stateful_in_place
from podfit.decide.workload.stateful.steps import Revision, most_unavailable, replaced_from

RESIZED, RESTARTED, WAITS, REPLACED, LEFT = "resized", "restarted", "waits", "replaced", "left"
IN_PLACE, ROLLING, HELD, UNKNOWN = "in place", "rolling", "held", "not known"
KINDS: Mapping[str, type[Any]] = {"Deployment": Deployment, "StatefulSet": StatefulSet, "DaemonSet": DaemonSet}
UNDER_WAY = "not all of its pods are there and new now, so some may be replaced before it is their turn"
ENDS_HOLD = "the manifest ends podfit's hold (updateStrategy or paused), so some pods may be replaced before it is back"
NEW_REVISION = ""
"""Of a template that its controller has no revision of yet."""
Rolled: TypeAlias = Deployment | StatefulSet | DaemonSet


class PodFate(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`fate` is resized, restarted (resized, where a resizePolicy restarts a container), waits (for room, then it is
    replaced), replaced or left; `text` says why.
    """

    pod: str
    fate: str
    text: str = ""


class RolloutPlan(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`how` is in place, rolling, held (nothing happens by itself) or not known, for the reason in `text`."""

    target: str
    namespace: str
    how: str
    text: str = ""
    pods: tuple[PodFate, ...] = ()

    @property
    def counts(self) -> Counter[str]:
        return Counter(pod.fate for pod in self.pods)


class _Facts(msgspec.Struct, frozen=True):
    """`owner` as it would be, `pods` of it that are active; revisions or replica sets, by kind."""

    owner: Any
    pods: tuple[Pod, ...]
    revisions: tuple[ControllerRevision, ...] = ()
    replica_sets: tuple[ReplicaSet, ...] = ()


async def plan_rollouts(client: Client, documents: Iterable[Any], namespace: str, clock: Clock) -> list[RolloutPlan]:
    """The rollouts of workloads that are there and whose template would be another one. Raises ConnectionError."""
    found = []
    for document in documents:
        kind = KINDS.get(str(document.get("kind"))) if isinstance(document, dict) else None
        meta = document.get("metadata") if kind is not None else None
        if kind is None or not isinstance(meta, dict) or document.get("apiVersion") != "apps/v1":
            continue
        name, where = str(meta.get("name") or ""), str(meta.get("namespace") or namespace)
        target = next(Target(known, name) for known in WORKLOADS if known.kind == kind.__name__)
        try:
            told = await _plan(client, document, kind, target, where, clock)
        except ApiError as error:
            told = None
            if error.code != 404:
                told = RolloutPlan(target=str(target), namespace=where, how=UNKNOWN, text=error.message)
        found += [told] if told is not None else []
    return found


async def _plan(
    client: Client, document: Mapping[str, Any], kind: type[Any], target: Target, namespace: str, clock: Clock
) -> RolloutPlan | None:
    """None when its template stays as it is. Raises ApiError."""
    live = await client.get(kind, target.name, namespace)
    body, query = codec.encode(applied(document, live)), {"dryRun": "All", "fieldManager": "podfit"}
    answer = await client.request("PATCH", target.path(namespace), body, query=query, content_type=STRATEGIC_PATCH)
    owner = codec.decode(answer, kind)
    if owner.spec.template == live.spec.template:
        return None
    facts = await _facts(client, owner, namespace)
    rolled = RolloutPlan(target=str(target), namespace=namespace, how=ROLLING)
    if why := _held(facts.owner):
        left = tuple(PodFate(pod=pod.metadata.name, fate=LEFT) for pod in facts.pods)
        return replace(rolled, how=HELD, text=why, pods=left)
    try:
        admitted = await client.create(made_from(owner.spec.template, owner), namespace, dry_run=True)
    except ApiError as error:
        text = f"the API server would not make a new pod: {error.message}"
        return replace(rolled, how=UNKNOWN, text=text)
    if unfit := foretold(admitted):
        return replace(rolled, text=f"of each new pod, {unfit}", pods=tuple(_rolled(facts)))
    said = asked(owner.metadata.annotations, (await client.get(Namespace, namespace)).metadata.annotations)
    if said is None:
        return replace(rolled, text="podfit.dev/rollout is not in-place", pods=tuple(_rolled(facts)))
    fit, other = _sorted_out(facts)
    fates: dict[str, Fate] = {pod.metadata.uid: Replaced(OTHER_TEMPLATE) for pod in other}
    if not fit:
        return replace(rolled, text=OTHER_TEMPLATE, pods=tuple(_told(facts, fates, {}, said)))
    now = clock.now()
    fates |= {pod.metadata.uid: fate_of(pod, admitted, deadline=said.deadline, now=now) for pod in fit}
    verdicts = await _verdicts(client, target, namespace, admitted, fit)
    rolled = replace(rolled, how=IN_PLACE, text=said.problem or _doubt(live, owner))
    return replace(rolled, pods=tuple(_told(facts, _bearable(facts, fates, now), verdicts, said)))


def _doubt(live: Rolled, owner: Rolled) -> str:
    """Why some pods may be replaced all the same; empty when none is."""
    if standing.is_mine(live) and not standing.is_mine(owner):
        return ENDS_HOLD
    return "" if _is_at_rest(live) else UNDER_WAY


def applied(document: Mapping[str, Any], live: Any) -> dict[str, Any]:
    """A strategic merge patch with what a manifest says, and without what `kubectl apply` would take away: amounts and
    annotations of the template that the manifest before had, and this one has not.
    """
    spec = dict(document.get("spec") or {})
    meta = document.get("metadata") or {}
    patch: dict[str, Any] = {
        "metadata": {key: meta[key] for key in ("labels", "annotations") if meta.get(key)},
        "spec": spec,
    }
    try:
        before = msgspec.json.decode(live.metadata.annotations.get(_LAST_APPLIED, "{}"))
        old = {one["name"]: one.get("resources") or {} for one in before["spec"]["template"]["spec"]["containers"]}
        containers = spec["template"]["spec"]["containers"]
    except (msgspec.DecodeError, KeyError, TypeError, AttributeError):
        return patch
    cleared = [_cleared(container, old.get(container.get("name"), {})) for container in containers]
    template = {**spec["template"], "spec": {**spec["template"]["spec"], "containers": cleared}}
    return {**patch, "spec": {**spec, "template": template}}


_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def _cleared(container: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    resources = dict(container.get("resources") or {})
    for side in ("requests", "limits"):
        gone = (old.get(side) or {}).keys() - (resources.get(side) or {}).keys()
        if gone:
            resources[side] = {**(resources.get(side) or {}), **dict.fromkeys(gone)}
    return {**container, "resources": resources} if resources else dict(container)


async def _facts(client: Client, owner: Rolled, namespace: str) -> _Facts:
    mine = identity_of(owner)
    pods = [pod for pod in (await client.list(Pod, namespace)).items if is_active(pod)]
    if not isinstance(owner, Deployment):
        revisions = (await client.list(ControllerRevision, namespace)).items
        own = tuple(pod for pod in pods if is_controlled_by(pod.metadata, mine))
        return _Facts(owner, own, tuple(one for one in revisions if is_controlled_by(one.metadata, mine)))
    sets = [one for one in (await client.list(ReplicaSet, namespace)).items if is_controlled_by(one.metadata, mine)]
    own = tuple(pod for pod in pods if any(is_controlled_by(pod.metadata, identity_of(one)) for one in sets))
    return _Facts(owner, own, replica_sets=tuple(sets))


def _is_at_rest(live: Rolled) -> bool:
    """Whether all its pods are there and available, and no rollout is under way."""
    if isinstance(live, DaemonSet):
        status = live.status
        return hold.is_at_rest(_free(live)) and status.number_available == status.desired_number_scheduled
    if isinstance(live, Deployment):
        return is_replaced(live, live.status) and live.status.available_replicas == wanted(live)
    return hold.is_at_rest(_free(live)) and live.status.available_replicas == identity.size(live)


def _held(owner: Rolled) -> str:
    """Why nothing is rolled out by itself; empty when something is."""
    if standing.may_be_held(owner):
        return ""
    return "it is paused" if isinstance(owner, Deployment) else "its update strategy is OnDelete"


def _free(owner: Rolled) -> Any:
    """The workload without podfit's hold."""
    return owner if isinstance(owner, Deployment) or not standing.is_mine(owner) else standing.unheld(owner)


def _sorted_out(facts: _Facts) -> tuple[list[Pod], list[Pod]]:
    """Pods of old templates: those that can be resized, and others that are to be replaced."""
    owner = _free(facts.owner)
    if isinstance(owner, Deployment):
        sets = sorted_out(owner, facts.replica_sets)
        can = {one.metadata.uid for one in sets.old if fits(owner, one)}
        old = [pod for pod in facts.pods if _set_of(pod) in {one.metadata.uid for one in sets.old}]
        return in_turn(pod for pod in old if _set_of(pod) in can), [pod for pod in old if _set_of(pod) not in can]
    new = _revision(facts, owner)
    if isinstance(owner, StatefulSet):
        update = Revision(new.metadata.name if new else NEW_REVISION, owner.spec.template)
        fit = stateful_in_place.candidates(owner, update, templates_in(facts.revisions), facts.pods)
    else:
        fit = daemon_in_place.candidates(owner, _version(new), templates_in(facts.revisions, HASH), facts.pods)
    known = {pod.metadata.uid for pod in fit}
    return fit, [pod for pod in _outdated(facts, owner, new) if pod.metadata.uid not in known]


def _set_of(pod: Pod) -> str:
    owner = controller_of(pod.metadata)
    return "" if owner is None else owner.uid


def _revision(facts: _Facts, owner: StatefulSet | DaemonSet) -> ControllerRevision | None:
    """That of the template, when there is one already, as before an undo."""
    templates = templates_in(facts.revisions)
    return next((one for one in facts.revisions if templates.get(one.metadata.name) == owner.spec.template), None)


def _version(revision: ControllerRevision | None) -> Version:
    return Version(revision.metadata.labels.get(HASH, "") if revision else NEW_REVISION)


def _outdated(facts: _Facts, owner: StatefulSet | DaemonSet, new: ControllerRevision | None) -> list[Pod]:
    """The pods that a rollout replaces, fit for a resize or not."""
    if isinstance(owner, DaemonSet):
        version = _version(new)
        return [pod for pod in facts.pods if replaces(owner) and not version.of(_without_number(pod))]
    begin, name = replaced_from(owner), new.metadata.name if new else NEW_REVISION
    there = [pod for pod in facts.pods if begin is not None and identity.ordinal(pod) >= begin]
    return [pod for pod in there if pod.metadata.labels.get(HASH) != name]


def _without_number(pod: Pod) -> Pod:
    labels = {key: value for key, value in pod.metadata.labels.items() if key != GENERATION}
    return replace(pod, metadata=replace(pod.metadata, labels=labels))


def _rolled(facts: _Facts) -> Iterable[PodFate]:
    fit, other = _sorted_out(facts)
    old = {pod.metadata.uid for pod in (*fit, *other)}
    for pod in facts.pods:
        yield PodFate(pod=pod.metadata.name, fate=REPLACED if pod.metadata.uid in old else LEFT)


def _bearable(facts: _Facts, fates: Mapping[str, Fate], now: datetime) -> dict[str, Fate]:
    """A pod whose resize restarts a container, where none may be unavailable, is replaced (`fates.pod_steps`)."""
    if _most(facts) > 0:
        return dict(fates)
    seconds = facts.owner.spec.min_ready_seconds
    ready = {pod.metadata.uid for pod in facts.pods if is_available(pod, seconds, now)}
    return {
        uid: Replaced(NO_RESTART) if isinstance(fate, ToBeResized) and fate.restarts and uid in ready else fate
        for uid, fate in fates.items()
    }


def _most(facts: _Facts) -> int:
    owner = _free(facts.owner)
    match owner:
        case Deployment():
            return max_unavailable(owner) if is_rolling(owner) else wanted(owner)
        case StatefulSet():
            return most_unavailable(owner)
    return unavailable(owner, owner.status.desired_number_scheduled)


async def _verdicts(
    client: Client, target: Target, namespace: str, admitted: Pod, fit: Sequence[Pod]
) -> dict[str, PodPlan]:
    """What API and node say to each resize, by the name of the pod."""
    snapshot = await Reader(client, namespace).read(target, usage=True)
    there, size = {pod.metadata.uid: pod for pod in snapshot.pods}, from_template(admitted)
    requests = [PodRequest(there[pod.metadata.uid], size) for pod in fit if pod.metadata.uid in there]
    return {pod.pod: pod for pod in plan_requests(snapshot, requests).pods}


def _told(facts: _Facts, fates: Mapping[str, Fate], verdicts: Mapping[str, PodPlan], said: Asked) -> Iterable[PodFate]:
    for pod in facts.pods:
        name, fate = pod.metadata.name, fates.get(pod.metadata.uid)
        match fate:
            case None:
                yield PodFate(pod=name, fate=LEFT)
            case Replaced(why):
                yield PodFate(pod=name, fate=REPLACED, text=why)
            case ToBeResized():
                yield _of_resize(name, fate, verdicts.get(name), said)
            case Waits():
                yield PodFate(pod=name, fate=WAITS, text="its last resize is under way")
            case _:
                yield PodFate(pod=name, fate=RESIZED, text="it has that size already")


def _of_resize(name: str, fate: ToBeResized, verdict: PodPlan | None, said: Asked) -> PodFate:
    if verdict is None:
        return PodFate(pod=name, fate=RESIZED, text="what its node says is not known")
    if verdict.verdict in (INFEASIBLE, REFUSED):
        return PodFate(pod=name, fate=REPLACED, text=f"the resize is {verdict.verdict}: {verdict.text}")
    if verdict.verdict in (DEFERRED, ERROR):
        short = f"short of {verdict.short_by}" if verdict.short_by else verdict.text
        return PodFate(pod=name, fate=WAITS, text=f"{short}; replaced when that lasts for {go_duration(said.deadline)}")
    text = verdict.text if verdict.verdict == NOT_KNOWN else ""
    if fate.restarts:
        return PodFate(pod=name, fate=RESTARTED, text=text or "its resizePolicy restarts a container")
    return PodFate(pod=name, fate=RESIZED, text=text)
