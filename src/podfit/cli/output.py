"""The option `-o`."""

from enum import StrEnum
from typing import Annotated, TypeAlias

from cyclopts import Parameter


class Output(StrEnum):
    """`wide` is text with more columns, where there are more to show."""

    TEXT = "text"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"

    @property
    def for_people(self) -> bool:
        return self in (Output.TEXT, Output.WIDE)


NarrowOutputOption: TypeAlias = Annotated[
    Output,
    Parameter(name=["--output", "-o"], help="text, json or yaml; there is no more for wide to show than in text."),
]
OutputOption: TypeAlias = Annotated[
    Output, Parameter(name=["--output", "-o"], help="text, wide (more columns), json or yaml.")
]
