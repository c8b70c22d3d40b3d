"""The cluster's own certificate authority.

One authority signs everything and lives in a directory. Keys are EC P-256, because making an RSA key takes 15 to 65 ms
and an EC key none. What is on disk is used again while it is signed by this authority, names what is asked for and is
not near its end; anything else, a damaged file too, is issued anew; the authority itself only where the caller allows
it.

    authority = Authority.load(Path("pki"), clock=clock)
    server = authority.server("apiserver", hosts=("127.0.0.1", "kubernetes"))
    admin = authority.client("admin", user="kubernetes-admin", groups=("system:masters",))
    context = server_context(server)
"""

from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Self

from cryptography import x509

from podfit.core.clock import Clock
from podfit.net.certificate_signing import signed
from podfit.net.certificates import CertificateSpec, Damaged, Signer, hosts_of, in_time, issue, named, read_pair, usable
from podfit.net.files import one_at_a_time
from podfit.net.tls import KeyPair


class Authority:
    """Issues key pairs into its directory, as `<name>.crt` and `<name>.key`."""

    def __init__(self, pair: KeyPair, clock: Clock) -> None:
        self.directory = pair.certificate_file.parent
        self.certificate = pair.certificate
        """PEM: what others have to trust."""
        self._pair_of_own = pair
        self._clock = clock

    @classmethod
    def load(cls, directory: Path, *, clock: Clock, name: str = "podfit-ca", make: bool = True) -> Self:
        """The authority that lives in `directory`. Its certificate is renewed near its end; the key stays.

        One that is missing or damaged is made anew, or Damaged is raised where `make` is false: what it has issued
        would not be good any more.
        """
        pair = _files(directory, "ca")
        _own(pair, CertificateSpec(name, authority=True), clock, make=make)
        return cls(pair, clock)

    @cached_property
    def _signer(self) -> Signer:
        return read_pair(self._pair_of_own, None)

    def server(self, name: str, *, hosts: tuple[str, ...]) -> KeyPair:
        """A server certificate for DNS names and IP addresses."""
        return self._pair(name, CertificateSpec(name, hosts=hosts))

    def client(self, name: str, *, user: str, groups: tuple[str, ...] = ()) -> KeyPair:
        """A client certificate that makes its bearer `user`, a member of `groups`."""
        return self._pair(name, CertificateSpec(user, groups))

    def ends(self) -> datetime:
        """When the authority's own certificate is over."""
        return self._signer[0].not_valid_after_utc

    def served(self) -> frozenset[str]:
        """The DNS names and IP addresses of all server certificates in its directory."""
        return frozenset(name for file in self.directory.glob("*.crt") for name in hosts_of(file))

    def sign(self, request: bytes, usages: tuple[str, ...], begins: datetime, until: datetime) -> bytes:
        """A certificate (PEM) for who made this request (PKCS#10 in PEM). Whether it is to have one is not asked."""
        return signed(self._signer, request, usages, begins, until)

    def _pair(self, name: str, wanted: CertificateSpec) -> KeyPair:
        """What is there when it is what is wanted, else a new one: one server issues it where several share files."""
        pair = _files(self.directory, name)
        with one_at_a_time(self.directory):
            if usable(pair, wanted, self._clock, self._signer) is None:
                issue(pair, wanted, self._clock, self._signer)
        return pair


def _files(directory: Path, name: str) -> KeyPair:
    return KeyPair(directory / f"{name}.crt", directory / f"{name}.key")


def _own(pair: KeyPair, wanted: CertificateSpec, clock: Clock, *, make: bool) -> x509.Certificate:
    """An authority's own certificate."""
    try:
        certificate, key = read_pair(pair, None)
        if not named(certificate, wanted):
            raise Damaged(pair.certificate_file, f"is not the authority {wanted.user}")
    except Damaged:
        if not make:
            raise
        return issue(pair, wanted, clock, None)
    return certificate if in_time(certificate, clock) else issue(pair, wanted, clock, None, key)
