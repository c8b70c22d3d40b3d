"""Options of components, each declared once: on the field of a Struct that holds its value.

What the command line takes, what a configuration file may say, what /configz tells and docs/options.md follow from it:

    port: Annotated[int, Option("Of its server; 0 takes a free one.", path="port")] = 10250

The flag is the field's name (`--port`) unless another is given. `path` is its place in the configuration file, by
upstream's names. The default stands on the field, and nowhere else. Where values may not go together, a property
`problem` of the Struct says why.
"""

import types
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import lru_cache, partial
from typing import Annotated, Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec.structs import fields, replace

from podfit.core.durations import go_duration, parse_duration, short_duration

S = TypeVar("S", bound=msgspec.Struct)


class BadOption(ValueError):
    """A value that cannot be followed; the text names the flag or the field of the file."""


def _same(value: Any) -> Any:
    return value


class Unit(msgspec.Struct, frozen=True, kw_only=True):
    """How a value is written: on a command line as `flag`, in a file as `file`, two types.

    `read` and `decode` make the value of the one and the other, and raise ValueError for what is none; `text` and
    `encode` write it. `joined` makes one value of the file's and the flag's, where a flag does not replace the file.
    """

    name: str = ""
    flag: Any = str
    read: Callable[[Any], Any] = _same
    text: Callable[[Any], str] = str
    file: Any = str
    decode: Callable[[Any], Any] | None = None
    encode: Callable[[Any], Any] | None = None
    joined: Callable[[Any, Any], Any] | None = None
    place: bool = False
    """A path as text: on a command line it is relative to where that was given."""


class Bound(msgspec.Struct, frozen=True):
    """What holds of a value, in words and as a rule."""

    words: str
    holds: Callable[[Any], bool]


class Option(msgspec.Struct, frozen=True):
    """On an annotation: the field is an option. `flag` is without dashes, empty for none; `also` are other spellings.

    `usual` says what holds when nothing is said, where the default of the field does not. `negative` makes `--no-FLAG`
    of a bool. `{}` in a flag is the name that the enclosing `Part` gives.
    """

    help: str = ""
    flag: str | None = None
    path: str = ""
    also: tuple[str, ...] = ()
    unit: Unit | None = None
    bound: Bound | None = None
    usual: str = ""
    negative: bool = True
    count: bool = False


class Part(msgspec.Struct, frozen=True):
    """On an annotation: the field is a Struct whose fields are options, below `path` in the file."""

    path: str = ""
    name: str = ""


class Fixed(msgspec.Struct, frozen=True):
    """A field that a file may have with this value only."""

    path: str
    value: Any
    why: str


class Document(msgspec.Struct, frozen=True):
    """The configuration file of a component, `document` of its Struct."""

    api_version: str
    kind: str
    fixed: tuple[Fixed, ...] = ()


class Declared(msgspec.Struct, frozen=True):
    """An option with its place: the attributes that lead to it, its flag, the path in the file, and its default."""

    attributes: tuple[str, ...]
    option: Option
    unit: Unit
    flag: str
    path: tuple[str, ...]
    default: Any
    required: bool = False

    @property
    def field(self) -> str:
        """The place in the file, as it is told."""
        return ".".join(self.path)

    @property
    def usual(self) -> str:
        """What holds when nothing is said; empty where that is nothing."""
        if self.option.usual:
            return self.option.usual
        if self.default is None or self.default is False or self.default in ("", ()) or self.option.count:
            return ""
        return self.unit.text(self.default)


class Configured(msgspec.Struct, frozen=True, kw_only=True):
    """Options that a configuration file may hold too: `document` says which."""

    document: ClassVar[Document]


@lru_cache(maxsize=64)
def declared(kind: type[msgspec.Struct]) -> tuple[Declared, ...]:
    """Every option of a Struct and of its parts, in their order."""
    return tuple(_declared(kind, None, (), Part()))


def _declared(kind: type[msgspec.Struct], base: Any, attributes: tuple[str, ...], within: Part) -> Iterator[Declared]:
    for field in fields(kind):
        value, *marks = get_args(field.type) if get_origin(field.type) is Annotated else (field.type,)
        default = _default(field) if base is None else getattr(base, field.name)
        place = (*attributes, field.name)
        for mark in marks:
            if isinstance(mark, Part):
                inner = Part(_under(within, mark.path), mark.name or within.name)
                yield from _declared(_plain(value), default, place, inner)
            elif isinstance(mark, Option):
                flag = (field.name.replace("_", "-") if mark.flag is None else mark.flag).format(within.name)
                path = tuple(_under(within, mark.path).split(".")) if mark.path else ()
                yield Declared(place, mark, mark.unit or _unit(_plain(value)), flag, path, default, field.required)


def _under(within: Part, path: str) -> str:
    return ".".join(filter(None, (within.path, path)))


def _default(field: Any) -> Any:
    if field.default is not msgspec.NODEFAULT:
        return field.default
    return None if field.default_factory is msgspec.NODEFAULT else field.default_factory()


def _plain(kind: Any) -> Any:
    """Without `| None`."""
    if get_origin(kind) in (types.UnionType, Union):
        [kind] = [member for member in get_args(kind) if member is not types.NoneType]
    return kind


def _word(value: Enum) -> str:
    return str(value.value)


