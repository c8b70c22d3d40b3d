"""Targets of questions: KIND/NAME in kubectl's spellings, their API paths, and the query for their pods."""

from collections.abc import Sequence
from typing import Any

import msgspec

from podfit.api.meta.owners import ObjectIdentity, group_of
from podfit.api.meta.selector_text import parse_labels
from podfit.core.errors import not_found
from podfit.decide.workload import kinds


class TargetError(ValueError):
    """Not KIND/NAME, or a kind that no answer is known for."""


class Kind(msgspec.Struct, frozen=True):
    """`path` is the API group's, `kind` what manifests say, `names` what people type; the first is shown."""

    path: str
    resource: str
    kind: str
    names: tuple[str, ...]

    @property
    def shown(self) -> str:
        return self.names[0]

    @property
    def api_version(self) -> str:
        """`v1`, or `apps/v1`."""
        return self.path.removeprefix("/apis/").removeprefix("/api/")

    def names_a(self, identity: ObjectIdentity) -> bool:
        """Whether the object is of this kind."""
        return (group_of(self.api_version), self.kind) == (identity.group, identity.kind)


POD = Kind("/api/v1", "pods", "Pod", ("pod", "pods", "po"))
NODE = Kind("/api/v1", "nodes", "Node", ("node", "nodes", "no"))
VPA = Kind(
    "/apis/autoscaling.k8s.io/v1",
    "verticalpodautoscalers",
    "VerticalPodAutoscaler",
    ("vpa", "verticalpodautoscaler", "verticalpodautoscalers"),
)
HPA = Kind(
    "/apis/autoscaling/v2",
    "horizontalpodautoscalers",
    "HorizontalPodAutoscaler",
    ("hpa", "horizontalpodautoscaler", "horizontalpodautoscalers"),
)
NODE_GROUP = Kind("", "nodegroups", "NodeGroup", ("node-group", "nodegroup", "nodegroups"))
"""No object of the API: the cluster autoscaler tells of them."""
WORKLOADS = tuple(
    Kind(
        f"/{'apis' if known.group else 'api'}/{known.api_version}",
        known.resource,
        known.kind,
        (known.kind.lower(), known.resource, *([known.short] if known.short else [])),
    )
    for known in kinds.WORKLOADS
    if known.kind != "CronJob"
)
"""Those that have pods of their own: a CronJob's are its Jobs'."""


class Target(msgspec.Struct, frozen=True):
    kind: Kind
    name: str

    def __str__(self) -> str:
        return f"{self.kind.shown}/{self.name}"

    @property
    def is_workload(self) -> bool:
        return self.kind in WORKLOADS

    def path(self, namespace: str) -> str:
        where = "" if self.kind is NODE else f"/namespaces/{namespace}"
        return f"{self.kind.path}{where}/{self.kind.resource}/{self.name}"


def parse_target(text: str, *allowed: Kind, name: str = "") -> Target:
    """`pod/web`, or `pod` and the name `web`. Raises TargetError that names the kinds that are allowed here."""
    typed, slash, named = text.partition("/")
    if slash and name:
        raise TargetError(f'"{text}" already names an object; unexpected argument "{name}"')
    known = {spelling: kind for kind in allowed for spelling in kind.names}
    kind, wanted = known.get(typed.lower().partition(".")[0]), named if slash else name
    if kind is not None and wanted and "/" not in wanted:
        return Target(kind, wanted)
    if kind is not None and not wanted:
        raise TargetError(f"the name of the {kind.shown} is required: {kind.shown}/NAME")
    kinds = ", ".join(f"{kind.shown}/NAME" for kind in allowed)
    shown = " ".join(filter(None, (text, name)))
    meant = f"; did you mean {allowed[0].shown}/{text}?" if text and not slash and not name else ""
    raise TargetError(f'"{shown}" is not one of {kinds}{meant}')


def parse_targets(words: Sequence[str], *allowed: Kind) -> tuple[Target, ...]:
    """`pod/web deployment/api`, or as in kubectl `pod web api`: a kind and names. Raises TargetError."""
    first, *names = words
    if names and "/" not in first:
        return tuple(dict.fromkeys(parse_target(first, *allowed, name=name) for name in names))
    return tuple(dict.fromkeys(parse_target(word, *allowed) for word in words))


def parse_kind(word: str, *allowed: Kind) -> Kind:
    """The kind of which all are meant. Raises TargetError."""
    typed = word.lower().partition(".")[0]
    for kind in allowed:
        if typed in kind.names:
            return kind
    raise TargetError(f'"{word}" is not one of {", ".join(kind.names[-1] for kind in allowed)}')


def query_of(selector: Any) -> str:
    """A label selector, or the plain map of a replication controller, as a query."""
    if not isinstance(selector, dict) or not selector:
        raise not_found("pods", "")
    labels = selector.get("matchLabels", {}) if selector.keys() & {"matchLabels", "matchExpressions"} else selector
    parts = [f"{name}={value}" for name, value in labels.items()]
    expressions = selector.get("matchExpressions", ()) if labels is not selector else ()
    parts += [
        _expression(expression["key"], expression["operator"], expression.get("values", []))
        for expression in expressions
    ]
    query = ",".join(parts)
    parse_labels(query)
    return query


def _expression(key: str, operator: str, values: list[str]) -> str:
    match operator:
        case "In" | "NotIn":
            return f"{key} {operator.lower()} ({','.join(values)})"
        case "DoesNotExist":
            return f"!{key}"
        case _:
            return key
