"""What authorization is asked: one access, of a resource or of a path."""

from dataclasses import dataclass

from podfit.apiserver.target import Target
from podfit.net.wire import Request


@dataclass(frozen=True, slots=True)
class Question:
    """One access to be judged; `path` is set for what is not a resource."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def full(self) -> str:
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


def question_of(target: Target | None, request: Request) -> Question:
    if target is None:
        return Question(request.method.lower(), path=request.path)
    if target.resource == "namespaces" and target.name and not target.namespace:
        target_namespace = target.name
    else:
        target_namespace = target.namespace
    return Question(target.verb, target.group, target.resource, target.subresource, target_namespace, target.name)
