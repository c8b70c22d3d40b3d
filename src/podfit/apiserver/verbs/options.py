"""Options that travel in a request's query, checked."""

import re

import msgspec

from podfit.api.meta import DeleteOptions
from podfit.apiserver.bodies import document, options_kind, typed
from podfit.core.errors import bad_request
from podfit.core.fields import FieldError, forbidden, invalid, refusal, unsupported
from podfit.net.wire import Request

_PROPAGATION = ("Background", "Foreground", "Orphan")
_META = "meta.k8s.io"
_DURATION = re.compile(r"[+-]?(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)"
                       r"(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))*)")  # fmt: skip
_LONGEST_NUMBER = 18  # digits, so that it fits 64 bits
_TRUE = ("true", "1", "t", "T", "TRUE", "True")
EXACT, NOT_OLDER = "Exact", "NotOlderThan"


class ListOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Which moment a list or a watch shows, and how much of it.

    `version` 0 is the present; for a list any other means "not older than" unless `exact`. `initial` is
    `sendInitialEvents`, None when not given. `seconds` bounds a watch, 0 when not given.
    """

    version: int
    exact: bool
    limit: int
    continue_: str
    initial: bool | None
    bookmarks: bool
    seconds: int

    @staticmethod
    def of(request: Request, *, watch: bool) -> "ListOptions":
        """Raises 400 for what cannot be read, 422 for what does not go together."""
        version, match, continue_ = (request.param(each) for each in ("resourceVersion", *_MATCH_AND_CONTINUE))
        initial = request.param("sendInitialEvents")
        seconds, limit = number(request, "timeoutSeconds"), number(request, "limit")
        errors = list((_watch_errors if watch else _list_errors)(version, match, continue_, initial))
        if errors:
            raise refusal("ListOptions", "", errors, group=_META)
        if continue_ and version not in ("", "0"):
            raise bad_request("specifying resource version is not allowed when using continue")
        revision = revision_of(version)
        return ListOptions(
            version=revision, exact=match == EXACT or bool(revision and limit and not match), limit=limit,
            continue_=continue_, initial=initial in _TRUE if initial else None,
            bookmarks=request.param("allowWatchBookmarks") in _TRUE, seconds=seconds,
        )  # fmt: skip


_MATCH_AND_CONTINUE = ("resourceVersionMatch", "continue")


def _list_errors(version: str, match: str, continue_: str, initial: str) -> list[FieldError]:
    errors = []
    field = "resourceVersionMatch"
    if match and not version:
        errors.append(forbidden(field, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
    if match and continue_:
        errors.append(forbidden(field, "resourceVersionMatch is forbidden when continue is provided"))
    if match not in ("", EXACT, NOT_OLDER):
        errors.append(unsupported(field, match, [EXACT, NOT_OLDER, ""]))
    if match == EXACT and version == "0":
        errors.append(forbidden(field, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    if initial:
        errors.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return errors


def _watch_errors(_version: str, match: str, continue_: str, initial: str) -> list[FieldError]:
    errors = []
    field = "resourceVersionMatch"
    if initial and match != NOT_OLDER:
        errors.append(forbidden(field, f"sendInitialEvents requires setting resourceVersionMatch to {NOT_OLDER}"))
    if match and not initial:
        text = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        errors.append(forbidden(field, text))
    if match not in ("", NOT_OLDER):
        errors.append(unsupported(field, match, [NOT_OLDER]))
    if match and continue_:
        errors.append(forbidden(field, "resourceVersionMatch is forbidden when continue is provided"))
    return errors


def check_timeout(request: Request) -> None:
    """Raises 400 for a `timeout` that is no duration; a request takes as long as it takes."""
    given = request.param("timeout")
    if given and not _DURATION.fullmatch(given):
        raise bad_request(f'invalid timeout specified in the request URL - time: invalid duration "{given}"')


def revision_of(version: str) -> int:
    """A resource version as the number it is; 0 for none."""
    if not version:
        return 0
    if not _is_number(version):
        error = invalid("resourceVersion", version, f'strconv.ParseUint: parsing "{version}": invalid syntax')
        raise bad_request(f"invalid resource version: {error}")
    return int(version)


def number(request: Request, name: str) -> int:
    """A whole number; 0 when it is not given or negative."""
    text = request.param(name)
    if not text:
        return 0
    if not _is_number(text.removeprefix("-")):
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return max(int(text), 0)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER


def dry_run(request: Request) -> bool:
    """`?dryRun=All`; anything else is refused."""
    return _dry(request.query.get("dryRun", ()), options_kind(request))


def _dry(values: tuple[str, ...], kind: str) -> bool:
    wrong = [value for value in values if value not in ("", "All")]
    if wrong:
        raise refusal(kind, "", [unsupported("dryRun", list(values), ["All"])], group=_META)
    return "All" in values


def delete_options(request: Request) -> DeleteOptions:
    """From the body, else from the query."""
    if request.body:
        options = typed(document(request)[0], DeleteOptions)
        if options.kind not in ("", "DeleteOptions"):
            raise bad_request(f'no kind "{options.kind}" is registered for version "{options.api_version}" as options')
    else:
        grace = request.param("gracePeriodSeconds")
        seconds = number(request, "gracePeriodSeconds") if grace else None
        options = DeleteOptions(grace_period_seconds=seconds, propagation_policy=request.param("propagationPolicy"))
    _check(options)
    return options


def _check(options: DeleteOptions) -> None:
    errors = []
    policy = options.propagation_policy
    if options.orphan_dependents is not None and policy:
        text = "orphanDependents and deletionPropagation cannot be both set"
        errors.append(invalid("propagationPolicy", policy, text))
    if policy not in ("", *_PROPAGATION):
        errors.append(unsupported("propagationPolicy", policy, [*_PROPAGATION, "nil"]))
    if errors:
        raise refusal("DeleteOptions", "", errors, group=_META)
    _dry(options.dry_run, "DeleteOptions")


def is_dry(request: Request, options: DeleteOptions) -> bool:
    return dry_run(request) or "All" in options.dry_run
