"""Request bodies: from bytes of a media type to a typed object with its defaults.

A client's mistakes are told apart: not the right media type 415, not JSON or of the wrong shape 400, unknown fields as
the request's `fieldValidation` says (Strict 400, Warn a warning, Ignore nothing).
"""

from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from podfit.api.apiextensions.v1.types import CustomResourceDefinition
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta import codec
from podfit.api.meta.base import Object, Struct
from podfit.api.meta.resource_info import ResourceInfo
from podfit.api.meta.schema import unknown_fields
from podfit.api.structural.custom import Custom, is_custom
from podfit.api.structural.pruning import prune
from podfit.apiserver.request import decoder_messages, protobuf
from podfit.apiserver.request.canonical import canonical
from podfit.apiserver.request.documents import (
    MOST_BUILT_IN,
    MOST_CUSTOM,
    MOST_OF_POD,
    MOST_VALUES,
    check_size,
    parse_json,
)
from podfit.apiserver.request.duplicate_members import merged_repetitions, problems_in_order
from podfit.apiserver.request.legacy_options import DRAFT_POLICIES, OFF, Legacy
from podfit.apiserver.request.legacy_rules import modern_policies
from podfit.apiserver.request.negotiation import JSON, YAML
from podfit.apiserver.request.write_options import check_write_options
from podfit.apiserver.request.yaml_documents import parse_yaml_strictly
from podfit.core.errors import ApiError, bad_request
from podfit.core.fields import invalid as invalid_value
from podfit.core.fields import refusal
from podfit.core.go_json import syntax_error
from podfit.net.wire import Request

T = TypeVar("T", bound=Struct)

IGNORE, STRICT = "Ignore", "Strict"


class Strictness(msgspec.Struct, frozen=True):
    """What to do about fields that a kind does not have; `level` is the request's `fieldValidation`."""

    level: str

    @staticmethod
    def of(request: Request) -> "Strictness":
        """The body of a request whose options were checked."""
        return Strictness(request.param("fieldValidation") or "Warn")

    def check(self, problems: Iterable[str], refuse: Callable[[str], ApiError]) -> list[str]:
        """Warnings for the client. When strict, raises what `refuse` makes of the text."""
        found = list(dict.fromkeys(problems)) if self.level != IGNORE else []
        if found and self.level == STRICT:
            raise refuse(f"strict decoding error: {', '.join(found)}")
        return found


def media_type(request: Request) -> str:
    return _media_type(request.headers.get("content-type", ""))


@lru_cache(maxsize=64)  # headers are bounded
def _media_type(header: str) -> str:
    return header.partition(";")[0].strip().lower()


def unsupported(*accepted: str) -> ApiError:
    text = f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
    return ApiError(415, "UnsupportedMediaType", text)


class Decoded(Request, frozen=True):
    """A request whose body was decoded beside the event loop."""

    value: Any = None

    @staticmethod
    def of(request: Request, value: object) -> "Decoded":
        return Decoded(**{name: getattr(request, name) for name in request.__struct_fields__}, value=value)


def document(request: Request) -> tuple[Any, list[str]]:
    """The decoded body and the problems that decoding forgives: members that occur twice."""
    return _decoded(_known_type(request), request)


def _decoded(kind: str, request: Request) -> tuple[Any, list[str]]:
    if isinstance(request, Decoded):
        return request.value, []
    if kind == YAML:
        return parse_yaml_strictly(request.body)
    if kind == protobuf.MEDIA_TYPE:
        return protobuf.decode(request.body), []
    return parse_json(request.body)


def _known_type(request: Request) -> str:
    """The media type of the body. Raises 415 for one that is none of an object's."""
    kind = media_type(request) or JSON
    if kind not in (JSON, YAML, protobuf.MEDIA_TYPE):
        raise unsupported(JSON, YAML, protobuf.MEDIA_TYPE)
    return kind


def typed(value: object, kind: type[T], *, version: str = "v1") -> T:
    """The document as an object of the kind. Raises 400 that says which field does not fit."""
    if not isinstance(value, dict):
        raise bad_request(f"couldn't get version/kind; the body is not a JSON object but {type(value).__name__}")
    try:
        return codec.convert(canonical(value, kind), kind)
    except (msgspec.ValidationError, ValueError, RecursionError) as error:
        raise _unfit(kind, version, decoder_messages.misfit(str(error), kind, value)) from error


def _unfit(kind: type[Struct], version: str, why: str) -> ApiError:
    return bad_request(f'{kind.__name__} in version "{version}" cannot be handled as a {kind.__name__}: {why}')


def typed_object(value: object, kind: type[Object], *, version: str = "v1") -> Any:
    """The document as an object that says of itself what it is, as everything that is stored has to. Raises 400."""
    if is_custom(kind):
        return custom_object(value, kind)
    _check_kind(value, kind)
    obj, declared = typed(forgetting(value), kind, version=version), kind()
    return replace(obj, kind=declared.kind, api_version=declared.api_version)


