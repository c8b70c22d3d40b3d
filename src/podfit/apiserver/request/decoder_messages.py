"""Messages of upstream's JSON decoder for documents that are not objects of their kind; clients quote and match them.

`cannot unmarshal string into Go struct field EnvVar.spec.containers.env.value of type string`: `type_errors` finds it.
What upstream has no word for is told in ours, which say where.
"""

from typing import Any

from podfit.api.meta.base import Object, Struct
from podfit.api.registry import resources
from podfit.apiserver.request.type_errors import JSON_KINDS, first_misfit

SCHEME = "pkg/api/legacyscheme/scheme.go:30"
OPTIONS = "pkg/apis/meta/internalversion/scheme/register.go:27"
HEAD = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
_TODAY = {("policy/v1beta1", "Eviction"): "policy/v1"}
"""Kinds that are read in an older version, too, where they are the same."""
QUOTED = 30  # bytes of a body that is not understood


def misfit(text: str, kind: type[Struct], document: object) -> str:
    """Why the document is not of the kind, in upstream's words where it has any; else `text`, which is msgspec's."""
    return first_misfit(document, kind) or text


def other_kind(document: dict[str, Any], kind: type[Object]) -> str:
    """Why a document that says itself what it is, is not of the kind; empty where it is, or says nothing."""
    declared = kind()
    wanted = (declared.api_version, declared.kind)
    if odd := _not_named(document):
        return no_kind(odd)
    version, name = document.get("apiVersion") or wanted[0], document.get("kind") or wanted[1]
    if (_TODAY.get((version, name), version), name) == wanted:
        return ""
    if _exists(version, name):
        package = wanted[0].rpartition("/")[0].partition(".")[0] or "core"
        return f"converting ({_short(version)}.{name}) to ({package}.{wanted[1]}): unknown conversion"
    return f'no kind "{name}" is registered for version "{version}" in scheme "{SCHEME}"'


def handled_as(document: dict[str, Any], kind: type[Object], why: str) -> str:
    """`why` an object that was sent is not of the kind, with what it says of itself."""
    declared = kind()
    version, name = document.get("apiVersion") or declared.api_version, document.get("kind") or declared.kind
    return f'{name} in version "{_short(str(version))}" cannot be handled as a {declared.kind}: {why}'


def _short(version: str) -> str:
    return version.rpartition("/")[2]


def no_kind(why: str) -> str:
    """Why nobody knows what a document is."""
    return f"couldn't get version/kind; json parse error: {why}"


def no_options(value: object, kind: str) -> str:
    """Why a body is not the options that it should be; empty where it is. They go by their kind in any version."""
    if not isinstance(value, dict):
        return no_kind(f"json: cannot unmarshal {_json_kind(value)} into Go value of type {HEAD}")
    if odd := _not_named(value):
        return no_kind(odd)
    version, named = value.get("apiVersion") or "meta.k8s.io/v1", value.get("kind") or kind
    return "" if named == kind else f'no kind "{named}" is registered for version "{version}" in scheme "{OPTIONS}"'


def _exists(version: str, kind: str) -> bool:
    known = {
        resource.kind
        for resource in resources()
        if (f"{resource.group}/" if resource.group else "") + resource.version == version
    }
    return kind in known or kind.removesuffix("List") in known or (version, kind) == ("v1", "List")


def no_object(value: object, body: bytes, kind: str) -> str:
    """Why a document that is no object, or whose apiVersion or kind is no text, is unrecognized."""
    odd = _not_named(value) if isinstance(value, dict) else ""
    return unrecognized(odd or f"json: cannot unmarshal {_json_kind(value)} into Go value of type {HEAD}", body, kind)


def _not_named(document: dict[str, Any]) -> str:
    """What is wrong with an apiVersion or kind that is no text."""
    for name in ("apiVersion", "kind"):
        if not isinstance(document.get(name) or "", str):
            return f"json: cannot unmarshal {_json_kind(document[name])} into Go struct field .{name} of type string"
    return ""


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
