"""The audit events of one request, from its arrival to the end of its answer."""

from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

import msgspec

from podfit.api.meta.base import Document
from podfit.apiserver.extensions.audit.log import AuditLog
from podfit.apiserver.extensions.audit.policy import (
    COMPLETE,
    RECEIVED,
    REQUEST,
    REQUEST_RESPONSE,
    STARTED,
    AuditAttributes,
    recorded,
)
from podfit.apiserver.extensions.audit.policy import Recorded as Wanted
from podfit.apiserver.request.audit_annotations import collecting
from podfit.apiserver.request.request_info import RequestInfo
from podfit.core.randomness import Random
from podfit.net.streams import ClosingStream
from podfit.net.wire import LARGEST_JOINED, Identity, Pieces, Request, Response

AUDIT_ID = "audit-id"
LONGEST_ID = 64
READS = ("get", "list", "watch")
NOBODY = Identity("system:anonymous", ("system:unauthenticated",))


class Trail:
    """`known` as soon as it is known who asks, then `acting_as`; `answered` with the answer, which it may wrap."""

    def __init__(self, log: AuditLog, request: Request, request_info: RequestInfo | None, random: Random) -> None:
        self._log, self._request, self._request_info = log, request, request_info
        self._began = log.clock.now()
        self._id = request.headers.get(AUDIT_ID, "")[:LONGEST_ID] or random.uuid()
        self._who, self._as = NOBODY, NOBODY
        self._wanted: Wanted | None = None
        self._annotations: dict[str, str] = {}

    def annotated(self) -> AbstractContextManager[None]:
        """What is done with the request meanwhile may annotate its events."""
        return collecting(self._annotations)

    def known(self, who: Identity) -> None:
        self._who = self._as = who
        self._judge()
        self._tell(RECEIVED)

    def acting_as(self, other: Identity) -> None:
        """Whom the request is judged as, which is another when somebody is impersonated."""
        self._as = other

    def answered(self, answer: Response) -> Response:
        if self._wanted is None:
            self._judge()
        if isinstance(answer.body, Pieces) and self._wants_answers() and answer.body.size <= LARGEST_JOINED:
            answer = Response(answer.status, answer.headers, answer.body.joined())
        if isinstance(answer.body, bytes | Pieces):
            self._tell(COMPLETE, answer)
            return answer
        self._tell(STARTED, answer)
        return Response(answer.status, answer.headers, ClosingStream(answer.body, lambda: self._tell(COMPLETE, answer)))

    def _wants_answers(self) -> bool:
        return self._wanted is not None and self._wanted.level == REQUEST_RESPONSE

    def _judge(self) -> None:
        request_info, request = self._request_info, self._request
        if request_info is None:
            asked = AuditAttributes(self._who.user, self._who.groups, request.method.lower(), path=request.path)
        else:
            asked = AuditAttributes(
                self._who.user,
                self._who.groups,
                request_info.verb,
                request_info.group,
                request_info.resource,
                request_info.subresource,
                request_info.namespace,
                request_info.name,
            )
        self._wanted = recorded(self._log.policy, asked)

    def _tell(self, stage: str, answer: Response | None = None) -> None:
        if self._wanted is None or not self._wanted.at(stage):
            return
        level = self._wanted.level
        event = self._event(level, stage)
        if answer is not None:
            event["responseStatus"] = _status(answer)
        if (
            level in (REQUEST, REQUEST_RESPONSE)
            and self._request_info is not None
            and self._request_info.verb not in READS
        ):
            event |= _body("requestObject", self._request.body)
        if level == REQUEST_RESPONSE and answer is not None and isinstance(answer.body, bytes):
            event |= _body("responseObject", answer.body)
        self._log.write(event)

    def _event(self, level: str, stage: str) -> Document:
        request, request_info = self._request, self._request_info
        query = urlencode([(name, value) for name, values in request.query.items() for value in values])
        event = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": level,
            "auditID": self._id,
            "stage": stage,
            "requestURI": f"{request.path}?{query}" if query else request.path,
            "verb": request_info.verb if request_info else request.method.lower(),
            "user": _user(self._who),
            "sourceIPs": [request.remote] if request.remote else [],
            "userAgent": request.headers.get("user-agent", ""),
            "requestReceivedTimestamp": _moment(self._began),
            "stageTimestamp": _moment(self._log.clock.now()),
        }
        if self._annotations:
            event["annotations"] = self._annotations
        if self._as != self._who:
            event["impersonatedUser"] = _user(self._as)
        if request_info is not None:
            event["objectRef"] = {
                name: value
                for name, value in {
                    "resource": request_info.resource,
                    "namespace": request_info.namespace,
                    "name": request_info.name,
                    "apiGroup": request_info.group,
                    "apiVersion": request_info.version,
                    "subresource": request_info.subresource,
                }.items()
                if value
            }
        return event


def _user(who: Identity) -> Document:
    found: Document = {"username": who.user, "uid": who.uid, "groups": list(who.groups)}
    if who.extra:
        found["extra"] = {name: list(values) for name, values in who.extra.items()}
    return {name: value for name, value in found.items() if value}


def _status(answer: Response) -> Document:
    """The code, and for a refusal what its Status says."""
    found: Document = {"metadata": {}, "code": answer.status}
    if answer.status >= 400 and isinstance(answer.body, bytes):
        said = _decoded(answer.body)
        if isinstance(said, dict):
            found |= {name: said[name] for name in ("status", "message", "reason", "details") if name in said}
    return found


def _body(name: str, body: bytes) -> Document:
    decoded = _decoded(body)
    return {name: decoded} if isinstance(decoded, dict | list) else {}


def _decoded(body: bytes) -> Any:
    """None for what is no JSON."""
    try:
        return msgspec.json.decode(body) if body else None
    except msgspec.DecodeError:
        return None


def _moment(when: datetime) -> str:
    return when.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
