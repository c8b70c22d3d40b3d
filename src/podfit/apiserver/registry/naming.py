"""Generated names (`generateName`)."""

from podfit.core.randomness import Random

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # without vowels and look-alikes, so that no word comes out
_LENGTH = 5


def random_suffix(random: Random) -> str:
    number, letters = random.below(len(_LETTERS) ** _LENGTH), ""
    for _ in range(_LENGTH):
        number, index = divmod(number, len(_LETTERS))
        letters += _LETTERS[index]
    return letters