def custom_object(value: object, kind: type[Custom]) -> Custom:
    """The document as a custom resource, without what its schema does not declare. Raises 400, 422 for another kind."""
    declared = kind.declared
    if not isinstance(value, dict) or not value.get("kind"):
        data = codec.encode(value).decode()
        what = f"the object provided is unrecognized (must be of type {declared.kind})"
        raise bad_request(f"{what}: Object 'Kind' is missing in '{data}' ({data[:16]})")
    given, wanted = value.get("apiVersion"), f"{declared.group}/{declared.version}"
    if given != wanted:
        text = f"the API version in the data ({given or ''}) does not match the expected API version ({wanted})"
        raise bad_request(text)
    if value["kind"] != declared.kind:
        meta = value.get("metadata")
        errors = [invalid_value("kind", value["kind"], f"must be {declared.kind}")]
        name = str(meta.get("name") or "") if isinstance(meta, dict) else ""
        raise refusal(str(value["kind"]), name, errors, group=declared.group)
    return typed(prune(forgetting(value), declared.schema), kind, version=declared.version)


def forgetting(value: Any) -> Any:
    """An empty list of managers says to forget them all, as one empty entry does; no list says to keep them."""
    meta = value.get("metadata") if isinstance(value, dict) else None
    if isinstance(meta, dict) and meta.get("managedFields") == []:
        return value | {"metadata": meta | {"managedFields": [{}]}}
    return value


def most_values(kind: type[Object]) -> int:
    """How many values an object of the kind may have."""
    if is_custom(kind):
        return MOST_CUSTOM
    if kind is CustomResourceDefinition:
        return MOST_VALUES
    return MOST_OF_POD if kind is Pod else MOST_BUILT_IN


def read_object(request: Request, info: ResourceInfo, *, legacy: Legacy = OFF) -> tuple[Any, list[str]]:
    """The body as an object of the resource, as it was sent; and warnings for the client."""
    wanted = info.type
    media = _known_type(request)
    check_write_options(request)
    if not request.body:
        raise bad_request(
            f"the object provided is unrecognized (must be of type {wanted.__name__}): couldn't get version/kind; "
            "json parse error: unexpected end of JSON input (<empty>)"
        )
    value, problems = _object_of(media, request, wanted)
    least = 1 if media == protobuf.MEDIA_TYPE else 2  # bytes of a value
    if len(request.body) > least * MOST_OF_POD and len(request.body) > least * (most := most_values(wanted)):
        check_size(value, most)
    is_yaml = media == YAML
    if problems and not is_yaml and not is_custom(wanted):
        value = merged_repetitions(request.body)
    value = {} if value is None else value
    if not isinstance(value, dict) or not (_is_name(value.get("apiVersion")) and _is_name(value.get("kind"))):
        raise bad_request(decoder_messages.no_object(value, request.body, wanted.__name__))
    obj = typed_object(todays(value, wanted, legacy), wanted, version=info.version)
    if not problems or is_custom(wanted) or is_yaml:
        problems += [f'unknown field "{path}"' for path in unknown_fields(value, wanted, in_order=is_yaml)]
    else:
        problems = problems_in_order(request.body, wanted)
    warnings = Strictness.of(request).check(problems, partial(_unfit, wanted, info.version))
    return obj, warnings


def read_options(request: Request, kind: type[T]) -> T:
    """The body as options of the request, in whatever version; null is none. Raises 400, in the decoder's own words."""
    media = _known_type(request)
    value = _scanned(media, request, decoder_messages.no_kind)[0]
    value = {} if value is None else value
    if why := decoder_messages.no_options(value, kind.__name__):
        raise bad_request(why)
    try:
        return codec.convert(canonical(value, kind), kind)
    except (msgspec.ValidationError, ValueError, RecursionError) as error:
        raise bad_request(decoder_messages.misfit(str(error), kind, value)) from error


def _object_of(media: str, request: Request, wanted: type[Object]) -> tuple[Any, list[str]]:
    """The document and its problems; what is none is refused in the words of upstream's scanner."""
    body = request.body
    if media == protobuf.MEDIA_TYPE and not body.startswith(protobuf.MAGIC):
        raise bad_request(decoder_messages.unrecognized(protobuf.WITHOUT_PREFIX, body, wanted.__name__, json=False))
    return _scanned(media, request, lambda why: decoder_messages.unrecognized(why, body, wanted.__name__))


def _scanned(media: str, request: Request, words: Callable[[str], str]) -> tuple[Any, list[str]]:
    """Decodes as `_decoded` does; what is no JSON is refused in these words around those of upstream's scanner."""
    try:
        return _decoded(media, request)
    except ApiError as error:
        if error.code == 413 or media != JSON or (why := syntax_error(request.body)) is None:
            raise
        raise bad_request(words(why)) from error


def _is_name(value: object) -> bool:
    return not value or isinstance(value, str)


def todays(value: object, kind: type[Object], legacy: Legacy) -> Any:
    """The document with the names of today, where the legacy mode takes those of 2021 (H-08)."""
    return modern_policies(value) if kind is Pod and DRAFT_POLICIES in legacy else value


def _check_kind(value: object, wanted: type[Object]) -> None:
    if not isinstance(value, dict):
        return
    if why := decoder_messages.other_kind(value, wanted):
        raise bad_request(decoder_messages.handled_as(value, wanted, why))
