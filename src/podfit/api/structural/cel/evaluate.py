"""Evaluates compiled CEL expressions: rules of schemas, and conditions of webhooks."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from podfit.api.structural.cel.check import Checked, check
from podfit.api.structural.cel.meter import Failure, Meter, OverLimit
from podfit.api.structural.cel.parse import MOST_KEPT
from podfit.api.structural.cel.run import Run, made
from podfit.api.structural.cel.types import Type
from podfit.core.bounded_cache import cached_within

_DEEP = "expression recursion limit exceeded: 250"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one evaluation came to: a value, an error's text, or neither when its cost was over the limit."""

    cost: int
    value: Any = None
    error: str = ""
    over: bool = False


class Program:
    def __init__(self, checked: Checked) -> None:
        self.checked = checked
        self._run: Run = made(checked)

    def run(self, variables: Mapping[str, Any], limit: int) -> Outcome:
        meter = Meter(dict(variables), limit)
        try:
            value = self._run(meter)
        except Failure as error:
            return Outcome(meter.cost, error=str(error), over=meter.cost > limit)
        except OverLimit:
            return Outcome(max(meter.cost, limit + 1), over=True)
        except RecursionError:
            return Outcome(meter.cost, error=_DEEP)
        return Outcome(meter.cost, value, over=meter.cost > limit)


@cached_within(MOST_KEPT)
def loose(source: str, names: tuple[str, ...]) -> Program | str:
    """A program over values of any type; the text of what is wrong."""
    checked = check(source, {name: Type("dyn") for name in names})
    return checked if isinstance(checked, str) else Program(checked)
