"""What an authority has checked already, so that a start with everything in place checks nothing twice.

Whether a key pair can be used takes `cryptography`, which costs 50 ms to import. The answer is kept beside the pairs
(`issued.json`, mode 0600 as the keys) with a digest of what was looked at: the issuer's certificate, the certificate
and the key. While all three are the same files to the byte, and what is wanted of the pair is the same, only its end
has to be compared with the clock. Who can write this file can write the authority's key as well.
"""

import hashlib
import logging
from pathlib import Path

import msgspec

from podfit.net.files import write_atomic

log = logging.getLogger(__name__)

FILE = "issued.json"


class Checked(msgspec.Struct, frozen=True):
    """One pair that was found good. Times are Unix seconds."""

    digest: str
    wanted: str
    begins: float
    ends: float


class Issued:
    """The record of one directory; a record that cannot be read is an empty one, and everything is checked again."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / FILE
        self._entries: dict[str, Checked] | None = None

    def find(self, name: str, digest: str, wanted: str) -> Checked | None:
        found = self._known().get(name)
        return found if found and (found.digest, found.wanted) == (digest, wanted) else None

    def add(self, name: str, entry: Checked) -> None:
        self._entries = self._known() | {name: entry}
        write_atomic(self._path, msgspec.json.encode(self._entries))

    def _known(self) -> dict[str, Checked]:
        if self._entries is None:
            self._entries = self._read()
        return self._entries

    def _read(self) -> dict[str, Checked]:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=dict[str, Checked])
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.MsgspecError) as error:
            log.warning("certificates are checked again file=%s reason=%s", self._path, error)
            return {}


def digest_of(*parts: bytes) -> str:
    """Of several byte strings, each with its length, so that none can pass for a piece of another."""
    whole = hashlib.sha256()
    for part in parts:
        whole.update(len(part).to_bytes(8, "big") + part)
    return whole.hexdigest()
