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


class SheetOutput(StrEnum):
    """The forms of `Output`, and sheets."""

    TEXT = "text"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"
    MARKDOWN = "markdown"

    @property
    def for_people(self) -> bool:
        return self in (SheetOutput.TEXT, SheetOutput.WIDE)

    @property
    def is_sheet(self) -> bool:
        return self in (SheetOutput.CSV, SheetOutput.MARKDOWN)


NarrowOutputOption: TypeAlias = Annotated[
    Output,
    Parameter(name=["--output", "-o"], help="text, json or yaml; there is no more for wide to show than in text."),
]
OutputOption: TypeAlias = Annotated[
    Output, Parameter(name=["--output", "-o"], help="text, wide (more columns), json or yaml.")
]
SheetOption: TypeAlias = Annotated[
    SheetOutput, Parameter(name=["--output", "-o"], help="text, wide (more columns), json, yaml, csv or markdown.")
]
