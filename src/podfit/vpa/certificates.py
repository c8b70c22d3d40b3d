"""Certificates that the admission controller's webhook and the recommender's API show, from files or self-made."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from podfit.core.clock import Clock
from podfit.net.authority import Authority

LOOK_SECONDS = 10.0
"""How often certificates are looked at."""


class Shown(msgspec.Struct, frozen=True):
    """PEM: what clients are shown, its key, and who signed it."""

    certificate: bytes
    key: bytes
    authorities: bytes

    @property
    def whole(self) -> bool:
        """An empty file is being written."""
        return bool(self.certificate and self.key and self.authorities)


Certificates = Callable[[], Shown]
"""Raises OSError."""


class Files(msgspec.Struct, frozen=True):
    certificate: Path
    key: Path
    authorities: Path

    def read(self) -> Shown:
        return Shown(self.certificate.read_bytes(), self.key.read_bytes(), self.authorities.read_bytes())


@contextmanager
def self_made(clock: Clock, hosts: tuple[str, ...], name: str) -> Iterator[Certificates]:
    """Certificates of an authority that lives as long as this process; one near its end is issued anew."""
    with tempfile.TemporaryDirectory(prefix=f"{name}-") as directory:

        def issued() -> Shown:
            authority = Authority.load(Path(directory), clock=clock, name=name)
            pair = authority.server("server", hosts=hosts)
            return Shown(pair.certificate, pair.key, authority.certificate)

        yield issued
