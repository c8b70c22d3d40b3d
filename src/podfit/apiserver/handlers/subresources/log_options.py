"""What a request for a container's log asks for, judged before the pod or its node is: upstream's PodLogOptions."""

from podfit.apiserver.handlers.options import whole_number
from podfit.apiserver.request.request_info import flag
from podfit.core.errors import bad_request
from podfit.core.fields import FieldError, forbidden, invalid, refusal
from podfit.core.go_time import SECONDS, in_utc
from podfit.net.wire import Request

Query = dict[str, tuple[str, ...]]
_FLAGS = ("follow", "previous", "timestamps")
_SINCE_SECONDS, _SINCE_TIME, _TAIL_LINES, _LIMIT_BYTES = "sinceSeconds", "sinceTime", "tailLines", "limitBytes"
_MOMENTLESS = ("", "null")
"""Values of a time in a query that stand for none, as old clients write it."""


def log_options(name: str, request: Request) -> Query:
    """The options as a kubelet is asked for them. Raises 400 for values that cannot be read, 422 for those that make no
    sense."""
    read: Query = {option: ("true",) for option in _FLAGS if flag(request, option)}
    for option in (_SINCE_SECONDS, _SINCE_TIME, _TAIL_LINES, _LIMIT_BYTES):  # upstream's order
        if option in request.query:
            read[option] = (_read(option, request.query[option][0]),)
    if errors := _errors(read, request):
        raise refusal("PodLogOptions", name, errors)
    return {option: values for option, values in read.items() if values != ("",)}


def _read(option: str, text: str) -> str:
    if option != _SINCE_TIME:
        return str(whole_number(text))
    if text in _MOMENTLESS:
        return ""
    try:
        return in_utc(text, SECONDS)
    except ValueError as error:
        raise bad_request(str(error)) from None


def _errors(read: Query, request: Request) -> list[FieldError]:
    errors = _too_small(read, _TAIL_LINES, 0) + _too_small(read, _LIMIT_BYTES, 1)
    if _SINCE_SECONDS in read and _SINCE_TIME in read:
        errors.append(forbidden("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
    else:
        errors += _too_small(read, _SINCE_SECONDS, 1)
    if "stream" in request.query:  # which the gate PodLogsQuerySplitStreams would allow
        errors.append(forbidden("stream", "may not be specified"))
    return errors


def _too_small(read: Query, option: str, least: int) -> list[FieldError]:
    number = int(read[option][0]) if option in read else least
    text = f"must be greater than {'or equal to 0' if least == 0 else 0}"
    return [] if number >= least else [invalid(option, number, text)]
