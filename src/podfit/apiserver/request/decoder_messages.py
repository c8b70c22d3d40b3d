"""Why a document is not an object of its kind, in the words of upstream's JSON decoder, which clients quote and match.

The decoder names the innermost struct and the whole path, without places in lists and keys of maps, and what it would
have taken: `cannot unmarshal string into Go struct field EnvVar.spec.containers.env.value of type string`. All of it
follows from the annotations of the kind. What upstream has no word for is told in ours, which say where.
"""

import json
import re
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec

from podfit.api.meta.base import WIDE, Struct
from podfit.api.registry import resources
from podfit.api.structural.custom import is_custom
from podfit.apiserver.request.patch_messages import MISFIT
from podfit.core.quantity import MALFORMED

SCHEME = "pkg/api/legacyscheme/scheme.go:30"
HEAD = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
QUOTED = 30  # bytes of a body that is not understood
_STEP = re.compile(r"(?P<name>[^.\[]+)|\[(?P<place>\d+)\]|\[\.\.\.\]")
_OUT_OF_RANGE = re.compile(r"Expected `(?P<given>int)` [<>]= \S+( - at `\$\.?(?P<path>[^`]*)`)?")
_JSON_KINDS = {
    "object": "object",
    "array": "array",
    "str": "string",
    "int": "number",
    "float": "number",
    "bool": "bool",
}
_PYTHON_KINDS = {dict: "object", list: "array", str: "string", int: "number", float: "number", bool: "bool"}
_PLAIN = {str: "string", bool: "bool", float: "float64"}


def misfit(text: str, kind: type[Struct], document: Any) -> str:
    """What msgspec said of the document, in upstream's words where it has any."""
    if MALFORMED in text or "a quantity must be a string or a number" in text:
        return MALFORMED
    found = MISFIT.search(text) or _OUT_OF_RANGE.search(text)
    given = _JSON_KINDS.get(found["given"]) if found else None
    path = (found["path"] if found else "") or ""
    if given is None or not path:
        return text
    owner, names, hint, value = _walk(kind, path, document)
    wanted = _go_type(hint, names[-1])
    if owner is None or not wanted:
        return text
    if given == "number" and wanted.startswith("int"):
        given += f" {json.dumps(value)}"
    names = names[1:] if is_custom(kind) else names  # whose metadata is decoded by itself
    return f"json: cannot unmarshal {given} into Go struct field {owner.__name__}.{'.'.join(names)} of type {wanted}"


def _walk(kind: type[Struct], path: str, value: Any) -> tuple[type[msgspec.Struct] | None, list[str], Any, Any]:
    """The struct that the path ends in, the names on the way, what the end should be, and what it is."""
    owner: type[msgspec.Struct] | None = None
    hint: Any = kind
    names: list[str] = []
    for step in _STEP.finditer(path):
        if step["name"]:
            if not (isinstance(hint, type) and issubclass(hint, msgspec.Struct)):
                return None, names or [""], Any, value
            owner, attributes = hint, {each.encode_name: each.name for each in msgspec.structs.fields(hint)}
            hint = _bare(get_type_hints(hint, include_extras=True)[attributes[step["name"]]])
            names.append(step["name"])
            value = value.get(step["name"]) if isinstance(value, dict) else None
        elif step["place"]:
            hint = _bare(get_args(hint)[0])
            value = value[int(step["place"])] if isinstance(value, list) else None
        else:
            hint, value = _bare(get_args(hint)[1]), None
    return owner, names, hint, value


def _bare(hint: Any) -> Any:
    """Without notes and without None."""
    while get_origin(hint) in (Annotated, Union, UnionType):
        parts = [each for each in get_args(hint) if each is not type(None)]
        if get_origin(hint) is not Annotated and len(parts) != 1:
            return Any
        hint = parts[0]
    return hint


def _go_type(hint: Any, name: str) -> str:
    """As upstream declares a field of this name; empty where that is not known."""
    if hint is int:
        return "int64" if name in WIDE else "int32"
    if hint in _PLAIN:
        return _PLAIN[hint]
    inner = [_go_type(_bare(each), name) for each in get_args(hint) if each is not Ellipsis]
    if get_origin(hint) is tuple and inner[0]:
        return f"[]{inner[0]}"
    if get_origin(hint) is dict and inner[1]:
        return f"map[string]{inner[1]}"
    return f"v1.{hint.__name__}" if isinstance(hint, type) and issubclass(hint, msgspec.Struct) else ""


def other_kind(given: tuple[str, str], wanted: tuple[str, str]) -> str:
    """Why an object of another apiVersion and kind cannot be the one that is wanted."""
    (version, kind), package = given, wanted[0].rpartition("/")[0].partition(".")[0] or "core"
    short = version.rpartition("/")[2]
    start = f'{kind} in version "{short}" cannot be handled as a {wanted[1]}: '
    if _exists(version, kind):
        return f"{start}converting ({short}.{kind}) to ({package}.{wanted[1]}): unknown conversion"
    return f'{start}no kind "{kind}" is registered for version "{version}" in scheme "{SCHEME}"'


def _exists(version: str, kind: str) -> bool:
    known = {each.kind for each in resources() if (f"{each.group}/" if each.group else "") + each.version == version}
    return kind in known or kind.removesuffix("List") in known or (version, kind) == ("v1", "List")


def no_object(value: Any, body: bytes, kind: str) -> str:
    """Why a document that is no object, or whose apiVersion or kind is no text, is unrecognized."""
    if isinstance(value, dict):
        name = next(each for each in ("apiVersion", "kind") if not isinstance(value.get(each) or "", str))
        what = f"{_json_kind(value[name])} into Go struct field .{name} of type string"
    else:
        what = f"{_json_kind(value)} into Go value of type {HEAD}"
    return unrecognized(f"json: cannot unmarshal {what}", body, kind)


def _json_kind(value: Any) -> str:
    return _PYTHON_KINDS.get(type(value), "null")


def unrecognized(why: str, body: bytes, kind: str) -> str:
    """What is said of a body that is no document of an API; it is quoted, in hexadecimal unless it looks like JSON."""
    start = body[:QUOTED]
    shown = start.decode(errors="replace") if body.startswith(b"{") else start.hex()
    more = " ..." if len(body) > QUOTED else ""
    text = f"the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; "
    return f"{text}json parse error: {why} ({shown}{more})"
