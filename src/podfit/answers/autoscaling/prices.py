"""What requests cost by a table of the user's (`podfit recommend --prices FILE`).

currency: EUR
cpu: 0.0316      # a core for an hour
memory: 0.0042   # a GiB for an hour
hours: 730       # of a month; this is the default
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import msgspec
from msgspec.structs import replace

from podfit.answers.autoscaling.recommend import Recommendations
from podfit.core.quantity import Quantity
from podfit.core.resources import CPU

GIBI, NANO, CENT = 1 << 30, 10**9, Decimal("0.01")
LARGEST = 10**9


class PriceError(ValueError):
    """A table of prices that cannot be used."""


class Prices(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`cpu` of a core for an hour, `memory` of a GiB for an hour, `hours` of a month."""

    cpu: Decimal
    memory: Decimal
    currency: str = ""
    hours: Decimal = Decimal(730)

    def __post_init__(self) -> None:
        for name in ("cpu", "memory", "hours"):
            amount: Decimal = getattr(self, name)
            if not amount.is_finite() or not 0 <= amount < LARGEST:
                raise ValueError(f"{name}: {amount} has to be from 0 to {LARGEST}")

    def monthly(self, amounts: Mapping[str, str]) -> Decimal:
        """The price of amounts of CPU and memory by resource, in cents."""
        costs = (self._hourly(name, Quantity.parse(amount)) for name, amount in amounts.items() if amount)
        return (sum(costs, start=Decimal(0)) * self.hours).quantize(CENT)

    def _hourly(self, resource: str, amount: Quantity) -> Decimal:
        whole = Decimal(amount.nano) / NANO
        return whole * self.cpu if resource == CPU else whole / GIBI * self.memory


def prices_of(document: Any) -> Prices:
    """Raises PriceError."""
    if not isinstance(document, dict):
        raise PriceError("prices are a mapping: cpu, memory, currency, hours")
    texts = {name: str(value) if isinstance(value, int | float) else value for name, value in document.items()}
    try:
        return msgspec.convert(texts, Prices)
    except msgspec.ValidationError as error:
        raise PriceError(f"{error}; needed are cpu and memory, the price of an hour") from error


def priced(recommendations: Recommendations, prices: Prices) -> Recommendations:
    """The same, with what each size and all of them would save in a month."""
    workloads = tuple(
        replace(
            row,
            sizes=tuple(
                replace(size, saves_monthly=str(prices.monthly({size.resource: size.saves}))) for size in row.sizes
            ),
        )
        for row in recommendations.workloads
    )
    return replace(
        recommendations,
        workloads=workloads,
        saves_monthly=str(prices.monthly(recommendations.saves)),
        currency=prices.currency,
    )
