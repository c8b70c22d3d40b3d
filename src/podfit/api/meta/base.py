"""`Object` and `Struct`: the bases of every API type, and the annotations that a field carries (list keys, defaults).

The Struct is the single source of a kind's schema. Attribute names are snake case and their JSON names follow by rule;
list-map keys and merge strategies ride on the annotation, where patching, apply and explain read them. Go's habit of
writing some empty fields and omitting others is kept by two ways of giving a default: a plain default is omitted when
the value equals it, `always(default=…)` is written every time.
"""

from collections.abc import Callable
from inspect import get_annotations
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    TypeAlias,
    TypeVar,
    dataclass_transform,
    get_args,
    get_origin,
)

import msgspec

from podfit.core.quantity import Quantity

if TYPE_CHECKING:
    from podfit.api.meta.v1.types import ObjectMeta

_ACRONYMS = {
    "ip": "IP",
    "ips": "IPs",
    "id": "ID",
    "uuid": "UUID",
    "cidr": "CIDR",
    "cidrs": "CIDRs",
    "pid": "PID",
    "ipc": "IPC",
    "urls": "URLs",
    "url": "URL",
    "uri": "URI",
    "fqdn": "FQDN",
    "wwns": "WWNs",
    "io": "IO",
}


def json_name(attribute: str) -> str:
    """`pod_ip` → `podIP`, `qos_class` → `qosClass`; the first word stays lower case."""
    first, *rest = attribute.split("_")
    return first + "".join(_ACRONYMS.get(word, word.capitalize()) for word in rest)


def always(*, default: Any, name: str | None = None) -> Any:
    """A field that is written even when it holds its default."""
    factory: Callable[[], Any] = lambda: default  # noqa: E731  (a factory that is not list or dict is never omitted)
    return msgspec.field(default_factory=factory, name=name)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field, always))
class Struct(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, rename=json_name, gc=False):
    """Base of all wire types: immutable; change one with `msgspec.structs.replace`.

    Nothing immutable that comes from JSON is in a cycle, so the garbage collector passes it over (`gc=False`).

    `whole` says that server-side apply owns such a value as one field.
    """

    whole: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        """Whole numbers are of 32 bits, or of 64 where WIDE says so; what does not fit is refused by the decoder."""
        super().__init_subclass__()
        cls.__annotations__ = {
            attribute: _bounded(hint, _INT64 if json_name(attribute) in WIDE else INT32)
            for attribute, hint in get_annotations(cls).items()
        }


WIDE = frozenset(
    (
        "activeDeadlineSeconds",
        "capacity",
        "deletionGracePeriodSeconds",
        "expirationSeconds",
        "fsGroup",
        "generation",
        "gid",
        "gracePeriodSeconds",
        "maxItems",
        "maxLength",
        "maxProperties",
        "memoryAggregationIntervalCount",
        "minItems",
        "minLength",
        "minProperties",
        "nodeAllocatableUpdatePeriodSeconds",
        "observedGeneration",
        "remainingItemCount",
        "revision",
        "runAsGroup",
        "runAsUser",
        "seconds",
        "sizeBytes",
        "startingDeadlineSeconds",
        "supplementalGroups",
        "terminationGracePeriodSeconds",
        "tolerationSeconds",
        "totalSamplesCount",
        "uid",
    )
)
"""Numbers of 64 bits upstream; all others are of 32. A field of 32 bits with such a name says so: `INT32`."""
INT32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
_INT64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


def _bounded(hint: Any, number: Any) -> Any:
    """The annotation with `number` for the whole numbers in it; IntOrString and numbers with fractions stay."""
    if hint is int:
        return number
    if hint == (int | None):
        return number | None
    if hint == tuple[int, ...]:
        return tuple[number, ...]
    if get_origin(hint) is Annotated:
        whole, *notes = get_args(hint)
        bounded = _bounded(whole, number)
        return hint if bounded is whole else Annotated[bounded, *notes]
    return hint


class Listing(msgspec.Struct, frozen=True):
    """How a list or map field merges.

    `keys` make a list a map under server-side apply, `merge_key` is the key of strategic merge patch (empty: replace as
    a whole), `set_` marks a list of unique scalars, `retain_keys` a union whose other members a patch drops.
    `patched` says whether strategic merge patch joins a set as well; `granular` that here the members of a value are
    owned one by one, although its type is owned as a whole elsewhere. `key_defaults` are the keys' values where an item
    does not give them and they are not the Struct's own. `replaced` is a map that strategic merge patch does not merge.
    """

    keys: tuple[str, ...] = ()
    merge_key: str = ""
    set_: bool = False
    atomic: bool = False
    retain_keys: bool = False
    key_defaults: tuple[tuple[str, str], ...] = ()
    patched: bool = True
    granular: bool = False
    replaced: bool = False


class Named(msgspec.Struct, frozen=True):
    """The name under which OpenAPI knows a type that is no Struct, and of whose form it says nothing."""

    name: str


def keyed(*keys: str, merge: str = "", patch: bool = True, retain_keys: bool = False, **defaults: str) -> Listing:
    """A list whose items are told apart by `keys`; strategic merge goes by the first unless `merge` names another.

    `defaults` are values of keys that an item may leave out.
    """
    merge_key = (merge or keys[0]) if patch else ""
    return Listing(keys=keys, merge_key=merge_key, retain_keys=retain_keys, key_defaults=tuple(defaults.items()))


def merged(merge_key: str) -> Listing:
    """A list that strategic merge joins by `merge_key`, although server-side apply takes it as a whole."""
    return Listing(merge_key=merge_key, atomic=True)


SET = Listing(set_=True)
SET_REPLACED = Listing(set_=True, patched=False)
ATOMIC = Listing(atomic=True)
GRANULAR = Listing(granular=True)
RETAIN_KEYS = Listing(retain_keys=True)
REPLACED = Listing(replaced=True)

_DATE = r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9]"
_RFC3339 = rf"^{_DATE}T{_CLOCK}:[0-5][0-9](\.[0-9]+)?(Z|[+-]{_CLOCK})\Z"
Time: TypeAlias = Annotated[str, msgspec.Meta(pattern=_RFC3339)]
MicroTime: TypeAlias = Annotated[str, msgspec.Meta(pattern=_RFC3339, title="MicroTime")]
IntOrString: TypeAlias = int | str
ResourceList: TypeAlias = dict[str, Quantity]
Document: TypeAlias = dict[str, Any]
"""A JSON object that no Struct describes, as a custom resource or a patch is."""


class Object(Struct):
    """Base of the kinds that are stored.

    Subclasses declare `kind`, `api_version` and `metadata`, in this order, so that every encoding starts with the same
    bytes up to the metadata's first member.
    """

    if TYPE_CHECKING:  # fields of each kind, which a base cannot have: their defaults are the kind's

        @property
        def kind(self) -> str: ...
        @property
        def api_version(self) -> str: ...
        @property
        def metadata(self) -> "ObjectMeta": ...


ObjectT = TypeVar("ObjectT", bound=Object)
"""One kind, the same in what a function takes and gives."""
