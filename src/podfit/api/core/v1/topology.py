"""Topology selectors: terms over labels of nodes."""

from typing import ClassVar

from podfit.api.meta.base import Struct, always


class TopologySelectorLabelRequirement(Struct):
    key: str = always(default="")
    values: tuple[str, ...] = ()


class TopologySelectorTerm(Struct):
    whole: ClassVar[bool] = True
    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] = ()