def _unit(kind: Any) -> Unit:
    """The unit of a type that is written as it is."""
    if kind == tuple[str, ...]:
        return LIST
    if isinstance(kind, type) and hasattr(kind, "__fspath__"):
        return Unit(name="path", flag=kind, file=str, decode=kind, encode=str)
    if isinstance(kind, type) and issubclass(kind, Enum):
        words = tuple(str(member.value) for member in kind)
        return Unit(name=", ".join(words), flag=Literal[words], read=kind, file=kind, decode=_same, text=_word)
    if kind is bool:
        return Unit(flag=bool, file=bool, text=lambda value: "yes" if value else "no", encode=_same)
    text = (lambda value: f"{value:g}") if kind is float else str
    return Unit(name={int: "number", float: "number"}.get(kind, ""), flag=kind, file=kind, text=text, encode=_same)


def resolve(kind: type[S], flags: Mapping[str, Any], said: Mapping[tuple[str, ...], Any]) -> S:
    """The options: of each what its flag says, else what the file says (by path), else its default.

    Raises BadOption.
    """
    values: dict[tuple[str, ...], Any] = {}
    in_flags: set[tuple[str, ...]] = set()
    for option in declared(kind):
        unit = option.unit
        if option.path and (in_file := said.get(option.path)) is not None:
            values[option.attributes] = _checked(option, option.field, in_file, unit.decode or unit.read)
        if option.flag and (given := flags.get(option.flag)) is not None:
            read = unit.read
            if unit.joined is not None and option.attributes in values:
                read = partial(_joined, unit, values[option.attributes])
            values[option.attributes] = _checked(option, f"--{option.flag}", given, read)
            in_flags.add(option.attributes)
    _check_whole(kind, values, in_flags)
    options: S = _built(kind, None, values, ())
    return options


def _check_whole(
    kind: type[msgspec.Struct], values: Mapping[tuple[str, ...], Any], flags: set[tuple[str, ...]]
) -> None:
    """BadOption for a part, such as a key pair, of which only some is there."""
    for option in declared(kind):
        part = option.attributes[:-1]
        if not option.required or option.attributes in values:
            continue
        for other in declared(kind):
            if other.attributes in values and other.attributes[:-1] == part:
                both = (other, option)
                names = (f"--{one.flag}" if other.attributes in flags else one.field for one in both)
                raise BadOption(f"{' and '.join(names)} belong together")


def _joined(unit: Unit, in_file: Any, given: Any) -> Any:
    assert unit.joined is not None
    return unit.joined(in_file, unit.read(given))


def _checked(option: Declared, origin: str, given: Any, read: Callable[[Any], Any]) -> Any:
    try:
        value = read(given)
    except ValueError as error:
        raise BadOption(f"{origin}: {error}") from None
    bound = option.option.bound
    if bound is not None and not bound.holds(value):
        raise BadOption(f"{origin} {option.unit.text(value)}: it has to be {bound.words}")
    return value


def _built(kind: type[S], base: S | None, values: Mapping[tuple[str, ...], Any], at: tuple[str, ...]) -> Any:
    """`base` with what was given, or a new one. BadOption when it has a `problem`, as a text that is not empty."""
    given: dict[str, Any] = {}
    for field in fields(kind):
        place = (*at, field.name)
        if place in values:
            given[field.name] = values[place]
        elif any(attributes[: len(place)] == place for attributes in values):
            inner = _plain(get_args(field.type)[0])
            default = getattr(base, field.name) if base is not None else _default(field)
            given[field.name] = _built(inner, default, values, place)
    if base is not None and not given:
        return base
    made = replace(base, **given) if base is not None else kind(**given)
    if problem := getattr(made, "problem", ""):
        raise BadOption(problem)
    return made


def document(options: Configured) -> dict[str, Any]:
    """The configuration file that says the same: every option with a place in it, by upstream's names."""
    found: dict[str, Any] = {"apiVersion": options.document.api_version, "kind": options.document.kind}
    for option in declared(type(options)):
        value: Any = options
        for attribute in option.attributes:
            value = getattr(value, attribute, None)
        if not option.path or value is None:
            continue
        inner = found
        for name in option.path[:-1]:
            inner = inner.setdefault(name, {})
        inner[option.path[-1]] = (option.unit.encode or option.unit.text)(value)
    return found


def _parts(given: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part for text in given for part in text.split(",") if part)


LIST = Unit(
    name="list", flag=tuple[str, ...], read=_parts, text=",".join, file=tuple[str, ...], decode=_same, encode=list
)
"""May be given several times, or separated by commas."""
DURATION = Unit(name="duration", read=parse_duration, text=short_duration, encode=go_duration)
"""Seconds, written `1m30s`."""
AT_LEAST_0 = Bound("at least 0", lambda value: value >= 0)
AT_LEAST_1 = Bound("at least 1", lambda value: value >= 1)
POSITIVE = Bound("more than 0", lambda value: value > 0)
SHARE = Bound("more than 0 and at most 1", lambda value: 0 < value <= 1)
FROM_0_TO_1 = Bound("from 0 to 1", lambda value: 0 <= value <= 1)
PORT = Bound("a port (0 to 65535; 0 takes a free one)", lambda value: 0 <= value <= 65535)
