"""Names that the server makes up."""

import secrets

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # without vowels and look-alikes, so that no word comes out


def random_suffix() -> str:
    return "".join(secrets.choice(_LETTERS) for _ in range(5))
