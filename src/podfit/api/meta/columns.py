"""Columns that many kinds share, and the cells of one object under them."""

from typing import Any

from podfit.api.meta.base import Object
from podfit.api.meta.resource_info import Column
from podfit.core.durations import human_duration
from podfit.core.times import parse_time

NONE, UNKNOWN = "<none>", "<unknown>"
NAME = Column("Name", format="name", description="Name of the object, unique among its kind in its namespace.")
AGE = Column("Age", description="Time since the object was created.")
CREATED = Column("Created At", "date", description="When the object was created.")


def since(moment: str | None, now: str) -> str:
    """The age of a moment; of none, or of a day that no calendar has, nobody knows."""
    try:
        return human_duration((parse_time(now) - parse_time(moment)).total_seconds()) if moment else UNKNOWN
    except ValueError:
        return UNKNOWN


def age(obj: Any, now: str) -> str:
    return since(obj.metadata.creation_timestamp, now)


def wide(name: str, description: str, sort: str = "string") -> Column:
    return Column(name, sort, description=description, priority=1)


NAMED = (NAME, AGE)


def named_row(obj: Object, now: str) -> list[Any]:
    return [name_of(obj), age(obj, now)]


def name_of(obj: Any) -> str:
    name: str = obj.metadata.name
    return name


DATED = (NAME, CREATED)


def dated_row(obj: Any, _: str) -> list[Any]:
    return [name_of(obj), obj.metadata.creation_timestamp]
