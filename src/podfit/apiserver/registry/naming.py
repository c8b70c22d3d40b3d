"""Names that the server makes up."""

import secrets

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # without vowels and look-alikes, so that no word comes out
_LENGTH = 5


def random_suffix() -> str:
    number, letters = secrets.randbelow(len(_LETTERS) ** _LENGTH), ""
    for _ in range(_LENGTH):
        number, index = divmod(number, len(_LETTERS))
        letters += _LETTERS[index]
    return letters
