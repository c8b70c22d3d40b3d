"""FNV-1a, 32 bits, of a text of which most pieces were summed before.

    fnv(value, byte) = (value ^ byte) * PRIME mod 2^32

The exclusive or sees the lowest byte of the value only, so the upper bytes go through a piece as a factor:

    fnv(value, piece) = (value - low) * PRIME^length + fnv(low, piece)      low = value mod 256

and what is left to sum byte by byte depends on the piece and on one of 256 beginnings. Fifty pods are 8 kB, which takes
a millisecond for every write of a checkpoint when summed anew.
"""

from podfit.core.kept import within

OFFSET, PRIME, SIZE = 2166136261, 16777619, 1 << 32


def fnv32a(data: bytes, value: int = OFFSET) -> int:
    """Byte by byte."""
    for byte in data:
        value = (value ^ byte) * PRIME & 0xFFFFFFFF
    return value


def fold(value: int, piece: bytes) -> int:
    """As `fnv32a(piece, value)`, quickly for a piece that was there before."""
    low = value & 0xFF
    return ((value - low) * pow(PRIME, len(piece), SIZE) + _from(piece, low)) % SIZE


@within(8 * 2**20)
def _from(piece: bytes, low: int) -> int:
    return fnv32a(piece, low)
