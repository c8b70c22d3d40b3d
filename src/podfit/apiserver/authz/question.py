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


def question_of(request_info: RequestInfo | None, request: Request) -> Question:
    """A list of the one object that a field selector names counts as an access to that object."""
    if request_info is None:
        return Question(request.method.lower(), path=request.path)
    if request_info.resource == "namespaces" and request_info.name and not request_info.namespace:
        target_namespace = request_info.name
    else:
        target_namespace = request_info.namespace
    selected = selected_fields(request.param("fieldSelector")) if request_info.verb in _SELECTING else {}
    return Question(
        request_info.verb,
        request_info.group,
        request_info.resource,
        request_info.subresource,
        target_namespace,
        request_info.name or selected.get("metadata.name", ""),
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
