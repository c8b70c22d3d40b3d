"""Legacy mode: what clients written for Kubernetes 1.27 to 1.32 are shown and may send (`request/legacy_rules.py`).

Off unless asked for. `status.resize` is put into answers on their way out, whatever verb made them, so nothing else in
the server knows of it and nothing of it is stored; a server without the mode does not look at its answers at all.
"""

from collections.abc import AsyncIterator

import msgspec

from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta import codec
from podfit.api.meta.base import Document
from podfit.apiserver.authz.nodes import node_name
from podfit.apiserver.request.legacy_options import STATUS, Legacy
from podfit.apiserver.request.legacy_rules import legacy_conditions, legacy_resize
from podfit.apiserver.request.request_info import RequestInfo
from podfit.net.streams import close
from podfit.net.wire import Identity, Pieces, Request, Response

_OF_THE_OBJECT = ("", "resize", "status", "ephemeralcontainers")


def in_legacy_form(
    legacy: Legacy, request_info: RequestInfo | None, request: Request, identity: Identity, answer: Response
) -> Response:
    """The answer as this client should see it.

    Everyone sees conditions for what an old node wrote (H-09). Nodes do not get the derived field: they write the
    status, and would write it back.
    """
    if STATUS not in legacy or not _is_pod(request_info) or answer.status >= 300:
        return answer
    view = _View(derive=legacy.includes(request) and not node_name(identity))
    body = answer.body.joined() if isinstance(answer.body, Pieces) else answer.body
    if isinstance(body, bytes):
        return Response(answer.status, answer.headers, view.of(body))
    return Response(answer.status, answer.headers, _Lines(body, view))


def _is_pod(request_info: RequestInfo | None) -> bool:
    of_pods = request_info is not None and request_info.info is not None and request_info.info.type is Pod
    return of_pods and request_info is not None and request_info.subresource in _OF_THE_OBJECT


class _View(msgspec.Struct, frozen=True):
    derive: bool

    def of(self, body: bytes) -> bytes:
        return msgspec.json.encode(self._document(msgspec.json.decode(body)))

    def _document(self, document: Document) -> Document:
        """A pod, a list or table of pods, or one event of a watch."""
        if document.get("kind") == "Pod":
            return self._pod(document)
        if document.get("kind") == "PodList":
            return {**document, "items": [self._pod(item) for item in document["items"]]}
        if document.get("kind") == "Table":
            return {**document, "rows": [self._row(row) for row in document.get("rows") or ()]}
        if document.get("type") in ("ADDED", "MODIFIED", "DELETED"):
            return {**document, "object": self._document(document["object"])}
        return document

    def _row(self, row: Document) -> Document:
        obj = row.get("object")
        return {**row, "object": self._pod(obj)} if obj and obj.get("kind") == "Pod" else row

    def _pod(self, document: Document) -> Document:
        pod = codec.convert(document, Pod)
        status = dict(document.get("status", {}))
        if added := legacy_conditions(pod):
            status["conditions"] = [*codec.to_dict(added), *status.get("conditions", ())]
        if self.derive and (resize := legacy_resize(pod)):
            status["resize"] = resize
        return {**document, "status": status}


class _Lines:
    """A watch whose lines are shown in the view; closing it closes the watch."""

    def __init__(self, lines: AsyncIterator[bytes], view: _View) -> None:
        self._lines = lines
        self._view = view

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        chunk = await anext(self._lines)
        return b"".join(self._view.of(line) + b"\n" for line in chunk.splitlines() if line)

    async def aclose(self) -> None:
        await close(self._lines)
