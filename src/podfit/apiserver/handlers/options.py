"""Query options of a request (`limit`, `continue`, `resourceVersion`, `dryRun`, …), validated."""

import re

import msgspec

from podfit.api.meta.v1.types import DeleteOptions
from podfit.apiserver.request.bodies import read_options
from podfit.apiserver.request.request_info import asks_to_watch, flag
from podfit.apiserver.request.write_options import DRY, dry_run_errors, options_kind
from podfit.core.errors import bad_request
from podfit.core.fields import FieldError, forbidden, invalid, refusal, unsupported
from podfit.core.numbers import parse_int
from podfit.net.wire import Request

_PROPAGATION = ("Background", "Foreground", "Orphan")
_META = "meta.k8s.io"
_DURATION = re.compile(
    r"[+-]?(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)"
    r"(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))*)"
)
_LONGEST_NUMBER = 18  # digits, so that it fits 64 bits
EXACT, NOT_OLDER = "Exact", "NotOlderThan"


class ListOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Which moment a list or a watch shows, and how much of it.

    `version` 0 is the present (`present` when the client said "0"); for a list any other means "not older than" unless
    `exact`. `initial` is `sendInitialEvents`, None when not given. `seconds` bounds a watch, 0 when not given.
    """

    version: int
    present: bool
    exact: bool
    limit: int
    continue_: str
    initial: bool | None
    bookmarks: bool
    seconds: int

    @staticmethod
    def of(request: Request, *, watch: bool, by_path: bool = False) -> "ListOptions":
        """Raises 400 for what cannot be read, 422 for what does not go together. A watch `by_path` is judged as a list,
        since its query does not say that it is a watch."""
        version, match, continue_ = (request.param(name) for name in ("resourceVersion", *_MATCH_AND_CONTINUE))
        initial = flag(request, "sendInitialEvents") if "sendInitialEvents" in request.query else None
        bookmarks = flag(request, "allowWatchBookmarks")
        seconds, limit = number(request, "timeoutSeconds"), number(request, "limit")
        watched = watch and (not by_path or asks_to_watch(request))
        # Without a resource version a watch begins with what is there, as if that had been asked for.
        begins = watched and initial is None and not match and version in ("", "0")
        judge = _watch_errors if watched else _list_errors
        errors = list(judge(version, NOT_OLDER if begins else match, continue_, given=begins or initial is not None))
        if errors:
            raise refusal("ListOptions", "", errors, group=_META)
        if continue_ and version not in ("", "0") and not watch:
            raise bad_request("specifying resource version is not allowed when using continue")
        revision = revision_of(version)
        return ListOptions(
            version=revision,
            present=version == "0",
            limit=limit,
            exact=match == EXACT or bool(revision and limit and not match),
            continue_=continue_,
            initial=initial,
            bookmarks=bookmarks,
            seconds=seconds,
        )


_MATCH_AND_CONTINUE = ("resourceVersionMatch", "continue")


def _list_errors(version: str, match: str, continue_: str, *, given: bool) -> list[FieldError]:
    """`given`: `sendInitialEvents` is."""
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
    if given:
        errors.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return errors


def _watch_errors(_version: str, match: str, continue_: str, *, given: bool) -> list[FieldError]:
    errors = []
    field = "resourceVersionMatch"
    if given and match != NOT_OLDER:
        errors.append(forbidden(field, f"sendInitialEvents requires setting resourceVersionMatch to {NOT_OLDER}"))
    if match and not given:
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
    """A whole number of 64 bits; 0 when it is not given or negative."""
    given = request.query.get(name)
    return max(whole_number(given[0]), 0) if given else 0


def whole_number(text: str) -> int:
    """Raises 400 for what is none, in the words of upstream's parser."""
    try:
        return parse_int(text)
    except ValueError as error:
        raise bad_request(str(error)) from None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER


def dry_run(request: Request) -> bool:
    """`?dryRun=All`; anything else is refused."""
    values = request.query.get("dryRun")
    if not values:
        return False
    if errors := [*dry_run_errors(values)]:
        raise refusal(options_kind(request), "", errors, group=_META)
    return DRY in values


def delete_options(request: Request) -> DeleteOptions:
    """From the body, else from the query."""
    options = read_options(request, DeleteOptions) if request.body else _queried(request)
    _check(options)
    return options


def _queried(request: Request) -> DeleteOptions:
    grace = request.query.get("gracePeriodSeconds")
    return DeleteOptions(
        grace_period_seconds=whole_number(grace[0]) if grace else None,
        orphan_dependents=flag(request, "orphanDependents") if "orphanDependents" in request.query else None,
        propagation_policy=request.param("propagationPolicy"),
    )


def _check(options: DeleteOptions) -> None:
    errors = []
    policy = options.propagation_policy
    if options.orphan_dependents is not None and policy:
        text = "orphanDependents and deletionPropagation cannot be both set"
        errors.append(invalid("propagationPolicy", policy, text))
    if policy not in ("", *_PROPAGATION):
        errors.append(unsupported("propagationPolicy", policy, [*_PROPAGATION, "nil"]))
    errors += dry_run_errors(options.dry_run)
    if errors:
        raise refusal("DeleteOptions", "", errors, group=_META)


def is_dry(request: Request, options: DeleteOptions) -> bool:
    return dry_run(request) or "All" in options.dry_run
