"""recommender.podfit.dev/v1alpha1 as a wire handler; authentication and authorization come before it.

    POST /apis/recommender.podfit.dev/v1alpha1/namespaces/NS/podrecommendations

The pod counts as one of the namespace of the path, so nobody is told of another namespace's usage.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta import codec
from podfit.api.recommender.v1alpha1 import (
    GROUP,
    GROUP_VERSION,
    KIND,
    RESOURCE,
    VERSION,
    PodRecommendation,
    PodRecommendationStatus,
)
from podfit.core.errors import ApiError, bad_request, method_not_allowed
from podfit.net.wire import Request, Response

ROOT = f"/apis/{GROUP_VERSION}"
BODY_LIMIT = 3 << 20
"""Bytes, as of an object of the API."""
_KINDS = ({"name": RESOURCE, "singularName": "", "namespaced": True, "kind": KIND, "verbs": ["create"]},)
_IN_GROUP = {"groupVersion": GROUP_VERSION, "version": VERSION}
_GROUP: dict[str, Any] = {"name": GROUP, "versions": [_IN_GROUP], "preferredVersion": _IN_GROUP}
DISCOVERY: dict[str, dict[str, Any]] = {
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_GROUP]},
    f"/apis/{GROUP}": {"kind": "APIGroup", "apiVersion": "v1", **_GROUP},
    ROOT: {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": GROUP_VERSION, "resources": _KINDS},
}
Answer = Callable[[Pod], Awaitable[PodRecommendationStatus | None]]
"""For a pod with its namespace; None while the recommender does not know enough yet."""


class PodRecommendationApi:
    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    async def __call__(self, request: Request) -> Response:
        try:
            return await self._respond(request)
        except ApiError as error:
            return Response(error.code, {"content-type": "application/json"}, msgspec.json.encode(error.status()))

    async def _respond(self, request: Request) -> Response:
        path = request.path.rstrip("/")
        if path in DISCOVERY:
            return _json(200, DISCOVERY[path])
        match path.removeprefix(ROOT).split("/")[1:] if path.startswith(f"{ROOT}/") else []:
            case ["namespaces", namespace, resource] if resource == RESOURCE:
                if request.method != "POST":
                    raise method_not_allowed()
                return _json(201, await self._created(request, namespace))
        raise ApiError(404, "NotFound", "the server could not find the requested resource", {})

    async def _created(self, request: Request, namespace: str) -> PodRecommendation:
        asked = _read(request)
        pod = asked.spec.pod
        if {asked.metadata.namespace, pod.metadata.namespace} - {"", namespace}:
            raise bad_request("the namespace of the object does not match the namespace of the request")
        if not pod.spec.containers:
            raise bad_request("spec.pod.spec.containers: at least one container is needed")
        meta = replace(pod.metadata, namespace=namespace)
        status = await self._answer(replace(pod, metadata=meta))
        if status is None:
            raise ApiError(503, "ServiceUnavailable", "the recommender has not read its VPAs and checkpoints yet", {})
        return replace(asked, metadata=replace(asked.metadata, namespace=namespace), status=status)


def _read(request: Request) -> PodRecommendation:
    """Raises ApiError 400, 413."""
    if len(request.body) > BODY_LIMIT:
        raise ApiError(413, "RequestEntityTooLarge", f"the body is larger than {BODY_LIMIT >> 20} MiB", {})
    try:
        asked = codec.decode(request.body, PodRecommendation)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise bad_request(f"the body cannot be read: {error}") from error
    if (asked.kind, asked.api_version) != (KIND, GROUP_VERSION):
        raise bad_request(f"{asked.kind} of {asked.api_version} is no {KIND} of {GROUP_VERSION}")
    return asked


def _json(code: int, body: Any) -> Response:
    return Response(code, {"content-type": "application/json"}, codec.encode(body))
