"""Template hashes: short names of a pod template or a revision, for names and labels.

As upstream a 32-bit FNV in letters that spell no words. What is hashed differs: upstream hashes how Go prints a value,
here it is its JSON, so hashes of one and the same template differ between the two.
"""

from podfit.api.meta.base import Struct
from podfit.api.meta.codec import encode

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_OFFSET, _PRIME, _BITS = 2166136261, 16777619, 0xFFFFFFFF


def fnv(data: bytes) -> int:
    """FNV-1a of 32 bits."""
    value = _OFFSET
    for byte in data:
        value = ((value ^ byte) * _PRIME) & _BITS
    return value


def safe(text: str) -> str:
    """In letters and digits of which no word can be made."""
    return "".join(_LETTERS[ord(letter) % len(_LETTERS)] for letter in text)


def content_hash(content: Struct | bytes, collisions: int | None) -> str:
    """`collisions` makes another hash of the same content, when the first was taken by something else."""
    data = content if isinstance(content, bytes) else encode(content)
    more = b"" if collisions is None else collisions.to_bytes(8, "little")
    return safe(str(fnv(data + more)))
