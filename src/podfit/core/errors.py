"""`ApiError`: a Status error of the API as an exception.

One exception carries the API's `Status`; everything that refuses a request raises it, the server encodes it and the
client decodes it back, so both sides of a transport see the same object.

    ApiError
      .code     HTTP status                      422
      .reason   machine-readable                 "Invalid"
      .message  for people                       'Pod "web" is invalid: spec: Forbidden: …'
      .details  {"name", "group", "kind", "uid", "causes": [{"reason", "message", "field"}], "retryAfterSeconds"};
                {} is shown as such, None is not

Errors of the operating system are worded by `plainly`, without their numbers.
"""

from collections.abc import Sequence
from typing import Any


class ApiError(Exception):
    """A refusal in the shape of the API's `Status` object."""

    warnings: Sequence[str] = ()
    """What the client is told beside it."""

    def __init__(
        self, code: int, reason: str, message: str, details: dict[str, Any] | None = None, *, continue_: str = ""
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details or {}
        self.continue_ = continue_
        """The token with which a list that expired can go on in the present."""
        self._empty_shown = details == {}

    def status(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {"continue": self.continue_} if self.continue_ else {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
        }
        if self.details or self._empty_shown:
            body["details"] = self.details
        body["code"] = self.code
        return body

    @classmethod
    def from_status(cls, body: dict[str, Any], *, code: int = 500) -> "ApiError":
        """Decode what a server answered; `code` fills in when the body does not carry one."""
        return cls(body.get("code", code), body.get("reason", ""), body.get("message", ""), body.get("details"))


def _qualified(resource: str, group: str) -> str:
    return f"{resource}.{group}" if group else resource


def _details(name: str, kind: str, group: str) -> dict[str, Any]:
    return {k: v for k, v in (("name", name), ("group", group), ("kind", kind)) if v}


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def unauthorized(message: str = "Unauthorized") -> ApiError:
    return ApiError(401, "Unauthorized", message)


def forbidden(
    resource: str, name: str, text: str, *, group: str = "", causes: list[dict[str, str]] | None = None
) -> ApiError:
    """403 `pods "web" is forbidden: <text>`; without a name the quotes stay away, as upstream."""
    who = f'{_qualified(resource, group)} "{name}"' if name else _qualified(resource, group)
    details = _details(name, resource, group)
    if causes:
        details["causes"] = causes
    return ApiError(403, "Forbidden", f"{who} is forbidden: {text}", details)


def not_found(resource: str, name: str, *, group: str = "") -> ApiError:
    text = f'{_qualified(resource, group)} "{name}" not found'
    return ApiError(404, "NotFound", text, _details(name, resource, group))


def already_exists(resource: str, name: str, *, group: str = "") -> ApiError:
    text = f'{_qualified(resource, group)} "{name}" already exists'
    return ApiError(409, "AlreadyExists", text, _details(name, resource, group))


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def conflict(resource: str, name: str, text: str = MODIFIED, *, group: str = "") -> ApiError:
    message = f'Operation cannot be fulfilled on {_qualified(resource, group)} "{name}": {text}'
    return ApiError(409, "Conflict", message, _details(name, resource, group))


def gone(message: str, *, continue_: str = "") -> ApiError:
    """410 of a watch or list that asks for history already compacted; `reason` is Expired."""
    return ApiError(410, "Expired", message, continue_=continue_)


def method_not_allowed() -> ApiError:
    return ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def unwatched(resource: str) -> ApiError:
    text = f'watch is not supported on resources of kind "{resource}"'
    return ApiError(405, "MethodNotAllowed", text, {"kind": resource})


def plainly(error: Exception, *, about: str = "") -> str:
    """`No such file or directory: FILE`; the file is left out where it is what the sentence is `about` already."""
    if not isinstance(error, OSError) or not error.strerror or error.strerror.startswith("["):
        return str(error)
    named = str(error.filename) if error.filename is not None else ""
    return f"{error.strerror}: {named}" if named and named != about else error.strerror
