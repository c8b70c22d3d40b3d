"""Options that travel in a request's query, checked."""

from podfit.api.meta import DeleteOptions
from podfit.apiserver import bodies
from podfit.apiserver.bodies import document, typed
from podfit.core.errors import ApiError, bad_request
from podfit.net.wire import Request

_PROPAGATION = ("", "Background", "Foreground", "Orphan")


def dry_run(request: Request) -> bool:
    """`?dryRun=All`; anything else is refused."""
    values = request.query.get("dryRun", ())
    if any(value not in ("", "All") for value in values):
        text = f'dryRun: Unsupported value: "{values[0]}": supported values: "All"'
        raise ApiError(422, "Invalid", f'"" is invalid: {text}')
    return "All" in values


def number(request: Request, name: str) -> int:
    """A whole number that is not negative; 0 when it is not given."""
    text = request.param(name)
    if not text:
        return 0
    if not text.isdecimal() or len(text) > 18:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax ({name})')
    return int(text)


def delete_options(request: Request) -> DeleteOptions:
    """From the body, else from the query."""
    if request.body:
        if bodies.media_type(request) not in ("", bodies.JSON, bodies.YAML):
            raise bodies.unsupported(bodies.media_type(request), bodies.JSON, bodies.YAML)
        options = typed(document(request)[0], DeleteOptions)
    else:
        seconds = number(request, "gracePeriodSeconds") if request.param("gracePeriodSeconds") else None
        options = DeleteOptions(grace_period_seconds=seconds, propagation_policy=request.param("propagationPolicy"))
    if options.propagation_policy not in _PROPAGATION:
        text = f'propagationPolicy: Unsupported value: "{options.propagation_policy}": supported values: '
        listed = ", ".join(f'"{each}"' for each in _PROPAGATION[1:])
        raise ApiError(422, "Invalid", f'DeleteOptions.meta.k8s.io "" is invalid: {text}{listed}')
    return options


def is_dry(request: Request, options: DeleteOptions) -> bool:
    return dry_run(request) or "All" in options.dry_run
