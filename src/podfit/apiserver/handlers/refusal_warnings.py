"""Warnings that a client gets although its write is refused."""

from collections.abc import Sequence

from podfit.apiserver.context import Attributes
from podfit.core.errors import ApiError


class WarningsOnRefusal:
    """A refusal meanwhile carries `warnings`, and those that admission had by then."""

    __slots__ = ("_attributes", "_warnings")

    def __init__(self, attributes: Attributes, warnings: Sequence[str]) -> None:
        self._attributes, self._warnings = attributes, warnings

    def __enter__(self) -> None:
        pass

    def __exit__(self, _type: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, ApiError):
            error.warnings = (*self._warnings, *self._attributes.rounds.warnings)
