"""Turns a handler's result or exception into a response, over a socket as in the process."""

import json
import logging

from podfit.core.errors import ApiError
from podfit.net.wire import Handler, Request, Response

log = logging.getLogger(__name__)


async def answer(handler: Handler, request: Request) -> Response:
    """Call the handler. An `ApiError` becomes its status, anything unexpected a 500 with the traceback in the log."""
    try:
        return await handler(request)
    except ApiError as error:
        return status_response(error)
    except Exception:
        log.exception("handler failed method=%s path=%s", request.method, request.path)
        return status_response(internal_error())


def internal_error() -> ApiError:
    return ApiError(500, "InternalError", "Internal error occurred: the server's log has the details")


def status_response(error: ApiError) -> Response:
    """The answer that carries an `ApiError` to the client."""
    headers = {"Content-Type": "application/json"}
    if "retryAfterSeconds" in error.details:
        headers["Retry-After"] = str(error.details["retryAfterSeconds"])
    return Response(error.code, headers, json.dumps(error.status()).encode())
