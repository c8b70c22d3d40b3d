"""Generated names (`generateName`)."""

from podfit.core.randomness import Random

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # without vowels and look-alikes, so that no word comes out
_PLACES = tuple(len(_LETTERS) ** place for place in range(5))


def random_suffix(random: Random) -> str:
    number = random.below(len(_LETTERS) ** len(_PLACES))
    return "".join([_LETTERS[number // place % len(_LETTERS)] for place in _PLACES])
