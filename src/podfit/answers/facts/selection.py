"""Selections: several targets of one question, by name, or by labels in a namespace or in all of them.

    pod/web deployment/api       these
    deployment -l tier=web       workloads with these labels; with -A of all namespaces
    -l tier=web                  pods with these labels, by who controls them

All are bounded: who selects more is told to narrow it, before anything else is read.
"""

from collections.abc import Iterable, Sequence

import msgspec

from podfit.answers.facts.kinds import PODS
from podfit.answers.facts.target import POD, WORKLOADS, Kind, Target, TargetError, parse_kind, parse_targets
from podfit.api.core.v1.pods.phase import is_active
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta import codec
from podfit.api.meta.owners import ObjectIdentity, controller_named
from podfit.api.meta.selector_text import parse_labels
from podfit.api.meta.v1.types import ObjectMeta
from podfit.client.rest import Client

MOST_TARGETS, MOST_READ = 200, 2000
AT_ONCE = 8
"""Targets that are read at the same time."""


class Selection(msgspec.Struct, frozen=True):
    """`targets` by name; without them those of a kind, or pods, that have the `labels` (any when empty)."""

    targets: tuple[Target, ...] = ()
    kind: Kind | None = None
    labels: str = ""
    everywhere: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """The words as they are typed."""
        if self.targets:
            return tuple(map(str, self.targets))
        kind = (self.kind.shown,) if self.kind is not None else ()
        return (*kind, *(("-l", self.labels) if self.labels else ()), *(("-A",) if self.everywhere else ()))

    def __str__(self) -> str:
        return " ".join(self.words)


class Selected(msgspec.Struct, frozen=True):
    """A target of a selection; `pods` are those that were read already, all of one owner."""

    target: Target
    namespace: str
    pods: tuple[Pod, ...] = ()


def parse_selection(words: Sequence[str], labels: str, *, everywhere: bool) -> Selection | None:
    """None for a single target, or for none. Raises TargetError."""
    if not labels and not everywhere:
        targets = parse_targets(words, POD, *WORKLOADS) if words else ()
        return Selection(targets) if len(targets) > 1 else None
    option = "-l" if labels else "-A"
    if len(words) > 1 or any("/" in word for word in words):
        raise TargetError(f"{option} selects of a kind, such as deployment, and cannot be combined with {words[-1]}")
    try:
        parse_labels(labels)
    except ValueError as error:
        raise TargetError(f"-l {labels}: {error}") from error
    kind = parse_kind(words[0], POD, *WORKLOADS) if words else None
    return Selection(kind=kind, labels=labels, everywhere=everywhere)


async def select(client: Client, namespace: str, selection: Selection) -> tuple[Selected, ...]:
    """Raises ApiError, and TargetError where nothing is selected, or too much."""
    if selection.targets:
        found = tuple(Selected(target, namespace) for target in selection.targets)
    elif selection.kind is not None and selection.kind is not POD:
        found = await _workloads(client, "" if selection.everywhere else namespace, selection.kind, selection.labels)
    else:
        found = await _pods(client, "" if selection.everywhere else namespace, selection.labels)
    if len(found) > MOST_TARGETS:
        raise TargetError(f"{selection} selects {len(found)} workloads and pods: narrow it to {MOST_TARGETS} with -l")
    if not found:
        where = "in any namespace" if selection.everywhere else f"in namespace {namespace}"
        raise TargetError(f"{selection} selects nothing that runs {where}")
    return found


class _Meta(msgspec.Struct, frozen=True):
    continue_: str = msgspec.field(default="", name="continue")


class _Item(msgspec.Struct, frozen=True):
    metadata: ObjectMeta


class _Items(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()
    items: tuple[_Item, ...] = ()


def _check_whole(continued: str, resource: str) -> None:
    if continued:
        raise TargetError(f"there are more than {MOST_READ} {resource}: narrow it with -l")


async def _workloads(client: Client, namespace: str, kind: Kind, labels: str) -> tuple[Selected, ...]:
    """Those that nobody else controls: a Deployment's ReplicaSets are its own business."""
    where = f"/namespaces/{namespace}" if namespace else ""
    query = {"limit": str(MOST_READ), **({"labelSelector": labels} if labels else {})}
    listed = codec.decode(await client.request("GET", f"{kind.path}{where}/{kind.resource}", query=query), _Items)
    _check_whole(listed.metadata.continue_, kind.resource)
    mine = (item.metadata for item in listed.items if controller_named(item.metadata) is None)
    return tuple(Selected(Target(kind, meta.name), meta.namespace) for meta in mine)


async def _pods(client: Client, namespace: str, labels: str) -> tuple[Selected, ...]:
    listed = await client.list(PODS, namespace, labels=labels, limit=MOST_READ)
    _check_whole(listed.continue_, "pods")
    return tuple(_by_owner(pod for pod in listed.items if pod.spec.node_name and is_active(pod)))


def _by_owner(pods: Iterable[Pod]) -> Iterable[Selected]:
    """Pods of one owner together; one of nobody, or of a kind that is not known, by itself."""
    owned: dict[ObjectIdentity, list[Pod]] = {}
    for pod in sorted(pods, key=lambda pod: (pod.metadata.namespace, pod.metadata.name)):
        owner = controller_named(pod.metadata)
        if owner is None or not any(kind.names_a(owner) for kind in WORKLOADS):
            yield Selected(Target(POD, pod.metadata.name), pod.metadata.namespace, (pod,))
        else:
            owned.setdefault(owner, []).append(pod)
    for owner, mine in owned.items():
        kind = next(kind for kind in WORKLOADS if kind.names_a(owner))
        yield Selected(Target(kind, owner.name), owner.namespace, tuple(mine))
