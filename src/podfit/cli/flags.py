"""Flags from options: a verb names the Structs of its options, and takes a flag for each that has one."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import msgspec
from cyclopts import Parameter

from podfit.core.options import Declared, declared
from podfit.process import config_file

S = TypeVar("S", bound=msgspec.Struct)
KINDS = "option_kinds"


class Given(msgspec.Struct, frozen=True):
    """The flags of a command line, by name; those that were not given are not there."""

    flags: Mapping[str, Any]
    kinds: tuple[type[msgspec.Struct], ...]

    def options(self, kind: type[S]) -> S:
        """What they say of a component, over the file that `--config` names. Raises UsageError."""
        return config_file.read(kind, self.flags, self.flags.get("config"))

    def arguments(self, **instead: Path | None) -> list[str]:
        """The command line that says the same from any directory. `instead` are flags with other values."""
        flags = {**self.flags, **instead}
        return [
            word
            for kind in self.kinds
            for option in declared(kind)
            if (value := flags.get(option.flag)) is not None
            for word in _words(option, value)
        ]


def takes(*kinds: type[msgspec.Struct]) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Make a verb of a function of what was given, and perhaps of parameters of its own."""

    def decorate(function: Callable[..., int]) -> Callable[..., int]:
        options = {_attribute(option): option for kind in kinds for option in declared(kind) if option.flag}

        @wraps(function)
        def verb(*words: Any, **values: Any) -> int:
            given = {
                option.flag: _placed(option, value)
                for name, option in options.items()
                if (value := values.pop(name, None)) is not None
            }
            return function(Given(given, kinds), *words, **values)

        hints = get_type_hints(function, include_extras=True)
        _, *own = inspect.signature(function).parameters.values()
        parameters = [parameter.replace(annotation=hints[parameter.name]) for parameter in own]
        parameters += [_parameter(option) for option in options.values()]
        verb.__signature__ = inspect.Signature(parameters, return_annotation=int)  # type: ignore[attr-defined]
        verb.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        setattr(verb, KINDS, kinds)
        return verb

    return decorate


def _parameter(option: Declared) -> inspect.Parameter:
    said, usual = option.option.help, option.usual
    names = [f"-{name}" if len(name) == 1 else f"--{name}" for name in (option.flag, *option.option.also)]
    parameter = Parameter(
        name=names,
        help=" ".join(filter(None, (said, f"[default: {usual}]" if usual else ""))),
        negative=None if option.unit.flag is bool and option.option.negative else "",
        count=option.option.count,
    )
    kind: Any = Path if option.unit.place else option.unit.flag
    annotation = Annotated[kind | None, parameter]
    return inspect.Parameter(_attribute(option), inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _attribute(option: Declared) -> str:
    return option.flag.replace("-", "_")


def _placed(option: Declared, value: Any) -> Any:
    return str(value.absolute()) if option.unit.place else value


def _words(option: Declared, value: Any) -> Iterator[str]:
    flag = f"--{option.flag}"
    if option.option.count:
        yield from [flag] * value
    elif value is True:
        yield flag
    elif value is False:
        yield f"--no-{option.flag}"
    elif isinstance(value, Path):
        yield f"{flag}={value.absolute()}"
    else:
        yield f"{flag}={','.join(value) if isinstance(value, tuple) else value}"
