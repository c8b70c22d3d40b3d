"""The attributes of an authorization: who wants to do what with which resource or path."""

import msgspec

from podfit.api.meta.selector_text import parse_fields
from podfit.apiserver.request.request_info import RequestInfo
from podfit.core.selectors import SelectorError
from podfit.net.wire import Request

_SELECTING = ("list", "watch", "deletecollection")


class Question(msgspec.Struct, frozen=True):
    """One access to be judged; `path` is set for what is not a resource. `of_node` is the node to which a field
    selector confines what is asked for.
    """

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""
    of_node: str = ""

    @property
    def full(self) -> str:
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


def question_of(target: RequestInfo | None, request: Request) -> Question:
    """A list of the one object that a field selector names counts as an access to that object."""
    if target is None:
        return Question(request.method.lower(), path=request.path)
    if target.resource == "namespaces" and target.name and not target.namespace:
        target_namespace = target.name
    else:
        target_namespace = target.namespace
    selected = selected_fields(request.param("fieldSelector")) if target.verb in _SELECTING else {}
    return Question(
        target.verb,
        target.group,
        target.resource,
        target.subresource,
        target_namespace,
        target.name or selected.get("metadata.name", ""),
        of_node=selected.get("spec.nodeName", ""),
    )


def selected_fields(selector: str) -> dict[str, str]:
    """The fields that have to have one value, `a=b,c==d,e!=f` → {"a": "b", "c": "d"}; none of what is no selector,
    which the verb refuses."""
    if not selector:
        return {}
    try:
        terms = parse_fields(selector).terms
    except SelectorError:
        return {}
    return {path: value for path, value, equal in reversed(terms) if equal}
