"""The options that travel in the query of a write, checked together, before the body is looked at."""

from collections.abc import Iterator

from podfit.core.fields import FieldError, forbidden, invalid, refusal, required, too_long, unsupported
from podfit.net.wire import Request

META = "meta.k8s.io"
LONGEST_NAME = 128
LEVELS = ("Ignore", "Strict", "Warn")
DRY = "All"
_KINDS = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions"}


def options_kind(request: Request) -> str:
    """The kind that the query of a write is one of."""
    return _KINDS.get(request.method, "DeleteOptions")


def check_write_options(request: Request, *, applies: bool = False) -> None:
    """Raises 422 with all that is wrong with them."""
    query = request.query
    if not query:
        if applies:
            raise _refused(request, [_NO_MANAGER])
        return
    errors = [
        *_patch_errors(request, applies=applies),
        *_manager_errors(request.param("fieldManager")),
        *dry_run_errors(query.get("dryRun", ())),
        *_level_errors(request.param("fieldValidation")),
    ]
    if errors:
        raise _refused(request, errors)


def _refused(request: Request, errors: list[FieldError]) -> Exception:
    return refusal(options_kind(request), "", errors, group=META)


_NO_MANAGER = required("fieldManager", "is required for apply patch")


def _patch_errors(request: Request, *, applies: bool) -> Iterator[FieldError]:
    """Only who applies can force, and has to say who it is."""
    if applies and not request.param("fieldManager"):
        yield _NO_MANAGER
    if request.method == "PATCH" and not applies and "force" in request.query:
        yield forbidden("force", "may not be specified for non-apply patch")


def _manager_errors(name: str) -> Iterator[FieldError]:
    if len(name.encode()) > LONGEST_NAME:
        yield too_long("fieldManager", LONGEST_NAME)
    odd = next((place for place, letter in enumerate(name) if not letter.isprintable()), None)
    if odd is not None:
        at = f"invalid character U+{ord(name[odd]):04X} (at position {len(name[:odd].encode())})"
        yield invalid("fieldManager", name, at)


def dry_run_errors(values: tuple[str, ...]) -> Iterator[FieldError]:
    if any(value != DRY for value in values):
        yield unsupported("dryRun", list(values), [DRY])


def _level_errors(level: str) -> Iterator[FieldError]:
    if level not in ("", *LEVELS):
        yield unsupported("fieldValidation", level, ["", *LEVELS])
