"""Messages of upstream's JSON decoder for documents that are not objects of their kind; clients quote and match them.

`cannot unmarshal string into Go struct field EnvVar.spec.containers.env.value of type string`: `type_errors` finds it.
What upstream has no word for is told in ours, which say where.
"""

from podfit.api.meta.base import Struct
from podfit.api.registry import resources
from podfit.apiserver.request.type_errors import JSON_KINDS, first_misfit

SCHEME = "pkg/api/legacyscheme/scheme.go:30"
HEAD = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
QUOTED = 30  # bytes of a body that is not understood


def misfit(text: str, kind: type[Struct], document: object) -> str:
    """Why the document is not of the kind, in upstream's words where it has any; else `text`, which is msgspec's."""
    return first_misfit(document, kind) or text


def other_kind(given: tuple[str, str], wanted: tuple[str, str]) -> str:
    """Why an object of another apiVersion and kind cannot be the one that is wanted."""
    (version, kind), package = given, wanted[0].rpartition("/")[0].partition(".")[0] or "core"
    short = version.rpartition("/")[2]
    start = f'{kind} in version "{short}" cannot be handled as a {wanted[1]}: '
    if _exists(version, kind):
        return f"{start}converting ({short}.{kind}) to ({package}.{wanted[1]}): unknown conversion"
    return f'{start}no kind "{kind}" is registered for version "{version}" in scheme "{SCHEME}"'


def _exists(version: str, kind: str) -> bool:
    known = {
        resource.kind
        for resource in resources()
        if (f"{resource.group}/" if resource.group else "") + resource.version == version
    }
    return kind in known or kind.removesuffix("List") in known or (version, kind) == ("v1", "List")


def no_object(value: object, body: bytes, kind: str) -> str:
    """Why a document that is no object, or whose apiVersion or kind is no text, is unrecognized."""
    if isinstance(value, dict):
        name = next(field for field in ("apiVersion", "kind") if not isinstance(value.get(field) or "", str))
        what = f"{_json_kind(value[name])} into Go struct field .{name} of type string"
    else:
        what = f"{_json_kind(value)} into Go value of type {HEAD}"
    return unrecognized(f"json: cannot unmarshal {what}", body, kind)


def _json_kind(value: object) -> str:
    return JSON_KINDS.get(type(value), "null")


def unrecognized(why: str, body: bytes, kind: str, *, json: bool = True) -> str:
    """What is said of a body that is no document of an API; it is quoted, in hexadecimal unless it looks like JSON."""
    start = body[:QUOTED]
    shown = start.decode(errors="replace") if body.startswith(b"{") else start.hex()
    more = " ..." if len(body) > QUOTED else ""
    text = f"the object provided is unrecognized (must be of type {kind}): "
    cause = "couldn't get version/kind; json parse error: " if json else ""
    return f"{text}{cause}{why} ({shown}{more})"
