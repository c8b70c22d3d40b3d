"""Amounts as a command line has them: `--cpu` and `--memory`.

500m        the request; a limit keeps the proportion that it was given, so what was Guaranteed stays so
500m:1      request and limit
:1          the limit alone
+20%        a fifth more than the container has now; also -10%, and with a limit +20%:+50%
-64Mi       64Mi less than it has now; also +500m
"""

import re

import msgspec

from podfit.core.nearest_quantity import nearest
from podfit.core.quantity import ZERO, Format, Quantity

LONGEST = 40
"""Characters of a wrong value that a message repeats."""
MEBI = Quantity.of_bytes(1 << 20).nano
_PERCENT = re.compile(r"([+-])(\d{1,6})%", re.ASCII)


class RequestError(ValueError):
    """A request that cannot be understood, or that fits no container of this pod."""


class OptionError(RequestError):
    """Options that say nothing, contradict each other, or hold no amount: the verb's help says how it is right."""


class Relative(msgspec.Struct, frozen=True):
    """So much more or less than there is: `percent` of it, or `by`, which is negative for less. `text` is as typed."""

    text: str
    percent: int = 0
    by: Quantity = ZERO


class Amount(msgspec.Struct, frozen=True):
    request: Quantity | Relative | None = None
    limit: Quantity | Relative | None = None


def parse_amount(option: str, text: str) -> Amount:
    """Raises OptionError that quotes the option."""
    requested, colon, limit = text.partition(":")
    if (not requested and not limit) or (colon and not limit):
        raise OptionError(f"invalid value {text!r} for {option}: write 500m, 500m:1 (request:limit) or :1 (limit)")
    return Amount(_amount(option, requested), _amount(option, limit))


def resolved(amount: Quantity | Relative, before: Quantity | None, what: str) -> Quantity:
    """The amount that is meant where there was `before`; `what` names it in messages, such as `cpu request`.

    A share is rounded up: to whole thousandths of a CPU, to whole MiB of an amount that had whole MiB, else to bytes.
    Raises RequestError where there is nothing to add to, or nothing would be left.
    """
    if isinstance(amount, Quantity):
        return amount
    if before is None:
        raise RequestError(f"{amount.text} of what? There is no {what} yet: write an amount")
    unit = _unit(before, what)
    nano = before.nano + amount.by.nano
    if amount.percent:
        nano = -(-before.nano * (100 + amount.percent) // (100 * unit)) * unit
    if nano <= 0:
        raise RequestError(f"{amount.text} leaves nothing of the {what}, which is {before}")
    return Quantity(nano, before.format if before.nano else amount.by.format)


def _unit(before: Quantity, what: str) -> int:
    """To how many nano units a share is rounded."""
    if what.startswith("cpu"):
        return Quantity.of_milli(1).nano
    whole = before.format is Format.BINARY_SI and before.nano % MEBI == 0
    return MEBI if whole else Quantity.of(1).nano


def _amount(option: str, text: str) -> Quantity | Relative | None:
    if not text:
        return None
    if share := _PERCENT.fullmatch(text):
        return Relative(text, percent=int(share[1] + share[2]))
    amount = _quantity(option, text)
    return Relative(text, by=amount) if text[0] in "+-" else amount


def _quantity(option: str, text: str) -> Quantity:
    try:
        return Quantity.parse(text)
    except ValueError as error:
        near = [amount for amount in nearest(text, memory=option == "--memory") if _is_quantity(amount)]
        usual = "256Mi, 256Mi:1Gi" if option == "--memory" else "500m, 500m:1"
        meant = f"did you mean {' or '.join(near)}?" if near else f"write it such as {usual} (request:limit) or +20%"
        shown = text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
        raise OptionError(f'invalid value "{shown}" for {option}: not a quantity; {meant}') from error


def _is_quantity(text: str) -> bool:
    try:
        Quantity.parse(text)
    except ValueError:
        return False
    return True
