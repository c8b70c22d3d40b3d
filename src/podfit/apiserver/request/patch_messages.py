"""Messages for strategic patches whose result does not fit its kind."""

import re

from podfit.api.meta.base import WIDE, Struct
from podfit.api.meta.codec import NO_QUANTITY
from podfit.api.meta.member import Kind
from podfit.api.meta.schema import members
from podfit.apiserver.request.type_errors import first_misfit
from podfit.core.quantity import MALFORMED

MISFIT = re.compile(
    r"Expected `(?P<wanted>object|array|str|int|bool)[^`]*`, got `(?P<given>\w+)`( - at `\$\.?(?P<path>[^`]*)`)?"
)
_GO_KINDS = {"object": "map", "array": "slice", "str": "string", "int": "int64", "float": "float64", "bool": "bool"}


def unfit(text: str, kind: type[Struct], document: object) -> str:
    """Why the outcome of a strategic patch does not fit its kind, in upstream's words where it has any; else ours.

    Upstream makes the object from a map then, and names the kinds that do not go together. From a document it quotes
    its JSON decoder (`type_errors`).
    """
    if MALFORMED in text or NO_QUANTITY in text:
        return MALFORMED
    found = MISFIT.search(text)
    given = _GO_KINDS.get(found["given"]) if found else None
    if found is None or given is None:
        return first_misfit(document, kind) or text
    match found["wanted"]:
        case "array":
            return f"cannot restore slice from {given}"
        case "object":
            is_struct = _is_struct(kind, found["path"] or "")
            return f"cannot restore struct from: {given}" if is_struct else f"cannot restore map from {given}"
        case "str":
            return f"cannot convert {given} to string" if given == "int64" else "unrecognized type: string"
        case "bool":
            return "unrecognized type: bool"
    name = (found["path"] or "").rpartition(".")[2].partition("[")[0]
    number = "int64" if name in WIDE else "int32"
    return f"cannot convert float64 to {number}" if given == "float64" else f"unrecognized type: {number}"


def _is_struct(kind: type[Struct], path: str) -> bool:
    """Whether the path, such as `spec.containers[0].resources`, leads to an object with declared members."""
    here: Kind | None = kind
    for part in filter(None, path.split(".")):
        name, bracket, _ = part.partition("[")
        member = members(here).get(name) if here else None
        if member is None or (member.shape in ("list", "map") and not bracket):
            return False
        here = member.item
    return here is not None
